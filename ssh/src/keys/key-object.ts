// Between the blobs of SSH and the key objects of node:crypto. Both ways go through JWK (RFC 7517), whose
// fields are the same numbers. Parsed public keys are kept: agents and people come back with the same ones,
// and parsing costs as much as verifying.
import { createPublicKey, type KeyObject, type webcrypto } from 'node:crypto'
import { Reader, Writer } from '../wire.ts'
import { KeyFormatError, parsePublicKeyBlob } from './public-key.ts'

export interface Curve {
  readonly crv: string
  readonly bytes: number
  readonly hash: string
}

/** By the names of RFC 5656 section 10.1. */
export const curves: Readonly<Record<string, Curve>> = {
  nistp256: { crv: 'P-256', bytes: 32, hash: 'sha256' },
  nistp384: { crv: 'P-384', bytes: 48, hash: 'sha384' },
  nistp521: { crv: 'P-521', bytes: 66, hash: 'sha512' },
}

/** A parsed public key, ready to verify with. */
export interface KnownKey {
  readonly type: string
  readonly bits: number | null
  readonly object: KeyObject
  /** The hash of an ECDSA signature; null for other keys. */
  readonly hash: string | null
  /** The application of a security key; null for other keys. */
  readonly application: Buffer | null
}

const mostKept = 512
const kept = new Map<string, KnownKey>()

/** Throws a KeyFormatError unless it is one well-formed key. */
export function knownKey(blob: Buffer): KnownKey {
  const name = blob.toString('latin1')
  const found = kept.get(name)
  if (found) return found
  const key = parse(blob)
  if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
  kept.set(name, key)
  return key
}

function parse(blob: Buffer): KnownKey {
  const { type, bits } = parsePublicKeyBlob(blob)
  const reader = new Reader(blob)
  reader.string()
  const security = type.startsWith('sk-')
  const kind = type.replace(/^sk-/, '').replace(/@.*$/, '')
  const made =
    kind === 'ssh-rsa' ? rsa(reader) : kind === 'ssh-ed25519' ? ed25519(reader) : ecdsa(kind, reader)
  const application = security ? Buffer.from(reader.string()) : null
  try {
    return {
      type,
      bits,
      object: createPublicKey({ key: made.jwk, format: 'jwk' }),
      hash: made.hash,
      application,
    }
  } catch (cause) {
    throw new KeyFormatError('The numbers of the key are not those of a key.', { cause })
  }
}

interface Made {
  readonly jwk: webcrypto.JsonWebKey
  readonly hash: string | null
}

const text = (bytes: Buffer): string => bytes.toString('base64url')

function rsa(reader: Reader): Made {
  const [e, n] = [reader.mpint(), reader.mpint()]
  return { jwk: { kty: 'RSA', n: text(n), e: text(e) }, hash: null }
}

function ed25519(reader: Reader): Made {
  return { jwk: { kty: 'OKP', crv: 'Ed25519', x: text(reader.string()) }, hash: null }
}

function ecdsa(kind: string, reader: Reader): Made {
  const curve = curves[kind.replace('ecdsa-sha2-', '')]
  if (!curve) throw new KeyFormatError('Keys of this type are not used to sign.')
  reader.string()
  const point = reader.string()
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return { jwk: { kty: 'EC', crv: curve.crv, x: text(x), y: text(y) }, hash: curve.hash }
}

/** The blob of a key of node:crypto, public or private. */
export function blobOf(object: KeyObject): Buffer {
  const jwk = object.export({ format: 'jwk' })
  const bytes = (field: string | undefined): Buffer => Buffer.from(field ?? '', 'base64url')
  if (jwk.kty === 'RSA')
    return new Writer(600).string('ssh-rsa').mpint(bytes(jwk.e)).mpint(bytes(jwk.n)).bytes()
  if (jwk.kty === 'OKP' && jwk.crv === 'Ed25519')
    return new Writer().string('ssh-ed25519').string(bytes(jwk.x)).bytes()
  const [name] = Object.entries(curves).find(([, curve]) => jwk.kty === 'EC' && curve.crv === jwk.crv) ?? []
  if (!name) throw new KeyFormatError('SSH has no name for keys of this type.')
  const point = Buffer.concat([Buffer.of(4), bytes(jwk.x), bytes(jwk.y)])
  return new Writer().string(`ecdsa-sha2-${name}`).string(name).string(point).bytes()
}
