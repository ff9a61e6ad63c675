// What the records of sessions cost: one commit before a user gets in, and one for everything that becomes
// known of all sessions within a moment. Nothing of it is lost when a commit fails, or when several changes become
// one, and nothing is written after the end.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../../../../tests/harness/eventually.ts'
import { startService, type Service } from '../../../../tests/harness/service.ts'
import { buildWorld } from '../../../../tests/harness/world.ts'
import type { Opened } from '../../storage/dialects/dialect.ts'
import { stores as storesOf } from '../../storage/stores.ts'
import { audit } from '../audit/audit.ts'
import { liveSessions, type SessionStart } from './live-sessions.ts'

vi.setConfig({ testTimeout: 60_000 })

let service: Service
beforeAll(async () => {
  service = await startService()
  await buildWorld(service)
})
afterAll(() => service[Symbol.asyncDispose]())

const clock = { now: Date.now }
const start = (uid: string): SessionStart => ({
  uid,
  tenant_id: sample.tenant,
  device_uid: sample.device,
  username: 'root',
  ip_address: '192.0.2.1',
  person: { kind: 'unknown', id: '', name: '' },
  via: 'ssh',
  method: 'password',
  client: 'SSH-2.0-test',
})
const partsOf = (stores: Service['rooms']['stores'], onError: (error: unknown) => void) => ({
  stores,
  audit: audit({ stores, clock }),
  events: { of: () => ({ add: () => () => undefined, end: () => undefined }) },
  clock,
  node: '',
  register: () => ({ [Symbol.dispose]: () => undefined }),
  onError,
})
const unexpected = (error: unknown) => expect.unreachable(String(error))

/**
 * The real stores, with the commits of their database counted: transactions, and statements outside of one that
 * write. `away` makes the next ones fail.
 */
function counted(database: Opened) {
  const seen = { commits: 0, away: false }
  const commit = (): void => {
    if (seen.away) throw new Error('The database is away.')
    seen.commits += 1
  }
  const alone = database.db.withPlugin({
    transformQuery({ node }) {
      const isRead =
        node.kind === 'SelectQueryNode' ||
        (node.kind === 'RawNode' && node.sqlFragments[0]?.startsWith('select') === true)
      if (!isRead) commit()
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const db = Object.assign(alone, {
    transaction() {
      commit()
      return database.db.transaction()
    },
  })
  return { seen, counting: storesOf({ ...database, db }) }
}

test('short sessions cost one commit each and one together, also after a commit has failed', async () => {
  const { stores } = service.rooms
  const { seen, counting } = counted(service.rooms.database)
  const errors: unknown[] = []
  await using live = liveSessions(partsOf(counting, (error) => void errors.push(error)))
  const uids = ['a', 'b', 'c'].map((letter) => letter.repeat(64))
  const rows = () => Promise.all(uids.map((uid) => stores.of(sample.tenant).sessions.find(uid)))
  const begun = await Promise.all(uids.map((uid) => live.begin(start(uid))))
  expect(seen.commits).toBe(3)
  for (const session of begun) session.note({ type: 'exec', term: 'vt220\u202e' })
  for (const session of begun.slice(1)) session.finish()
  await eventually(async () =>
    expect(await rows()).toMatchObject([
      { type: 'exec', term: 'vt220?', active: 1 },
      { type: 'exec', term: 'vt220?', active: 0 },
      { type: 'exec', term: 'vt220?', active: 0 },
    ]),
  )
  expect(seen.commits).toBe(4)

  seen.away = true
  begun[0]!.finish()
  await eventually(() => expect(errors).toHaveLength(1))
  seen.away = false
  await live[Symbol.asyncDispose]()
  expect((await rows())[0]).toMatchObject({ type: 'exec', active: 0 })
  expect(seen.commits).toBe(5)
})

/** What the audit log has of a session, the oldest first. */
async function entriesOf(uid: string): Promise<string[]> {
  const { rows } = await service.rooms.stores
    .of(sample.tenant)
    .audit.list({ target: uid, oldest: 1, limit: 100, window: 1_000 })
  return rows.map(({ action }) => action).toReversed()
}

test('changes that are written together have all their entries in the audit log, in their order', async () => {
  const { stores } = service.rooms
  await using live = liveSessions(partsOf(stores, unexpected))
  const uid = 'd'.repeat(64)
  const session = await live.begin(start(uid))
  session.held('2099-01-01T00:00:00.000Z')
  session.resumed('192.0.2.2', 'ssh')
  session.shared([], [{ action: 'session.joined', by: undefined, detail: {} }])
  session.finish()
  await live[Symbol.asyncDispose]()
  expect(await entriesOf(uid)).toEqual([
    'session.opened',
    'session.held',
    'session.resumed',
    'session.joined',
    'session.closed',
  ])
})

test('what comes after the end of a session is not written', async () => {
  const { stores } = service.rooms
  await using live = liveSessions(partsOf(stores, unexpected))
  const uid = 'e'.repeat(64)
  const session = await live.begin(start(uid))
  session.finish()
  const row = () => stores.of(sample.tenant).sessions.find(uid)
  await eventually(async () => expect(await row()).toMatchObject({ active: 0 }))
  const before = await row()
  session.held('2099-01-01T00:00:00.000Z')
  session.note({ type: 'exec', recorded: 1 })
  session.finish()
  await live[Symbol.asyncDispose]()
  expect(await row()).toEqual(before)
  expect(await entriesOf(uid)).toEqual(['session.opened', 'session.closed'])
})

test.each(['pending', 'rejected', 'removed'] as const)(
  'nobody gets a session on a device that became %s a moment ago',
  async (status) => {
    const { stores } = service.rooms
    const { devices, sessions } = stores.of(sample.tenant)
    await using live = liveSessions(partsOf(stores, unexpected))
    const uid = '9'.repeat(64)
    await devices.save(sample.device, { status })
    try {
      await expect(live.begin(start(uid))).rejects.toMatchObject({ kind: 'notFound' })
    } finally {
      await devices.save(sample.device, { status: 'accepted' })
    }
    expect(await sessions.find(uid)).toBeUndefined()
    expect(await entriesOf(uid)).toEqual([])
  },
)
