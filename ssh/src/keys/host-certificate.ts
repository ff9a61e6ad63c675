// Host certificates of our own making: a server with a slow key, such as RSA, signs a certificate for a quick
// one once, and each exchange of keys is then signed by the quick one. A client that knows the slow key trusts
// the certificate instead. The format is in certificate.ts.
import { randomBytes } from 'node:crypto'
import { Writer } from '../wire.ts'
import { certificateName } from './certified-key.ts'
import { isCertificate, judgeCertificate, parseCertificate } from './certificate.ts'
import type { PrivateKey } from './private-key.ts'
import { KeyFormatError } from './public-key.ts'

/** Serials of 64 bits, and a time that never comes. */
const [noSerial, always, never] = [0n, 0n, 2n ** 64n - 1n]
const hostKind = 2

/**
 * The key as a host key with a certificate by the authority, for a host of this name. It is valid without a
 * limit in time, because clocks of small devices are wrong: it is as good as the authority's own key, and
 * must be as short-lived as the process that holds both.
 */
export async function certifyHostKey(
  key: PrivateKey,
  authority: PrivateKey,
  principal: string,
): Promise<PrivateKey> {
  const empty = Buffer.alloc(0)
  const { type, blob } = key
  const name = certificateName(type)
  const certificate = new Writer(1_024)
    .string(name)
    .string(randomBytes(32))
    // What follows the type in the blob of the plain key.
    .raw(blob.subarray(4 + type.length))
    .uint64(noSerial)
    .uint32(hostKind)
    .string(principal)
    .string(new Writer().string(principal).bytes())
    .uint64(always)
    .uint64(never)
    .string(empty)
    .string(empty)
    .string(empty)
    .string(authority.blob)
  const signature = await authority.sign(authority.algorithms[0]!, Buffer.from(certificate.bytes()))
  return {
    ...key,
    type: name,
    blob: Buffer.from(certificate.string(signature).bytes()),
    algorithms: [name],
    sign: async (_algorithm, data) => key.sign(type, data),
  }
}

/** Whether a host key is a certificate for a host of this name, signed by this authority. */
export async function isCertifiedHostKey(
  blob: Buffer,
  authority: Buffer,
  principal: string,
  now = new Date(),
): Promise<boolean> {
  if (!isCertificate(blob)) return false
  try {
    const certificate = await parseCertificate(blob)
    return judgeCertificate(certificate, { kind: 'host', authorities: [authority], principal, now }).allowed
  } catch (error) {
    if (error instanceof KeyFormatError) return false
    throw error
  }
}
