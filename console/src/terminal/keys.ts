// Private keys in the browser. A key is read from a file of ssh-keygen or openssl, imported into WebCrypto as
// non-extractable, and used only to sign a login. It is never sent and never stored. Supported formats are
// OpenSSH's own, PKCS#8 and the older ones of RSA and EC. A key with a passphrase is recognised and refused.
import { UserError } from '../error-text.ts'
import {
  der,
  fromBase64,
  indexOf,
  joined,
  lengthed,
  mpint,
  padded,
  Reader,
  same,
  toBase64,
  toBase64Url,
  withoutZeros,
} from './bytes.ts'
import { msg, t } from '../language/language.ts'

export interface PrivateKey {
  /** As registered with the namespace: type and base64. */
  readonly line: string
  /** Signs a login, after checking the challenge. */
  sign(challenge: Uint8Array, user: string): Promise<Uint8Array>
}

/** Why a key cannot be used. */
export class KeyError extends UserError {
  override readonly name = 'KeyTrouble'
}

const locked = msg(
  'This key is protected by a passphrase, which is not supported in the browser. Use your SSH client or a key without a passphrase.',
)
const unreadable = msg(
  'This is not a private key that the browser can read. Provide the whole file, from -----BEGIN to END-----.',
)

const oid = {
  rsa: Uint8Array.of(0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01),
  ec: Uint8Array.of(0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01),
  ed25519: Uint8Array.of(0x06, 0x03, 0x2b, 0x65, 0x70),
}

interface Curve {
  readonly jwk: 'P-256' | 'P-384' | 'P-521'
  readonly ssh: string
  readonly hash: string
  readonly bytes: number
  readonly oid: Uint8Array
}

const curves: readonly Curve[] = [
  {
    jwk: 'P-256',
    ssh: 'nistp256',
    hash: 'SHA-256',
    bytes: 32,
    oid: Uint8Array.of(0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07),
  },
  {
    jwk: 'P-384',
    ssh: 'nistp384',
    hash: 'SHA-384',
    bytes: 48,
    oid: Uint8Array.of(0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22),
  },
  {
    jwk: 'P-521',
    ssh: 'nistp521',
    hash: 'SHA-512',
    bytes: 66,
    oid: Uint8Array.of(0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23),
  },
]

type Algorithm =
  | typeof rsaAlgorithm
  | { readonly name: 'ECDSA'; readonly namedCurve: Curve['jwk'] }
  | { readonly name: 'Ed25519' }
type Jwk = Partial<
  Record<'kty' | 'crv' | 'n' | 'e' | 'd' | 'p' | 'q' | 'dp' | 'dq' | 'qi' | 'x' | 'y', string>
>
const parts = ['kty', 'crv', 'n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi', 'x', 'y'] as const
const rsaAlgorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-512' } as const

export async function readPrivateKey(text: string): Promise<PrivateKey> {
  // Browsers offer WebCrypto only to pages that came over HTTPS.
  if (!globalThis.crypto?.subtle)
    throw new KeyError(t('Browsers only sign with keys on HTTPS pages. Use a password.'))
  const jwk = await jwkOf(text).catch((error: unknown) => {
    throw error instanceof KeyError ? error : new KeyError(t(unreadable), { cause: error })
  })
  return keyFrom(jwk)
}

async function jwkOf(text: string): Promise<Jwk> {
  const [, label = '', , body = ''] =
    /-----BEGIN ([A-Z ]+)-----\r?\n((?:[\w-]+:[^\n]*\n)*)([^-]+)-----END/.exec(text) ?? []
  if (label === 'ENCRYPTED PRIVATE KEY' || text.includes('Proc-Type: 4,ENCRYPTED'))
    throw new KeyError(t(locked))
  if (label === 'OPENSSH PRIVATE KEY') return readOpenSsh(fromBase64(body))
  if (label === 'PRIVATE KEY') return readPkcs8(fromBase64(body))
  if (label === 'RSA PRIVATE KEY') return readPkcs8(wrapped(joined(oid.rsa, der(0x05)), fromBase64(body)))
  if (label === 'EC PRIVATE KEY') {
    const bytes = fromBase64(body)
    const curve = curves.find((one) => indexOf(bytes, one.oid) !== -1)
    if (curve) return readPkcs8(wrapped(joined(oid.ec, curve.oid), bytes))
  }
  if (/^(ssh-|ecdsa-)\S+ /.test(text.trim()))
    throw new KeyError(t('This is a public key. The private key is in the file without .pub.'))
  throw new KeyError(t(unreadable))
}

/** Wraps a key of an older format in PKCS#8. */
const wrapped = (algorithm: Uint8Array, key: Uint8Array): Uint8Array<ArrayBuffer> =>
  der(0x30, der(0x02, Uint8Array.of(0)), der(0x30, algorithm), der(0x04, key))

async function readPkcs8(bytes: Uint8Array<ArrayBuffer>): Promise<Jwk> {
  const head = bytes.subarray(0, 40)
  const curve = curves.find((one) => indexOf(head, one.oid) !== -1)
  const algorithm: Algorithm | undefined =
    indexOf(head, oid.rsa) !== -1
      ? rsaAlgorithm
      : curve
        ? { name: 'ECDSA', namedCurve: curve.jwk }
        : indexOf(head, oid.ed25519) !== -1
          ? { name: 'Ed25519' }
          : undefined
  if (!algorithm) throw new KeyError(t('This type of key is not supported. Use RSA, ECDSA or Ed25519.'))
  const key = await crypto.subtle.importKey('pkcs8', bytes, algorithm, true, ['sign'])
  const jwk: Jwk = await crypto.subtle.exportKey('jwk', key)
  // Drop `key_ops` and the like, which would restrict the key made from it.
  return Object.fromEntries(parts.flatMap((name) => (jwk[name] === undefined ? [] : [[name, jwk[name]]])))
}

/** OpenSSH's file PROTOCOL.key describes the format. */
function readOpenSsh(bytes: Uint8Array): Jwk {
  const reader = new Reader(bytes)
  if (!same(reader.take(15), new TextEncoder().encode('openssh-key-v1\0'))) throw new KeyError(t(unreadable))
  const cipher = reader.text()
  reader.string()
  reader.string()
  if (cipher !== 'none') throw new KeyError(t(locked))
  if (reader.uint32() !== 1)
    throw new KeyError(t('The file contains several keys. Use a file with a single key.'))
  reader.string()
  const secret = new Reader(reader.string())
  secret.take(8)
  const type = secret.text()
  if (type === 'ssh-ed25519') {
    const x = secret.string()
    return { kty: 'OKP', crv: 'Ed25519', x: toBase64Url(x), d: toBase64Url(secret.string().subarray(0, 32)) }
  }
  if (type === 'ssh-rsa') {
    const [n, e, d, qi, p, q] = [
      secret.string(),
      secret.string(),
      secret.string(),
      secret.string(),
      secret.string(),
      secret.string(),
    ]
    const [dp, dq] = [p, q].map((prime) => bytesOf(numberOf(d) % (numberOf(prime) - 1n)))
    const text = (number: Uint8Array): string => toBase64Url(withoutZeros(number))
    return {
      kty: 'RSA',
      n: text(n),
      e: text(e),
      d: text(d),
      p: text(p),
      q: text(q),
      dp: text(dp!),
      dq: text(dq!),
      qi: text(qi),
    }
  }
  const curve = curves.find(({ ssh }) => type === `ecdsa-sha2-${ssh}`)
  if (!curve) throw new KeyError(t('Browsers do not support this type of key. Use RSA, ECDSA or Ed25519.'))
  secret.string()
  const point = secret.string()
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  const d = padded(secret.string(), curve.bytes)
  return { kty: 'EC', crv: curve.jwk, x: toBase64Url(x), y: toBase64Url(y), d: toBase64Url(d) }
}

const numberOf = (bytes: Uint8Array): bigint =>
  bytes.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
function bytesOf(number: bigint): Uint8Array {
  const hex = number.toString(16)
  return Uint8Array.from((hex.length % 2 ? `0${hex}` : hex).match(/../g) ?? [], (byte) =>
    Number.parseInt(byte, 16),
  )
}

async function keyFrom(jwk: Jwk): Promise<PrivateKey> {
  const curve = curves.find((one) => one.jwk === jwk.crv)
  const algorithm: Algorithm =
    jwk.kty === 'RSA' ? rsaAlgorithm : curve ? { name: 'ECDSA', namedCurve: curve.jwk } : { name: 'Ed25519' }
  const key = await crypto.subtle
    .importKey('jwk', jwk, algorithm, false, ['sign'])
    .catch((cause: unknown) => {
      const sentence =
        jwk.crv === 'Ed25519' ? t('This browser cannot sign with Ed25519 keys yet.') : t(unreadable)
      throw new KeyError(sentence, { cause })
    })
  const part = (name: 'n' | 'e' | 'x' | 'y'): Uint8Array => fromBase64(jwk[name] ?? '')
  const type = jwk.kty === 'RSA' ? 'ssh-rsa' : curve ? `ecdsa-sha2-${curve.ssh}` : 'ssh-ed25519'
  const blob = joined(
    lengthed(type),
    ...(jwk.kty === 'RSA'
      ? [mpint(part('e')), mpint(part('n'))]
      : curve
        ? [lengthed(curve.ssh), lengthed(joined(Uint8Array.of(4), part('x'), part('y')))]
        : [lengthed(part('x'))]),
  )
  return {
    line: `${type} ${toBase64(blob)}`,
    async sign(challenge, user) {
      const expected = type === 'ssh-ed25519' || curve ? type : 'rsa-sha2-512'
      if (!isLogin(challenge, user, expected, blob))
        throw new KeyError(t('The server requested a signature that does not belong to this login.'))
      const bytes = new Uint8Array(challenge)
      const made = new Uint8Array(
        await crypto.subtle.sign(curve ? { name: 'ECDSA', hash: curve.hash } : algorithm.name, key, bytes),
      )
      // WebCrypto gives both numbers at full length; SSH wants two mpints (RFC 5656 section 3.1.2).
      return curve ? joined(mpint(made.subarray(0, curve.bytes)), mpint(made.subarray(curve.bytes))) : made
    },
  }
}

/** Whether the challenge is a login of RFC 4252 section 7, and nothing else. */
function isLogin(challenge: Uint8Array, user: string, algorithm: string, blob: Uint8Array): boolean {
  const expected = joined(
    Uint8Array.of(50),
    lengthed(user),
    lengthed('ssh-connection'),
    lengthed('publickey'),
    Uint8Array.of(1),
    lengthed(algorithm),
    lengthed(blob),
  )
  return challenge.length === 4 + 32 + expected.length && same(challenge.subarray(36), expected)
}
