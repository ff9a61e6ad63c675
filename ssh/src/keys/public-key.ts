// Public keys as OpenSSH writes them: `ssh-ed25519 AAAAC3… comment`. Parsing is strict, because a key that is
// stored here is later compared byte by byte with what a client sends: the blob must be complete, in its one
// canonical form, with nothing after it, and of the type that the line says. Whether a key is strong enough
// is the caller's to decide.
//
// A blob is a sequence of strings, each a 32-bit length and that many bytes (RFC 4251 section 5). The first
// names the type; the rest depend on it:
//   ssh-rsa             mpint e, mpint n                            RFC 4253 section 6.6
//   ssh-dss             mpint p, mpint q, mpint g, mpint y          RFC 4253 section 6.6
//   ecdsa-sha2-<curve>  string curve, string Q                      RFC 5656 section 3.1
//   ssh-ed25519         string key                                  RFC 8709 section 4
//   sk-…@openssh.com    as the type it is named after, then string application
import { createHash, createPublicKey } from 'node:crypto'

/** Malformed bytes or text of a key. */
export class KeyFormatError extends Error {
  override readonly name = 'KeyFormatError'
}

/** The fields of a public key's line. */
export interface PublicKeyLine {
  readonly type: string
  readonly blob: Buffer
  readonly comment: string
  /** The size of an RSA modulus or a DSA prime; null where the type fixes the size. */
  readonly bits: number | null
}

const longestLine = 65_536
/** OpenSSH's own limit for a number in a key. */
const largestNumber_bits = 16_384

interface Reader {
  string(): Buffer
  /** A positive number; returns its bits. */
  mpint(): number
  readonly done: boolean
}

const curves: Readonly<Record<string, { readonly crv: string; readonly bytes: number }>> = {
  nistp256: { crv: 'P-256', bytes: 32 },
  nistp384: { crv: 'P-384', bytes: 48 },
  nistp521: { crv: 'P-521', bytes: 66 },
}

/** Reads the fields after the type; returns the size where it varies. */
type Body = (reader: Reader) => number | null

const bodies: ReadonlyMap<string, Body> = new Map<string, Body>([
  ['ssh-rsa', rsa],
  ['ssh-dss', dsa],
  ['ssh-ed25519', ed25519],
  ['ecdsa-sha2-nistp256', ecdsa('nistp256')],
  ['ecdsa-sha2-nistp384', ecdsa('nistp384')],
  ['ecdsa-sha2-nistp521', ecdsa('nistp521')],
  ['sk-ssh-ed25519@openssh.com', withApplication(ed25519)],
  ['sk-ecdsa-sha2-nistp256@openssh.com', withApplication(ecdsa('nistp256'))],
])

/** Without options, or of a `.pub` file. Throws KeyFormatError. */
export function parsePublicKeyLine(text: string): PublicKeyLine {
  if (text.length > longestLine) throw new KeyFormatError('The key is far too long.')
  const line = text.trim()
  if (line.startsWith('----')) {
    throw new KeyFormatError(
      'This is a PEM file, perhaps a private key; the public key is one line that starts with its type.',
    )
  }
  // A comment ends up in lists and logs, where escape sequences would reach someone's terminal.
  if (/[^\P{Cc}\t]/u.test(line))
    throw new KeyFormatError('The key must be one line without control characters.')
  // Matches every text at the first attempt; one that could fail would try every way to split the line in
  // three.
  const [, type = '', base64 = '', comment = ''] = /^(\S*)[ \t]*(\S*)([^]*)$/.exec(line) ?? []
  if (type.endsWith('-cert-v01@openssh.com')) {
    throw new KeyFormatError(
      'This is a certificate, not a public key; give the public key of the authority that signed it.',
    )
  }
  if (!bodies.has(type)) {
    throw new KeyFormatError(
      'The line must start with the type of the key, such as ssh-ed25519; options before it are not allowed.',
    )
  }

  const blob = Buffer.from(base64, 'base64')
  // Buffer skips what is not base64; only what encodes back to the same text was all of it.
  if (base64 === '' || blob.toString('base64') !== base64)
    throw new KeyFormatError('The key after its type is not base64.')
  const key = parsePublicKeyBlob(blob)
  if (key.type !== type) throw new KeyFormatError('The key does not have the type that its line names.')
  return { type, blob, comment: comment.trim(), bits: key.bits }
}

/** For a blob without its line, as in messages. certificate.ts reads certificates. */
export function parsePublicKeyBlob(blob: Buffer): { readonly type: string; readonly bits: number | null } {
  const reader = read(blob)
  const type = reader.string().toString('latin1')
  const body = bodies.get(type)
  if (!body) throw new KeyFormatError('The type of the key is not known.')
  const bits = body(reader)
  if (!reader.done) throw new KeyFormatError('There are bytes after the end of the key.')
  return { type, bits }
}

/** As `ssh-keygen -l -E md5` prints it, without the leading `MD5:`. */
export function fingerprintMd5(blob: Uint8Array): string {
  return createHash('md5')
    .update(blob)
    .digest('hex')
    .replaceAll(/(..)(?!$)/g, '$1:')
}

/** As `ssh-keygen -l` prints it, with the leading `SHA256:`. */
export function fingerprintSha256(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`
}

/** The line of a `.pub` file, without a comment. */
export function publicKeyLine(type: string, blob: Uint8Array): string {
  return `${type} ${Buffer.from(blob).toString('base64')}`
}

function read(blob: Buffer): Reader {
  let at = 0
  const string = (): Buffer => {
    // Lengths are untrusted: they are compared with what is left, never added up first.
    if (blob.length - at < 4) throw new KeyFormatError('The key is cut short.')
    const length = blob.readUInt32BE(at)
    if (length > blob.length - at - 4) throw new KeyFormatError('The key is cut short.')
    at += 4 + length
    return blob.subarray(at - length, at)
  }
  const mpint = (): number => {
    const bytes = string()
    const [first, second = 0] = bytes
    if (first === undefined) throw new KeyFormatError('A number in the key is zero.')
    if (first >= 0x80) throw new KeyFormatError('A number in the key is negative.')
    // A zero byte may only stand where the number would else read as negative: one key, one blob, one
    // fingerprint.
    if (first === 0 && second < 0x80)
      throw new KeyFormatError('A number in the key has needless leading zeros.')
    const bits = first === 0 ? (bytes.length - 1) * 8 : bytes.length * 8 - (Math.clz32(first) - 24)
    if (bits > largestNumber_bits)
      throw new KeyFormatError(`A number in the key has more than ${largestNumber_bits} bits.`)
    return bits
  }
  return {
    string,
    mpint,
    get done() {
      return at === blob.length
    },
  }
}

function rsa(reader: Reader): number {
  const exponent_bits = reader.mpint()
  if (exponent_bits < 2) throw new KeyFormatError('The exponent of the RSA key is too small.')
  return reader.mpint()
}

function dsa(reader: Reader): number {
  const prime_bits = reader.mpint()
  for (let rest = 0; rest < 3; rest += 1) reader.mpint()
  return prime_bits
}

function ed25519(reader: Reader): number | null {
  if (reader.string().length !== 32) throw new KeyFormatError('An Ed25519 key has 32 bytes.')
  return null
}

function ecdsa(name: string): Body {
  return (reader) => {
    const { crv, bytes } = curves[name]!
    if (!reader.string().equals(Buffer.from(name))) {
      throw new KeyFormatError('The curve of the ECDSA key is not the one that its type names.')
    }
    const point = reader.string()
    // 4 means uncompressed, the only form that SSH peers use (RFC 5656 section 3.1).
    if (point.length !== 1 + 2 * bytes || point[0] !== 4)
      throw new KeyFormatError(`The point of the ECDSA key is not one of ${name}.`)
    const x = point.subarray(1, 1 + bytes).toString('base64url')
    const y = point.subarray(1 + bytes).toString('base64url')
    try {
      // Refuses a point that is not on the curve, with which nobody could ever log in.
      createPublicKey({ key: { kty: 'EC', crv, x, y }, format: 'jwk' })
    } catch {
      throw new KeyFormatError(`The point of the ECDSA key is not one of ${name}.`)
    }
    return null
  }
}

/** Keys on a security token name their application, usually `ssh:`. */
function withApplication(body: Body): Body {
  return (reader) => {
    const bits = body(reader)
    if (reader.string().includes(0))
      throw new KeyFormatError('The application of the security key has a NUL byte in it.')
    return bits
  }
}
