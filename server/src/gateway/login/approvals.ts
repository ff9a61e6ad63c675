// Approvals of logins by public key, for agents that check them without asking the server. An approval is a
// user certificate for the gateway's key, signed by a key that all nodes of an installation share: it is made
// at the first start and stored, sealed, in the database. It is good for one user on one device in one SSH
// connection: the session id is fresh for every connection, and both ends have put random bytes into it. So
// nobody can use it again, neither the device that got it nor anybody who listens. The same key signs
// orders to an agent (to hang up, to connect to a target), because agents have pinned it.
import { sign } from 'node:crypto'
import { approval, hangUpText, targetText, type TargetAddress } from '@hawser/contract/tunnel'
import { certify, publicKeyLine } from '@hawser/ssh'
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { Approver } from '../device/device-leg.ts'
import { sharedKey, type HostKeyParts } from './host-keys.ts'

export interface Approvals extends Approver {
  /** In OpenSSH's notation; agents get it when they enrol. */
  readonly publicKey: string
  /** Signs the order to hang up, base64, for the request with this nonce. */
  hangUp(device_uid: string, nonce: string): string
  /** The same for a connection to a target. */
  target(device_uid: string, nonce: string, target: TargetAddress): string
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
  const signed = (text: string): string => sign(null, Buffer.from(text), authority.object).toString('base64')
  return {
    publicKey: publicKeyLine(authority.type, authority.blob),
    hangUp: (device_uid, nonce) => signed(hangUpText(device_uid, nonce)),
    target: (device_uid, nonce, target) => signed(targetText(device_uid, nonce, target)),
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
