// Signatures: made with a private key, verified with the blob of a public one. A signature is
//   string algorithm, string bytes                                              RFC 4253 section 6.6
// and the bytes are
//   rsa-sha2-256, rsa-sha2-512   RSASSA-PKCS1-v1_5, as long as the modulus      RFC 8332 section 3
//   ssh-ed25519                  64 bytes                                       RFC 8709 section 6
//   ecdsa-sha2-…                 mpint r, mpint s                               RFC 5656 section 3.1.2
// A security key appends byte flags and uint32 counter, and signs SHA-256(application), flags, counter,
// SHA-256(data) (OpenSSH's PROTOCOL.u2f). SHA-1 (`ssh-rsa` as an algorithm) is neither made nor taken. RSA
// and the larger curves take up to ten milliseconds and are left to other threads of the process; Ed25519 and
// P-256 take a tenth of one, about what handing them over would cost, and are done at once.
import {
  hash,
  sign,
  verify,
  type KeyObject,
  type SignKeyObjectInput,
  type VerifyKeyObjectInput,
} from 'node:crypto'
import { promisify } from 'node:util'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import { plainName, readCertifiedKey } from './certified-key.ts'
import { knownKey, type KnownKey } from './key-object.ts'
import { KeyFormatError } from './public-key.ts'

/** The algorithms of `verifySignature`, for `server-sig-algs` (RFC 8308 section 3.1). */
export const signatureAlgorithms: readonly string[] = [
  'ssh-ed25519',
  'sk-ssh-ed25519@openssh.com',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ecdsa-sha2-nistp256@openssh.com',
  'rsa-sha2-512',
  'rsa-sha2-256',
]

/** Best first. */
export function algorithmsOf(keyType: string): readonly string[] {
  if (keyType === 'ssh-rsa') return ['rsa-sha2-512', 'rsa-sha2-256']
  return signatureAlgorithms.includes(keyType) ? [keyType] : []
}

const userPresent = 0x01

const isCheap = (key: KeyObject): boolean =>
  key.asymmetricKeyType === 'ed25519' || key.asymmetricKeyDetails?.namedCurve === 'prime256v1'

const signing = async (name: string | null, data: Buffer, input: SignKeyObjectInput): Promise<Buffer> =>
  isCheap(input.key) ? sign(name, data, input) : promisify(sign)(name, data, input)

const verifying = async (
  name: string | null,
  data: Buffer,
  input: VerifyKeyObjectInput,
  signature: Buffer,
): Promise<boolean> =>
  isCheap(input.key) ? verify(name, data, input, signature) : promisify(verify)(name, data, input, signature)

export async function signData(key: KeyObject, algorithm: string, data: Buffer): Promise<Buffer> {
  const made = new Writer(600).string(algorithm)
  if (algorithm === 'ssh-ed25519') return made.string(await signing(null, data, { key })).bytes()
  if (algorithm.startsWith('rsa-sha2-'))
    return made.string(await signing(rsaHash(algorithm), data, { key })).bytes()
  const pair = await signing(ecdsaHash(algorithm), data, { key, dsaEncoding: 'ieee-p1363' })
  const half = pair.length / 2
  return made.string(new Writer(160).mpint(pair.subarray(0, half)).mpint(pair.subarray(half)).bytes()).bytes()
}

/**
 * False for anything malformed. For a certificate and its name of an algorithm: by the key of the
 * certificate, by any authority.
 */
export async function verifySignature(
  blob: Buffer,
  algorithm: string,
  data: Buffer,
  signature: Buffer,
): Promise<boolean> {
  try {
    const plain = plainName(algorithm)
    const [key, signs] =
      plain === undefined
        ? [knownKey(blob), algorithm]
        : [knownKey(readCertifiedKey(new Reader(blob))), plain]
    if (!algorithmsOf(key.type).includes(signs)) return false
    const reader = new Reader(signature)
    // The name inside must be the one that was negotiated, or an attacker could choose a weaker one.
    if (reader.text() !== signs) return false
    const bytes = reader.string()
    const good = await (key.application
      ? verifySecurityKey(key, bytes, data, reader)
      : verifyPlain(key, signs, bytes, data))
    return good && reader.done
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof KeyFormatError) return false
    throw error
  }
}

async function verifyPlain(key: KnownKey, algorithm: string, bytes: Buffer, data: Buffer): Promise<boolean> {
  if (key.type === 'ssh-rsa') {
    const size = Math.ceil(key.bits! / 8)
    // Some peers drop leading zeros; node:crypto wants the full length.
    const full = bytes.length < size ? Buffer.concat([Buffer.alloc(size - bytes.length), bytes]) : bytes
    return verifying(rsaHash(algorithm), data, { key: key.object }, full)
  }
  if (key.hash === null) return verifying(null, data, { key: key.object }, bytes)
  const numbers = new Reader(bytes)
  const size = Math.ceil(
    (key.object.asymmetricKeyDetails?.namedCurve === 'secp521r1' ? 521 : Number(key.hash.slice(3))) / 8,
  )
  const pair = Buffer.concat([padded(numbers.mpint(), size), padded(numbers.mpint(), size)])
  return numbers.done && verifying(key.hash, data, { key: key.object, dsaEncoding: 'ieee-p1363' }, pair)
}

async function verifySecurityKey(
  key: KnownKey,
  bytes: Buffer,
  data: Buffer,
  reader: Reader,
): Promise<boolean> {
  const flags = reader.byte()
  const counter = reader.uint32()
  const signed = new Writer()
    .raw(hash('sha256', key.application!, 'buffer'))
    .byte(flags)
    .uint32(counter)
    .raw(hash('sha256', data, 'buffer'))
    .bytes()
  // The token was touched: without that a stolen computer could sign by itself.
  return (flags & userPresent) !== 0 && verifyPlain(key, key.type, bytes, signed)
}

function padded(magnitude: Buffer, size: number): Buffer {
  if (magnitude.length > size) throw new ProtocolError('A number of the signature is too large.')
  return Buffer.concat([Buffer.alloc(size - magnitude.length), magnitude])
}

function rsaHash(algorithm: string): string {
  return algorithm === 'rsa-sha2-512' ? 'sha512' : 'sha256'
}

function ecdsaHash(algorithm: string): string {
  return algorithm.endsWith('521') ? 'sha512' : algorithm.endsWith('384') ? 'sha384' : 'sha256'
}
