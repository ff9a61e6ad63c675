// What the records of sessions cost: one commit before a user gets in, and one for everything that becomes
// known of all sessions within a moment. Nothing of it is lost when a commit fails.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../../../../tests/harness/eventually.ts'
import { startService } from '../../../../tests/harness/service.ts'
import { buildWorld } from '../../../../tests/harness/world.ts'
import type { Stores } from '../../storage/stores.ts'
import { audit } from '../audit/audit.ts'
import { liveSessions } from './live-sessions.ts'

vi.setConfig({ testTimeout: 60_000 })

/** The real stores, with their commits to sessions counted; `away` makes the next ones fail. */
function counted(stores: Stores) {
  const seen = { commits: 0, away: false }
  const commit = async <T>(work: () => Promise<T>): Promise<T> => {
    if (seen.away) throw new Error('The database is away.')
    seen.commits += 1
    return work()
  }
  const counting: Stores = {
    ...stores,
    transaction: (work) => commit(() => stores.transaction(work)),
    of(tenant_id) {
      const of = stores.of(tenant_id)
      const save: typeof of.sessions.save = (...change) => commit(() => of.sessions.save(...change))
      return { ...of, sessions: { ...of.sessions, save } }
    },
  }
  return { seen, counting }
}

test('short sessions cost one commit each and one together, also after a commit has failed', async () => {
  await using service = await startService()
  await buildWorld(service)
  const { stores } = service.rooms
  const { seen, counting } = counted(stores)
  const errors: unknown[] = []
  await using live = liveSessions({
    stores: counting,
    audit: audit({ stores: counting, clock: { now: Date.now } }),
    events: { of: () => ({ add: () => () => undefined, end: () => undefined }) },
    clock: { now: Date.now },
    node: '',
    register: () => ({ [Symbol.dispose]: () => undefined }),
    onError: (error) => void errors.push(error),
  })
  const uids = ['a', 'b', 'c'].map((letter) => letter.repeat(64))
  const rows = () => Promise.all(uids.map((uid) => stores.of(sample.tenant).sessions.find(uid)))
  const begun = await Promise.all(
    uids.map((uid) =>
      live.begin({
        uid,
        tenant_id: sample.tenant,
        device_uid: sample.device,
        username: 'root',
        ip_address: '192.0.2.1',
        person: { kind: 'unknown', id: '', name: '' },
        via: 'ssh',
        method: 'password',
        client: 'SSH-2.0-test',
      }),
    ),
  )
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
