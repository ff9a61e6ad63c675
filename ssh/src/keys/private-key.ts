// Private keys: read from OpenSSH's own format (encrypted or not), PKCS#1, PKCS#8 and SEC 1; written in
// OpenSSH's. OpenSSH's format (its PROTOCOL.key), in base64 between the lines of a PEM file:
//   bytes "openssh-key-v1" NUL
//   string cipher, string kdf, string kdf options (for bcrypt: string salt, uint32 rounds)
//   uint32 number of keys, always 1
//   string public key blob
//   string encrypted: uint32 check, uint32 check again, the private key, string comment, padding 1 2 3 …
// and the private key begins with string type, followed by
//   ssh-ed25519   string public, string private and public together
//   ecdsa-sha2-…  string curve, string point, mpint d
//   ssh-rsa       mpint n, e, d, iqmp, p, q
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  type CipherGCMTypes,
  type KeyObject,
  type webcrypto,
} from 'node:crypto'
import { ProtocolError } from '../errors.ts'
import { Reader, Writer } from '../wire.ts'
import { bcryptPbkdf } from './bcrypt-pbkdf.ts'
import { blobOf, curves } from './key-object.ts'
import { KeyFormatError, parsePublicKeyBlob } from './public-key.ts'
import { algorithmsOf, signData } from './signature.ts'

/** A private key in memory. */
export interface PrivateKey {
  readonly type: string
  readonly blob: Buffer
  readonly comment: string
  /** Best first. */
  readonly algorithms: readonly string[]
  sign(algorithm: string, data: Buffer): Promise<Buffer>
  readonly object: KeyObject
}

/** The file is encrypted, and the passphrase is missing or wrong. */
export class PassphraseNeeded extends Error {
  override readonly name = 'PassphraseNeeded'
}

const magic = Buffer.from('openssh-key-v1\0')
/** More would take minutes: the file sets how often its passphrase is hashed. */
const mostRounds = 1_000
const ownRounds = 24
const longestFile = 65_536
const fileCiphers: Readonly<
  Record<
    string,
    { readonly algorithm: string; readonly key: number; readonly iv: number; readonly tag: number }
  >
> = {
  'aes128-ctr': { algorithm: 'aes-128-ctr', key: 16, iv: 16, tag: 0 },
  'aes192-ctr': { algorithm: 'aes-192-ctr', key: 24, iv: 16, tag: 0 },
  'aes256-ctr': { algorithm: 'aes-256-ctr', key: 32, iv: 16, tag: 0 },
  'aes128-cbc': { algorithm: 'aes-128-cbc', key: 16, iv: 16, tag: 0 },
  'aes192-cbc': { algorithm: 'aes-192-cbc', key: 24, iv: 16, tag: 0 },
  'aes256-cbc': { algorithm: 'aes-256-cbc', key: 32, iv: 16, tag: 0 },
  'aes128-gcm@openssh.com': { algorithm: 'aes-128-gcm', key: 16, iv: 12, tag: 16 },
  'aes256-gcm@openssh.com': { algorithm: 'aes-256-gcm', key: 32, iv: 12, tag: 16 },
}

/** For keys of node:crypto. */
export function privateKeyFrom(object: KeyObject, comment = ''): PrivateKey {
  const blob = blobOf(object)
  const { type } = parsePublicKeyBlob(blob)
  const algorithms = algorithmsOf(type)
  return {
    type,
    blob,
    comment,
    algorithms,
    object,
    async sign(algorithm, data) {
      if (!algorithms.includes(algorithm))
        throw new KeyFormatError(`A key of type ${type} cannot sign with ${algorithm}.`)
      return signData(object, algorithm, data)
    },
  }
}

/** Ed25519, ECDSA on P-256, or RSA of 3072 bits. */
export function generatePrivateKey(type: 'ed25519' | 'ecdsa' | 'rsa' = 'ed25519', comment = ''): PrivateKey {
  const { privateKey } =
    type === 'ed25519'
      ? generateKeyPairSync('ed25519')
      : type === 'ecdsa'
        ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
        : generateKeyPairSync('rsa', { modulusLength: 3072 })
  return privateKeyFrom(privateKey, comment)
}

/** A file of OpenSSH, or in PEM. Throws PassphraseNeeded, or KeyFormatError. */
export function parsePrivateKey(file: string | Buffer, passphrase?: string): PrivateKey {
  const text = file.toString()
  if (text.length > longestFile) throw new KeyFormatError('The key file is far too long.')
  const openssh = /-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END OPENSSH PRIVATE KEY-----/.exec(text)
  try {
    if (openssh) return parseOpenSsh(Buffer.from(openssh[1]!, 'base64'), passphrase)
    return privateKeyFrom(
      createPrivateKey({ key: text, format: 'pem', ...(passphrase === undefined ? {} : { passphrase }) }),
    )
  } catch (cause) {
    if (cause instanceof KeyFormatError || cause instanceof PassphraseNeeded) throw cause
    if (!openssh && /ENCRYPTED/.test(text))
      throw new PassphraseNeeded('The key needs its passphrase.', { cause })
    throw new KeyFormatError('This is not a private key.', { cause })
  }
}

function parseOpenSsh(bytes: Buffer, passphrase: string | undefined): PrivateKey {
  const reader = new Reader(bytes)
  if (!reader.raw(magic.length).equals(magic))
    throw new KeyFormatError('This is not a private key of OpenSSH.')
  const [cipher, kdf, options] = [reader.text(), reader.text(), reader.string()]
  if (reader.uint32() !== 1) throw new KeyFormatError('A file with several private keys is not supported.')
  const blob = reader.string()
  const sealed = reader.string()
  const opened = cipher === 'none' ? sealed : decrypt(cipher, kdf, options, sealed, reader.rest(), passphrase)

  const inner = new Reader(opened)
  if (opened.length < 8 || inner.uint32() !== inner.uint32()) {
    if (cipher !== 'none') throw new PassphraseNeeded('The passphrase is wrong.')
    throw new KeyFormatError('The private key is damaged.')
  }
  const object = createPrivateKey({ key: readNumbers(inner), format: 'jwk' })
  const key = privateKeyFrom(object, inner.text())
  if (!key.blob.equals(blob))
    throw new KeyFormatError('The private key does not belong to the public key of its file.')
  return key
}

function decrypt(
  cipher: string,
  kdf: string,
  options: Buffer,
  sealed: Buffer,
  rest: Buffer,
  passphrase: string | undefined,
): Buffer {
  const known = fileCiphers[cipher]
  if (!known || kdf !== 'bcrypt')
    throw new KeyFormatError(`Key files encrypted with ${cipher} are not supported.`)
  if (passphrase === undefined || passphrase === '')
    throw new PassphraseNeeded('The key needs its passphrase.')
  const reader = new Reader(options)
  const [salt, rounds] = [reader.string(), reader.uint32()]
  if (rounds < 1 || rounds > mostRounds)
    throw new KeyFormatError('The key file requires too many rounds of hashing.')
  const derived = bcryptPbkdf(Buffer.from(passphrase), salt, rounds, known.key + known.iv)
  const [key, iv] = [derived.subarray(0, known.key), derived.subarray(known.key)]
  try {
    if (known.tag > 0) {
      const decipher = createDecipheriv(known.algorithm as CipherGCMTypes, key, iv)
      decipher.setAuthTag(rest.subarray(0, known.tag))
      return Buffer.concat([decipher.update(sealed), decipher.final()])
    }
    const decipher = createDecipheriv(known.algorithm, key, iv).setAutoPadding(false)
    return Buffer.concat([decipher.update(sealed), decipher.final()])
  } catch (cause) {
    if (cause instanceof ProtocolError) throw cause
    throw new PassphraseNeeded('The passphrase is wrong.', { cause })
  }
}

const number = (bytes: Buffer): bigint => BigInt(`0x0${bytes.toString('hex')}`)
const text = (bytes: Buffer): string => bytes.toString('base64url')
function magnitude(value: bigint): Buffer {
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
}

function readNumbers(reader: Reader): webcrypto.JsonWebKey {
  const type = reader.text()
  if (type === 'ssh-ed25519') {
    const [x, both] = [reader.string(), reader.string()]
    return { kty: 'OKP', crv: 'Ed25519', x: text(x), d: text(both.subarray(0, 32)) }
  }
  if (type === 'ssh-rsa') {
    const [n, e, d, qi, p, q] = [
      reader.mpint(),
      reader.mpint(),
      reader.mpint(),
      reader.mpint(),
      reader.mpint(),
      reader.mpint(),
    ]
    const part = (prime: Buffer): string => text(magnitude(number(d) % (number(prime) - 1n)))
    return {
      kty: 'RSA',
      n: text(n),
      e: text(e),
      d: text(d),
      p: text(p),
      q: text(q),
      dp: part(p),
      dq: part(q),
      qi: text(qi),
    }
  }
  const curve = curves[type.replace('ecdsa-sha2-', '')]
  if (!curve) throw new KeyFormatError(`Private keys of type ${type} are not supported.`)
  reader.string()
  const [point, d] = [reader.string(), reader.mpint()]
  const full = Buffer.concat([Buffer.alloc(Math.max(0, curve.bytes - d.length)), d])
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return { kty: 'EC', crv: curve.crv, x: text(x), y: text(y), d: text(full) }
}

/** In the form of `ssh-keygen`; encrypted if there is a passphrase. */
export function privateKeyFile(key: PrivateKey, passphrase = ''): string {
  const inner = new Writer(2_048)
  const check = randomBytes(4)
  inner.raw(check).raw(check)
  writeNumbers(inner, key)
  inner.string(key.comment)
  const block = passphrase === '' ? 8 : 16
  for (let byte = 1; inner.length % block !== 0; byte += 1) inner.byte(byte)

  const file = new Writer(2_400).raw(magic)
  if (passphrase === '') {
    file.string('none').string('none').string('').uint32(1).string(key.blob).string(inner.bytes())
  } else {
    const salt = randomBytes(16)
    const derived = bcryptPbkdf(Buffer.from(passphrase), salt, ownRounds, 48)
    const sealed = createCipheriv('aes-256-ctr', derived.subarray(0, 32), derived.subarray(32)).update(
      inner.bytes(),
    )
    const options = new Writer().string(salt).uint32(ownRounds).bytes()
    file.string('aes256-ctr').string('bcrypt').string(options).uint32(1).string(key.blob).string(sealed)
  }
  const lines = file
    .bytes()
    .toString('base64')
    .replaceAll(/(.{70})(?=.)/g, '$1\n')
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines}\n-----END OPENSSH PRIVATE KEY-----\n`
}

function writeNumbers(writer: Writer, key: PrivateKey): void {
  const jwk = key.object.export({ format: 'jwk' })
  const bytes = (field: string | undefined): Buffer => Buffer.from(field ?? '', 'base64url')
  writer.string(key.type)
  if (key.type === 'ssh-rsa') {
    for (const field of [jwk.n, jwk.e, jwk.d, jwk.qi, jwk.p, jwk.q]) writer.mpint(bytes(field))
  } else if (key.type === 'ssh-ed25519') {
    writer.string(bytes(jwk.x)).string(Buffer.concat([bytes(jwk.d), bytes(jwk.x)]))
  } else {
    const point = Buffer.concat([Buffer.of(4), bytes(jwk.x), bytes(jwk.y)])
    writer.string(key.type.replace('ecdsa-sha2-', '')).string(point).mpint(bytes(jwk.d))
  }
}
