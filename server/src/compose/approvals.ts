// Composition of what approves logins: the keys by which the server signs, and the gateway's word to agents.
import { signer } from '../domain/access/signer.ts'
import { approvals } from '../gateway/login/approvals.ts'
import { identityCertificates } from '../gateway/login/certificates.ts'
import { sharedKey } from '../gateway/login/host-keys.ts'
import { iso } from '../kit/clock.ts'
import type { Foundation } from './foundation.ts'

export async function openApprovals({ stores, vault, clock, bus, log }: Foundation) {
  const stored = { keys: stores.hostKeys, vault, now: () => iso(clock.now()) }
  return {
    approvals: await approvals(stored, clock),
    assertionKey: (await sharedKey(stored, 'assertion', 'assertion key')).object,
    identitySigner: await identityCertificates(stored, clock),
    signer: signer(clock, bus, (device, fingerprint) =>
      log.warn({ event: 'signature.refused', device, fingerprint }),
    ),
  }
}

export type ApprovalRooms = Awaited<ReturnType<typeof openApprovals>>
