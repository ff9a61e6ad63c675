// Certificates of our own making (the format is in certificate.ts): a key signs that another key is for a
// host, or for a user, under conditions.
import { randomBytes } from 'node:crypto'
import { Writer } from '../wire.ts'
import { certificateName } from './certified-key.ts'
import type { PrivateKey } from './private-key.ts'

/** The statements of a certificate about its key. */
export interface CertificateFields {
  readonly kind: 'user' | 'host'
  /** For logs. */
  readonly id: string
  readonly principals: readonly string[]
  /** Seconds since 1970. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** By name; a peer that does not know one of them refuses the certificate. */
  readonly criticalOptions?: ReadonlyMap<string, Uint8Array>
}

const noSerial = 0n

/** Returns the certificate's type and blob. */
export async function signCertificate(
  { type, blob }: Pick<PrivateKey, 'type' | 'blob'>,
  authority: PrivateKey,
  { kind, id, principals, validAfter, validBefore, criticalOptions = new Map() }: CertificateFields,
): Promise<Pick<PrivateKey, 'type' | 'blob'>> {
  const name = certificateName(type)
  const empty = Buffer.alloc(0)
  const names = new Writer(256)
  for (const principal of principals) names.string(principal)
  const options = new Writer(256)
  // OpenSSH wants them in order.
  for (const [option, value] of [...criticalOptions].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    options.string(option).string(new Writer(value.length + 4).string(value).bytes())
  const certificate = new Writer(1_024)
    .string(name)
    .string(randomBytes(32))
    // The rest of the plain key's blob.
    .raw(blob.subarray(4 + type.length))
    .uint64(noSerial)
    .uint32(kind === 'user' ? 1 : 2)
    .string(id)
    .string(names.bytes())
    .uint64(validAfter)
    .uint64(validBefore)
    .string(options.bytes())
    .string(empty)
    .string(empty)
    .string(authority.blob)
  const signature = await authority.sign(authority.algorithms[0]!, Buffer.from(certificate.bytes()))
  return { type: name, blob: Buffer.from(certificate.string(signature).bytes()) }
}

/** The key with a certificate by the authority, which replaces the plain key. */
export async function certify(
  key: PrivateKey,
  authority: PrivateKey,
  fields: CertificateFields,
): Promise<PrivateKey> {
  const signed = await signCertificate(key, authority, fields)
  return {
    ...key,
    ...signed,
    algorithms: [signed.type],
    sign: async (_algorithm, data) => key.sign(key.type, data),
  }
}
