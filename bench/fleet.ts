// A made-up fleet: any number of devices that look like real ones (keys of a real length, tags, versions, a
// spread of statuses and times), the same for the same number, written straight into the database of a server
// that is not yet running. Device i is the same device whatever the size of the fleet, so that sizes can be
// compared.
import { createHash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import { hashPassword } from '../server/src/domain/people/credentials.ts'
import { iso } from '../server/src/kit/clock.ts'
import { deviceUid } from '../server/src/kit/ids.ts'
import { openDatabase } from '../server/src/storage/database.ts'
import { stores } from '../server/src/storage/stores.ts'

export const tenant_id = '00000000-0000-4000-8000-00000000beef'
export const owner = { id: '65f0000000000000000000aa', username: 'olga', password: 'rope-and-anchor' }

const kinds = ['crane', 'buoy', 'pump', 'gate', 'winch'] as const
const systems = [
  ['debian', 'Debian GNU/Linux 12 (bookworm)', 'amd64'],
  ['ubuntu', 'Ubuntu 24.04.1 LTS', 'amd64'],
  ['raspbian', 'Raspbian GNU/Linux 11 (bullseye)', 'armv7l'],
  ['alpine', 'Alpine Linux v3.20', 'arm64'],
] as const

/**
 * A tag of twenty devices in a fleet of any size; one of the devices that are gone; tags of a fiftieth each.
 */
export const rareTag = 'canary'
export const goneTag = 'retired'
export const siteTag = (i: number): string => `site-${String(i % 50).padStart(2, '0')}`

/** Unique for the first ten million: the factor shares no divisor with their number. */
export const digitsOf = (i: number): string =>
  String((i * 6_364_137 + 1_442_695) % 10_000_000).padStart(7, '0')

/** The fiftieth that is offline for good. */
export const isGone = (i: number): boolean => digitsOf(i) >= '9800000'

/** In the form of agents, PKCS #1 of RSA 2048 in PEM. Only its looks are real. */
function publicKeyOf(i: number): string {
  const middle = createHash('shake256', { outputLength: 255 }).update(`device ${i}`).digest('base64')
  const lines = `MIIBCgKCAQEA${middle}wIDAQAB`.match(/.{1,64}/g) ?? []
  return `-----BEGIN RSA PUBLIC KEY-----\n${lines.join('\n')}\n-----END RSA PUBLIC KEY-----\n`
}

/** The agent's body for Auth device; a caller that acts as the device gives it a key. */
export function authBody(i: number, public_key = publicKeyOf(i)) {
  const [id, pretty_name, arch] = systems[i % systems.length]!
  const digits = digitsOf(i)
  return {
    info: { id, pretty_name, version: `v0.${16 + (i % 3)}.${i % 7}`, arch, platform: 'native' },
    sessions: [],
    hostname: `${kinds[i % kinds.length]!}-${digits}`,
    identity: {
      mac: `02:00:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4, 6)}:0${digits.slice(6)}`,
    },
    public_key,
    tenant_id,
  }
}

export function uidOf(i: number): string {
  const { identity, public_key } = authBody(i)
  return deviceUid({ mac: identity.mac, public_key, tenant_id })
}

/** The first ninety of every hundred devices are accepted. */
export const isAccepted = (i: number): boolean => i % 100 < 90

function rowOf(i: number, now: number, public_key: string | undefined) {
  const body = authBody(i, public_key)
  const { mac } = body.identity
  const scattered = Number(digitsOf(i))
  const created_at = iso(now - scattered * 3000)
  const status = isAccepted(i) ? 'accepted' : i % 100 < 98 ? 'pending' : i % 100 < 99 ? 'rejected' : 'unused'
  return {
    uid: deviceUid({ mac, public_key: body.public_key, tenant_id }),
    tenant_id,
    name: body.hostname,
    mac,
    public_key: body.public_key,
    info_id: body.info.id,
    info_pretty_name: body.info.pretty_name,
    info_version: body.info.version,
    info_arch: body.info.arch,
    info_platform: body.info.platform,
    status,
    status_update_at: created_at,
    created_at,
    remote_addr: `198.51.${i % 100}.${i % 251}`,
    position: '{"latitude":0,"longitude":0}',
    public_url: 0,
    public_url_address: '',
    tags: JSON.stringify([
      siteTag(i),
      ...(isGone(i) ? [goneTag] : i % 2 === 0 ? ['edge'] : []),
      ...(i < 20 ? [rareTag] : []),
    ]),
    last_seen: iso(now - 600_000 - scattered * 250),
    online: 0,
  } as const
}

export interface Planted {
  readonly seconds: number
  readonly rows_per_second: number
  readonly file_mb: number
}

const rows_per_statement = 200
const rows_per_transaction = 20_000
const planting_cache_kib = 1024 * 1024

/**
 * With the triggers and indexes in force. With a public key it is that of all devices, which are told apart
 * by their addresses: a million keys would take days to make.
 */
export async function plantFleet(
  folder: string,
  count: number,
  progress: (done: number) => void,
  public_key?: string,
): Promise<Planted | undefined> {
  const file = path.join(folder, 'hawser.db')
  if (existsSync(file)) return undefined
  const now = Date.now()
  const started = performance.now()
  {
    await using opened = await openDatabase({
      url: '',
      folder,
      now: () => iso(now),
      onError: (error) => {
        throw error
      },
    })
    await plantOwner(stores(opened), iso(now))
    // Only while planting: a million random inserts into fifteen indexes want more of the file in memory than
    // a server.
    await sql.raw(`pragma cache_size = ${-planting_cache_kib}`).execute(opened.db)
    await sql`pragma synchronous = off`.execute(opened.db)
    for (let start = 0; start < count; start += rows_per_transaction) {
      const end = Math.min(start + rows_per_transaction, count)
      await opened.db.transaction().execute(async (trx) => {
        for (let from = start; from < end; from += rows_per_statement) {
          const rows = Array.from({ length: Math.min(rows_per_statement, end - from) }, (_, k) =>
            rowOf(from + k, now, public_key),
          )
          await trx.insertInto('devices').values(rows).execute()
        }
      })
      progress(end)
    }
  }
  const seconds = (performance.now() - started) / 1000
  return { seconds, rows_per_second: count / seconds, file_mb: statSync(file).size / 1024 / 1024 }
}

export async function plantOwner(
  { users, namespaces }: ReturnType<typeof stores>,
  now: string,
): Promise<void> {
  await users.insert({
    id: owner.id,
    username: owner.username,
    email: 'olga@example.com',
    name: 'Olga',
    recovery_email: null,
    password: await hashPassword(owner.password),
    confirmed: 1,
    epoch: 1,
    email_marketing: 0,
    max_namespaces: -1,
    preferred_tenant: tenant_id,
    mfa_secret: null,
    mfa_step: 0,
    created_at: now,
    last_login_at: null,
  })
  await namespaces.insert({
    tenant_id,
    name: 'harbour',
    owner: owner.id,
    session_record: 1,
    connection_announcement: '',
    max_devices: -1,
    billing: null,
    created_at: now,
  })
  await namespaces.addMember({ tenant_id, user_id: owner.id, role: 'owner', epoch: 'first', created_at: now })
}

/** For the bare routes: only the table and its key, in a file of their own. */
export function plantBare(folder: string): string {
  const file = path.join(folder, 'bare.db')
  if (existsSync(file)) return file
  const database = new DatabaseSync(file)
  database.exec('pragma journal_mode = wal; pragma synchronous = off')
  database.prepare('attach ? as fleet').run(path.join(folder, 'hawser.db'))
  database.exec(`
    create table devices (id integer primary key, uid text not null unique, tenant_id text not null, name text not null,
      mac text not null, public_key text not null, info_id text not null, info_pretty_name text not null,
      info_version text not null, info_arch text not null, info_platform text not null, status text not null,
      status_update_at text not null, created_at text not null, remote_addr text not null, position text not null,
      public_url integer not null, public_url_address text not null, tags text not null, last_seen text not null,
      online integer not null);
  `)
  // Only columns of the bare routes: later ones of the server are useless to them.
  const columns = database
    .prepare("select group_concat(name) as names from pragma_table_info('devices')")
    .get() as { names: string }
  database.exec(`insert into devices (${columns.names}) select ${columns.names} from fleet.devices`)
  database.close()
  return file
}
