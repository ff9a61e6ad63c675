// Approvals of logins by public key, for agents that check them without asking the server. An approval is a
// user certificate for the gateway's key, signed by a key that all nodes of an installation share: it is made
// at the first start and stored, sealed, in the database. It is good for one user on one device in one SSH
// connection: the session id is fresh for every connection, and both ends have put random bytes into it. So
// nobody can use it again, neither the device that got it nor anybody who listens. The same key signs the
// order to an agent to hang up, because agents have pinned it.
import { sign } from 'node:crypto'
import { approval, hangUpText } from '@hawser/contract/tunnel'
import { certify, publicKeyLine } from '@hawser/ssh'
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { Approver } from '../device/device-leg.ts'
import { sharedKey, type HostKeyParts } from './host-keys.ts'

export interface Approvals extends Approver {
  /** In OpenSSH's notation; agents get it when they enrol. */
  readonly publicKey: string
  /** Signs the order to hang up, base64, for the request with this nonce. */
  hangUp(device_uid: string, nonce: string): string
}

const type = 'approval'
const purpose = 'approval key'
/** For people who read a certificate. Agents ignore it, since clocks of devices are wrong. */
const valid_s = 60n

export async function approvals(
  parts: Pick<HostKeyParts, 'keys' | 'vault' | 'now'>,
  clock: Clock,
): Promise<Approvals> {
  const authority = await sharedKey(parts, type, purpose)
  return {
    publicKey: publicKeyLine(authority.type, authority.blob),
    hangUp: (device_uid, nonce) =>
      sign(null, Buffer.from(hangUpText(device_uid, nonce)), authority.object).toString('base64'),
    approve(key, { device_uid, username, sessionId }) {
      const now_s = BigInt(Math.floor(clock.now() / second_ms))
      return certify(key, authority, {
        kind: 'user',
        id: `${username} on ${device_uid}`,
        principals: [username],
        validAfter: now_s - valid_s,
        validBefore: now_s + valid_s,
        criticalOptions: new Map([
          [approval.device, Buffer.from(device_uid)],
          [approval.session, sessionId],
        ]),
      })
    },
  }
}
