// The databases that the storage suite runs over, and rows to put into them. A test says `for (const database
// of databases) describe(database.name, …)`, so that whatever it claims is claimed of SQLite and of a real
// PostgreSQL alike. Rows come whole and valid; a test names only the columns that it is about.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { BudgetRow } from '../../server/src/storage/budgets.ts'
import { openDatabase } from '../../server/src/storage/database.ts'
import type { DeviceRow } from '../../server/src/storage/devices.ts'
import type { SessionEventRow } from '../../server/src/storage/session-events.ts'
import type { ServiceRow } from '../../server/src/storage/services.ts'
import type { SessionRow } from '../../server/src/storage/sessions.ts'
import { stores, type Stores } from '../../server/src/storage/stores.ts'
import type { UserRow } from '../../server/src/storage/users.ts'
import { freshDatabase, migratedDatabase } from '../harness/postgres.ts'
import { madeOnce, spacious } from '../harness/shared.ts'

export type Opened = Awaited<ReturnType<typeof openDatabase>>

/** Where a database is: enough to open it again. */
export interface Place {
  readonly url: string
  readonly folder: string
}

export interface Storage extends AsyncDisposable {
  readonly opened: Opened
  readonly stores: Stores
}

export interface Database {
  readonly name: string
  /** An empty place that goes with the test. */
  fresh(): Promise<Place & Disposable>
  /** The same with the schema in it, from a template that was migrated once for the run. */
  migrated(): Promise<Place & Disposable>
}

export const now = '2026-05-01T12:00:00.000Z'
export const later = '2026-05-02T12:00:00.000Z'
export const earlier = '2026-04-30T12:00:00.000Z'

export const databases: readonly Database[] = [
  { name: 'SQLite', fresh: async () => placeOf(''), migrated: migratedFile },
  {
    name: 'PostgreSQL',
    fresh: async () => placeOf(await freshDatabase()),
    migrated: async () => placeOf(await migratedDatabase()),
  },
]

async function migratedFile(): Promise<Place & Disposable> {
  const template = await madeOnce('migrated', async (folder) => {
    await using _ = await openAt({ url: '', folder })
  })
  const place = placeOf('')
  copyFileSync(path.join(template, 'hawser.db'), path.join(place.folder, 'hawser.db'))
  return place
}

function placeOf(url: string): Place & Disposable {
  const folder = mkdtempSync(path.join(spacious(), 'hawser-storage-'))
  return { url, folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Opens what is there, or makes it. */
export async function openAt(place: Place): Promise<Storage> {
  const onError = (error: Error): never => {
    throw error
  }
  const opened = await openDatabase({ url: place.url, folder: place.folder, now: () => now, onError })
  return { opened, stores: stores(opened), [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

/** A new database with the schema, open; both go together. */
export async function openFresh(database: Database): Promise<Storage> {
  const place = await database.migrated()
  const storage = await openAt(place)
  return {
    ...storage,
    async [Symbol.asyncDispose]() {
      await storage[Symbol.asyncDispose]()
      place[Symbol.dispose]()
    },
  }
}

let made = 0
/** A text that no other row has. */
export const unique = (what: string): string => `${what}-${++made}`

export function user(change: Partial<UserRow> = {}): UserRow {
  const id = change.id ?? unique('user')
  return {
    id,
    username: id,
    email: `${id}@example.com`,
    former_email: null,
    name: id,
    recovery_email: null,
    former_recovery_email: null,
    password: 'hash',
    confirmed: 1,
    registered: 0,
    epoch: 1,
    kept_token: null,
    email_marketing: 0,
    max_namespaces: -1,
    preferred_tenant: null,
    mfa_secret: null,
    mfa_step: 0,
    created_at: now,
    last_login_at: null,
    ...change,
  }
}

/** A namespace with its owner, both inserted. */
export async function namespace({ stores }: Pick<Storage, 'stores'>, name = unique('namespace')) {
  const owner = user()
  await stores.users.insert(owner)
  const tenant_id = unique('tenant')
  await stores.namespaces.insert({
    tenant_id,
    name,
    owner: owner.id,
    session_record: 1,
    connection_announcement: '',
    max_devices: -1,
    billing: null,
    created_at: now,
  })
  await stores.namespaces.addMember({
    tenant_id,
    user_id: owner.id,
    role: 'owner',
    epoch: 'first',
    created_at: now,
  })
  return { tenant_id, name, owner, here: stores.of(tenant_id) }
}

export function device(
  change: Partial<Omit<DeviceRow, 'id' | 'tenant_id'>> = {},
): Omit<DeviceRow, 'id' | 'tenant_id'> {
  const uid = change.uid ?? unique('device')
  return {
    uid,
    name: uid,
    mac: '00:00:5e:00:53:01',
    public_key: 'key',
    info_id: 'debian',
    info_pretty_name: 'Debian',
    info_version: 'v1',
    info_arch: 'amd64',
    info_platform: 'native',
    conflict: null,
    ping_s: 0,
    status: 'pending',
    status_update_at: now,
    created_at: now,
    remote_addr: '192.0.2.1',
    position: '{"latitude":0,"longitude":0}',
    public_url: 0,
    public_url_address: '',
    tags: '[]',
    last_seen: now,
    online: 0,
    token_at: null,
    proved: 0,
    proved_token: null,
    node: '',
    tunnel: 0,
    connector: null,
    container: null,
    named: 0,
    decided: 0,
    enrolment_key: null,
    enrolled_with: null,
    agent_build: '',
    agent_ability: '',
    update_build: '',
    update_wanted_at: null,
    update_asked_at: null,
    update_phase: '',
    update_failed: '',
    update_reason: '',
    ...change,
  }
}

export function service(
  device_uid: string,
  change: Partial<Omit<ServiceRow, 'tenant_id'>> = {},
): Omit<ServiceRow, 'tenant_id'> {
  const id = unique('service')
  return {
    id,
    device_uid,
    address: id,
    name: 'Dashboard',
    host: '127.0.0.1',
    port: 80,
    scheme: 'http',
    certificate: 'verify',
    tls_name: '',
    pinned: '',
    audience: 'members',
    role: 'operator',
    people: '[]',
    link_hash: '',
    host_header: 'own',
    identify: 0,
    username: '',
    expires_at: null,
    public_url: 0,
    created_at: now,
    created_by: 'olga',
    ...change,
  }
}

export function session(
  device_uid: string,
  change: Partial<Omit<SessionRow, 'tenant_id'>> = {},
): Omit<SessionRow, 'tenant_id'> {
  return {
    uid: unique('session'),
    device_uid,
    username: 'root',
    ip_address: '192.0.2.2',
    started_at: now,
    last_seen: now,
    active: 1,
    authenticated: 0,
    recorded: 0,
    posted: 0,
    unrecorded: 0,
    secrets_masked: 0,
    held_until: '',
    kept_s: 0,
    kept_for: '',
    resumes: '',
    participants: '[]',
    web: '',
    type: 'shell',
    term: 'xterm',
    position: '{"latitude":0,"longitude":0}',
    node: '',
    person_kind: 'unknown',
    person_id: '',
    person_name: '',
    person_created_by: '',
    via: '',
    method: '',
    key_fingerprint: '',
    key_name: '',
    client: '',
    index_at: null,
    index_failures: 0,
    ...change,
  }
}

export const publicKey = (fingerprint: string, change: object = {}) => ({
  fingerprint,
  data: 'c3No',
  name: fingerprint,
  username: '.*',
  filter: '{"hostname":".*"}',
  created_at: now,
  certificate_authority: 0 as const,
  owner: null,
  ...change,
})

export const enrolmentKey = (fingerprint: string, change: object = {}) => ({
  fingerprint,
  name: fingerprint,
  public_key: 'ssh-ed25519 AAAA',
  created_at: now,
  ...change,
})

export const enrolmentToken = (created_by: string, change: object = {}) => ({
  id: unique('token'),
  hash: unique('hash'),
  hint: 'abcd',
  name: unique('token'),
  accept: 1 as const,
  tags: '[]',
  name_pattern: '',
  most_devices: 1,
  used: 0,
  expires_at: null,
  last_used_at: null,
  created_by,
  created_at: now,
  ...change,
})

export const sessionInvitation = (session_uid: string, created_by: string, change: object = {}) => ({
  id: unique('invitation'),
  session_uid,
  hash: unique('hash'),
  mode: 'watch' as const,
  for_name: '',
  user_id: null,
  used_at: null,
  created_by,
  created_epoch: 1,
  created_token: '',
  created_at: now,
  expires_at: later,
  ...change,
})

export const memberInvitation = (invited_by: string, change: object = {}) => ({
  id: unique('invitation'),
  email: `${unique('somebody')}@example.com`,
  role: 'observer' as const,
  hash: unique('hash'),
  by_mail: 1 as const,
  invited_by,
  valid_days: 7,
  created_at: now,
  sent_at: now,
  expires_at: later,
  ...change,
})

export const acceptRule = (change: object = {}) => ({
  priority: 1,
  source: '192.0.2.0/24',
  hostname: '',
  mac: '',
  platform: '',
  tags: '[]',
  ...change,
})

export const budget = (change: Partial<BudgetRow> = {}) => ({
  device: null,
  tag: null,
  bytes: 9,
  stop_recordings: 0 as const,
  stop_updates: 0 as const,
  created_at: now,
  ...change,
})

export const firewallRule = (change: object = {}) => ({
  action: 'allow' as const,
  active: 1 as const,
  filter: '{"hostname":".*"}',
  priority: 1,
  source_ip: '.*',
  username: '.*',
  ...change,
})

export const apiKey = (created_by: string, change: object = {}) => ({
  hash: unique('hash'),
  name: unique('key'),
  role: 'observer' as const,
  created_by,
  expires_in: -1,
  created_at: now,
  updated_at: now,
  ...change,
})

export const connector = (change: object = {}) => ({
  uid: unique('connector'),
  enable: 0 as const,
  address: 'engine.invalid',
  port: 2375,
  secure: 0 as const,
  tls: null,
  accept: 0 as const,
  identity: null,
  state: 'disconnected',
  message: '',
  created_at: now,
  ...change,
})

export const auditStream = (change: object = {}) => ({
  uid: unique('stream'),
  name: unique('name'),
  receiver: 'sealed',
  enable: 1 as const,
  sent_seq: 0,
  created_at: now,
  ...change,
})

export const deadLetter = (stream: string, change: object = {}) => ({
  stream,
  from_seq: 1,
  to_seq: 9,
  reason: 'unsent' as const,
  error: '',
  at: now,
  ...change,
})

/** What a statement was refused with, so that its kind can be looked at. */
export async function refusal(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('it was not refused')
}

export const page = (per_page = 100, number = 1) => ({ page: number, per_page })

export function sessionEvent(
  session_uid: string,
  change: Partial<Omit<SessionEventRow, 'tenant_id'>> = {},
): Omit<SessionEventRow, 'tenant_id'> {
  return {
    session_uid,
    seq: 1,
    at: now,
    kind: 'upload',
    subject: '/home/olga/ünï "quoted"',
    target: '',
    outcome: 'done',
    received: 5_000_000_000,
    sent: 0,
    sha256: 'ab'.repeat(32),
    why: '',
    ...change,
  }
}
