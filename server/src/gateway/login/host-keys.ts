// The gateway's host keys. They are created at the first start and stored, sealed, in the database, so that
// clients know the server again after a restart and on every node. Ed25519 is for today's clients. RSA is for
// old ones; it takes long to create, so at the very first start it is added a moment later.
import { createPrivateKey, generateKeyPair, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { privateKeyFrom, type PrivateKey } from '@hawser/ssh'

export interface HostKeyParts {
  keys: {
    list(): Promise<{ type: string; private_key: string }[]>
    /** Does not replace an existing key: the first of several nodes decides. */
    insert(row: { type: string; private_key: string; created_at: string }): Promise<unknown>
  }
  vault: { seal(purpose: string, plain: string): string; open(purpose: string, sealed: string): string }
  now(): string
  later(what: string, work: () => Promise<void>): void
}

const purpose = 'host key'
const makers: Readonly<Record<string, () => Promise<{ privateKey: KeyObject }>>> = {
  'ssh-ed25519': () => promisify(generateKeyPair)('ed25519'),
  'ssh-rsa': () => promisify(generateKeyPair)('rsa', { modulusLength: 3072 }),
}

/** Best first; the list may still grow. */
export async function hostKeys({ keys, vault, now, later }: HostKeyParts): Promise<readonly PrivateKey[]> {
  const list: PrivateKey[] = []
  const load = async (): Promise<void> =>
    void list.splice(0, list.length, ...(await storedHostKeys(keys, vault)))
  const make = async (type: string): Promise<void> => {
    const pem = (await makers[type]!()).privateKey.export({ type: 'pkcs8', format: 'pem' })
    await keys.insert({ type, private_key: vault.seal(purpose, pem), created_at: now() })
    await load()
  }
  await load()
  const types = new Set(list.map(({ type }) => type))
  if (!types.has('ssh-ed25519')) await make('ssh-ed25519')
  if (!types.has('ssh-rsa')) later('host-key', () => make('ssh-rsa'))
  return list
}

/** A key that all nodes share: made when it is first needed, and stored sealed. */
export async function sharedKey(
  { keys, vault, now }: Pick<HostKeyParts, 'keys' | 'vault' | 'now'>,
  type: string,
  purpose: string,
): Promise<PrivateKey> {
  const load = async (): Promise<PrivateKey | undefined> => {
    const row = (await keys.list()).find((one) => one.type === type)
    return row && privateKeyFrom(createPrivateKey(vault.open(purpose, row.private_key)))
  }
  const stored = await load()
  if (stored) return stored
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  await keys.insert({ type, private_key: vault.seal(purpose, pem), created_at: now() })
  // Another node may have been quicker.
  const made = await load()
  if (!made) throw new Error(`The ${purpose} was not stored.`)
  return made
}

/** Best first. */
export async function storedHostKeys(
  keys: Pick<HostKeyParts['keys'], 'list'>,
  vault: Pick<HostKeyParts['vault'], 'open'>,
): Promise<PrivateKey[]> {
  const rows = await keys.list()
  return Object.keys(makers).flatMap((type) =>
    rows
      .filter((row) => row.type === type)
      .map((row) => privateKeyFrom(createPrivateKey(vault.open(purpose, row.private_key)))),
  )
}
