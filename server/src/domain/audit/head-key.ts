// The installation's Ed25519 key that signs the heads of audit logs: made at the first start, stored sealed,
// shared by all nodes. `hawser audit verify` checks with its public half, which people store elsewhere.
import { createPrivateKey, createPublicKey, generateKeyPair, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Vault } from '../../kit/secrets.ts'
import type { Stores } from '../../storage/stores.ts'

export interface AuditSigner {
  /** Raw, in base64. */
  readonly public_key: string
  sign(text: string): string
}

const type = 'audit'
const purpose = 'audit key'

export async function auditSigner(
  keys: Pick<Stores['hostKeys'], 'list' | 'insert'>,
  vault: Vault,
  now: () => string,
): Promise<AuditSigner> {
  const load = async () => (await keys.list()).find((row) => row.type === type)
  let row = await load()
  if (!row) {
    const { privateKey } = await promisify(generateKeyPair)('ed25519')
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
    await keys.insert({ type, private_key: vault.seal(purpose, pem), created_at: now() })
    // Another node may have stored its key first.
    row = await load()
  }
  if (!row) throw new Error('The key of the audit log was not stored.')
  const key = createPrivateKey(vault.open(purpose, row.private_key))
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return {
    public_key: Buffer.from(x, 'base64url').toString('base64'),
    sign: (text) => sign(null, Buffer.from(text), key).toString('base64'),
  }
}
