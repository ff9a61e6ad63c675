// The installation's key that signs recordings: Ed25519, made at the first start, kept sealed. Its public
// half is in every journal, so that a recording can be checked far from the server; whether it is the right
// one, is for people to compare.
import { createPrivateKey, createPublicKey, generateKeyPair, sign, verify, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

export interface RecordingKey {
  /** Raw, in base64. */
  readonly public_key: string
  sign(text: Buffer): Buffer
}

export interface KeyParts {
  keys: {
    list(): Promise<{ private_key: string }[]>
    /** Does not replace an existing key: the first of several nodes decides. */
    insert(row: { type: string; private_key: string; created_at: string }): Promise<unknown>
  }
  vault: { seal(purpose: string, plain: string): string; open(purpose: string, sealed: string): string }
  now(): string
}

const purpose = 'recording key'

export async function recordingKey({ keys, vault, now }: KeyParts): Promise<RecordingKey> {
  let [row] = await keys.list()
  if (!row) {
    const { privateKey } = await promisify(generateKeyPair)('ed25519')
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
    await keys.insert({ type: 'ed25519', private_key: vault.seal(purpose, pem), created_at: now() })
    ;[row] = await keys.list()
  }
  return keyFrom(createPrivateKey(vault.open(purpose, row!.private_key)))
}

export function keyFrom(privateKey: KeyObject): RecordingKey {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' }) as { x: string }
  return {
    public_key: Buffer.from(x, 'base64url').toString('base64'),
    sign: (text) => sign(null, text, privateKey),
  }
}

export function isSignedBy(public_key: string, text: Buffer, signature: Buffer): boolean {
  try {
    const x = Buffer.from(public_key, 'base64').toString('base64url')
    return verify(
      null,
      text,
      createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
      signature,
    )
  } catch {
    // Bytes that are no key cannot have signed anything.
    return false
  }
}
