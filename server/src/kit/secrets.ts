// Secrets at rest: hashed if they only need to be recognised, else encrypted under the installation's master
// key. A sealed value is the base64 of 1 byte version (1), 12 bytes nonce, ciphertext, 16 bytes GCM tag. The
// `purpose` is authenticated, so a value cannot be moved to a field of another kind.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** For random secrets only (tokens, API keys): they cannot be guessed, so a fast hash is enough. */
export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

export function sameText(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(hashOf(a)), Buffer.from(hashOf(b)))
}

export interface Vault {
  seal(purpose: string, plain: string): string
  open(purpose: string, sealed: string): string
  /** A keyed hash, for secrets so short that a reader of the database could search a plain hash. */
  mark(purpose: string, secret: string): string
}

const version = 1

export function vault(masterKey: Buffer): Vault {
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), use, 32))
  const key = derive('hawser vault 1')
  const marking = derive('hawser marks 1')
  return {
    seal(purpose, plain) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(version), nonce, body, cipher.getAuthTag()]).toString('base64')
    },
    open(purpose, sealed) {
      const bytes = Buffer.from(sealed, 'base64')
      if (bytes[0] !== version || bytes.length < 29) throw new Error(`a sealed ${purpose} is damaged`)
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 13))
      decipher.setAAD(Buffer.from(purpose))
      decipher.setAuthTag(bytes.subarray(-16))
      return decipher.update(bytes.subarray(13, -16), undefined, 'utf8') + decipher.final('utf8')
    },
    mark: (purpose, secret) => createHmac('sha256', marking).update(`${purpose}\n${secret}`).digest('hex'),
  }
}

const fileOf = (folder: string): string => path.join(folder, 'master.key')

export const hasMasterKey = (folder: string, given = ''): boolean =>
  given !== '' || existsSync(fileOf(folder))

/** The given key, else 32 random bytes in a file that only its owner can read, made at the first start. */
export function masterKey(folder: string, given = ''): Buffer {
  if (given !== '') return Buffer.from(given, 'hex')
  const file = fileOf(folder)
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // Written aside, then linked: a crash leaves no key or a whole one, and of two first starts only one
    // wins.
    const draft = `${file}.${randomBytes(4).toString('hex')}`
    writeFileSync(draft, randomBytes(32).toString('hex') + '\n', { mode: 0o600, flush: true })
    try {
      linkSync(draft, file)
    } catch (error) {
      if (!existsSync(file)) throw error
    }
    unlinkSync(draft)
  }
  chmodSync(file, 0o600)
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (key.length !== 32) throw new Error(`${file} is not a master key: 64 hex characters are expected`)
  return key
}
