// A small ShellHub in three shapes (see fixtures/): a MongoDB dump of 0.16 in relaxed Extended JSON, one of a
// later version in canonical Extended JSON, and a PostgreSQL database. The people are those of the contract's
// examples. The device is one whose key the test has, so that its agent can be started; and the real command
// that imports it all.
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { sample } from '@hawser/contract/examples'
import { deviceUid } from '../../server/src/kit/ids.ts'
import { environmentFor, hawser, run, type Outcome } from '../failures/program.ts'
import { freshDatabase } from '../harness/postgres.ts'
import { openAt } from '../storage/databases.ts'

export type Shape = 'relaxed' | 'canonical' | 'postgres'

export interface ShellHub extends Disposable {
  /** What the command is given. */
  readonly from: string
  /** The device `crane-1`. */
  readonly key: KeyObject
  readonly uid: string
  /** Changes a file of the dump; for a new one the text is empty. */
  edit(name: string, change: (text: string) => string): void
}

const fixtures = path.join(import.meta.dirname, 'fixtures')
/** The host name that the device's agent tells; from it the agent of the harness makes the MAC. */
export const hostname = 'crane'
const mac = `02:${createHash('md5')
  .update(hostname)
  .digest('hex')
  .slice(0, 10)
  .replaceAll(/(..)(?=.)/g, '$1:')}`

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

export async function shellHub(shape: Shape): Promise<ShellHub> {
  const public_key = createPublicKey(key).export({ type: 'pkcs1', format: 'pem' })
  const uid = deviceUid({ mac, public_key, tenant_id: sample.tenant })
  const filled = (text: string, escape: (value: string) => string): string =>
    text.replaceAll('@uid@', uid).replaceAll('@mac@', mac).replaceAll('@public_key@', escape(public_key))
  if (shape === 'postgres') {
    const from = await freshDatabase()
    const client = new pg.Client({ connectionString: from })
    await client.connect()
    await client.query(filled(readFileSync(path.join(fixtures, 'shellhub.sql'), 'utf8'), (value) => value))
    await client.end()
    const edit = (): never => {
      throw new Error('a database has no files')
    }
    return { from, key, uid, edit, [Symbol.dispose]: () => undefined }
  }
  const from = mkdtempSync(path.join(os.tmpdir(), 'hawser-shellhub-'))
  for (const name of readdirSync(path.join(fixtures, shape))) {
    const text = readFileSync(path.join(fixtures, shape, name), 'utf8')
    writeFileSync(
      path.join(from, name),
      filled(text, (value) => JSON.stringify(value).slice(1, -1)),
    )
  }
  return {
    from,
    key,
    uid,
    edit(name, change) {
      const file = path.join(from, name)
      writeFileSync(file, change(readdirSync(from).includes(name) ? readFileSync(file, 'utf8') : ''))
    },
    [Symbol.dispose]: () => rmSync(from, { recursive: true, force: true }),
  }
}

export interface Target extends Disposable {
  readonly folder: string
  /** Empty: SQLite in the folder. */
  readonly url: string
  import(from: string, ...options: string[]): Promise<Outcome>
}

export async function target(database: 'sqlite' | 'postgres'): Promise<Target> {
  const place = mkdtempSync(path.join(os.tmpdir(), 'hawser-target-'))
  const folder = path.join(place, 'data')
  mkdirSync(folder, { mode: 0o700 })
  const url = database === 'postgres' ? await freshDatabase() : ''
  return {
    folder,
    url,
    import: (from, ...options) =>
      run([process.execPath, hawser, 'import', 'shellhub', from, ...options], {
        env: environmentFor(folder, { HAWSER_DATABASE: url }),
      }),
    [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true }),
  }
}

const tables = [
  'users',
  'mfa_recovery_codes',
  'namespaces',
  'members',
  'devices',
  'device_tags',
  'tallies',
  'public_keys',
  'firewall_rules',
  'api_keys',
] as const

/** Every row of every table that an import writes to. */
export async function rowsOf({ url, folder }: Target): Promise<Record<string, unknown[]>> {
  await using storage = await openAt({ url, folder })
  const all: Record<string, unknown[]> = {}
  for (const table of tables) all[table] = await storage.opened.db.selectFrom(table).selectAll().execute()
  return all
}

/** What the report says of a kind: moved, there already, left out. */
export function counted(report: string, kind: string): number[] | undefined {
  const numbers = new RegExp(`^${kind} +(\\d+) +(\\d+) +(\\d+)$`, 'm').exec(report)
  return numbers?.slice(1).map(Number)
}
