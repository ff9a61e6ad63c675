// Identity certificates as SSH sees them (domain/access/identity-certificates.ts says what they are for):
// user certificates of OpenSSH, signed by a key that all nodes of an installation share. It is made at
// the first start and stored, sealed, in the database. The key id is the claim. A critical option that
// only this gateway knows makes every other SSH server refuse the certificate, and this gateway never
// takes it for a login.
import {
  judgeCertificate,
  parsePublicKeyLine,
  publicKeyLine,
  signCertificate,
  type Certificate,
} from '@hawser/ssh'
import type { IdentityClaims, IdentitySigner } from '../../domain/access/identity-certificates.ts'
import { second_ms, type Clock } from '../../kit/clock.ts'
import { sharedKey, type HostKeyParts } from './host-keys.ts'

export interface IdentityCertificates extends IdentitySigner {
  /** Whether this installation signed it, valid or not. */
  isOwn(certificate: Certificate): boolean
  /** Undefined: the certificate has expired, or another installation signed it. */
  read(certificate: Certificate): IdentityClaims | undefined
}

const type = 'identity'
const purpose = 'identity key'
const principal = 'identity.hawser'
const option = 'identity@hawser'
const version = Buffer.from('1')
/** Clocks of nodes differ a little. */
const skew_s = 60n

export async function identityCertificates(
  parts: Pick<HostKeyParts, 'keys' | 'vault' | 'now'>,
  clock: Clock,
): Promise<IdentityCertificates> {
  const authority = await sharedKey(parts, type, purpose)
  const isOwn = (certificate: Certificate): boolean => authority.blob.equals(certificate.authority)
  return {
    async sign(line, claim, until_ms) {
      const seconds = (ms: number): bigint => BigInt(Math.floor(ms / second_ms))
      const signed = await signCertificate(parsePublicKeyLine(line), authority, {
        kind: 'user',
        id: JSON.stringify(claim),
        principals: [principal],
        validAfter: seconds(clock.now()) - skew_s,
        validBefore: seconds(until_ms),
        criticalOptions: new Map([[option, version]]),
      })
      return publicKeyLine(signed.type, signed.blob)
    },
    isOwn,
    read(certificate) {
      const { allowed } = judgeCertificate(certificate, {
        kind: 'user',
        authorities: [authority.blob],
        principal,
        now: new Date(clock.now()),
        criticalOptions: new Map([[option, version]]),
      })
      // Only this installation writes such key ids.
      return allowed ? (JSON.parse(certificate.id) as IdentityClaims) : undefined
    },
  }
}
