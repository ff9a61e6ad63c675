// Somebody causes events in sessions by the thousand, with the longest names that there are, while files are read in
// another namespace. What waited for the database was one queue: when it was full, those files left neither an event
// nor an entry in the audit log. And each new session could write as much as the one before: 17 GB in an hour. The
// bound for an hour then counted what was not kept, in all namespaces together: a flood in one's own took four seconds,
// and nothing that one did elsewhere left a trace. Noise at the beginning of a session hid what came after it.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { stranger } from '../../server/src/domain/audit/audit.ts'
import { sessionEvents, type SessionEventLog } from '../../server/src/domain/sessions/session-events.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'

const place = sharedPlace()
const elsewhere = '00000000-0000-4000-8000-00000000000e'
const long = `/${'\u0001'.repeat(4_000)}`

async function opened(ofPerson_bytes?: number) {
  const { stores, audit } = place.rooms
  let dropped = 0
  const events = sessionEvents(
    {
      stores,
      audit,
      clock: place.clock,
      onError(error) {
        throw error
      },
      onDropped: (count) => void (dropped += count),
    },
    ofPerson_bytes,
  )
  const session = (uid: string, by: { tenant_id: string; id?: string }): SessionEventLog =>
    events.of({
      uid,
      by: { ...stranger('192.0.2.9'), actor: by.id === undefined ? 'anonymous' : 'user', ...by },
      target: { kind: 'session', id: uid, name: 'crane-1' },
      detail: { device: sample.device },
    })
  const uid = await recordSession(place.rooms, { lines: [] })
  const entries = async () =>
    (await place.owner.audit.list({ query: { target: uid, after: 0, limit: 500 } })).body.entries.map(
      ({ detail }) => detail,
    )
  const kept = async () => stores.of(sample.tenant).sessionEvents.list(uid, 0, 500)
  return { events, session, uid, entries, kept, dropped: () => dropped }
}

const read = (log: SessionEventLog, subject: string) =>
  void log.add({ kind: 'download', subject, outcome: 'done', sent: 1_024, sha256: 'ab'.repeat(32) })
const rename = (log: SessionEventLog, subject = long) =>
  void log.add({ kind: 'rename', subject, target: subject, outcome: 'done' })

test('a flood in one namespace takes no event and no entry of another', async () => {
  const { events, session, uid, entries, kept, dropped } = await opened()
  for (let one = 0; one < 60; one++) {
    const log = session(`flood ${one}`, { tenant_id: elsewhere })
    for (let n = 0; n < 30; n++) rename(log)
    for (let n = 0; n < 90; n++) read(log, `${long}${n}`)
  }
  const log = session(uid, { tenant_id: sample.tenant })
  for (let n = 0; n < 10; n++) read(log, `/etc/passwd-${n}`)
  log.end()
  await events[Symbol.asyncDispose]()
  expect(dropped()).toBeGreaterThan(0)
  expect(await entries()).toHaveLength(10)
  expect(await kept()).toHaveLength(10)
})

test('what does not fit into the share of a namespace is summarised and counted', async () => {
  const { events, session, uid, entries, kept } = await opened()
  const mine = { tenant_id: sample.tenant }
  for (let one = 0; one < 60; one++) {
    const log = session(`flood ${one}`, mine)
    for (let n = 0; n < 30; n++) rename(log)
    for (let n = 0; n < 30; n++) rename(log, '/short')
  }
  const log = session(uid, mine)
  for (let n = 0; n < 10; n++) read(log, `/etc/passwd-${n}`)
  log.end()
  await events[Symbol.asyncDispose]()
  const [summary] = await entries()
  expect(summary).toMatchObject({ more: 10 })
  expect(summary?.['some']).toHaveLength(10)
  const [more] = await kept()
  expect(more?.kind).toBe('more')
  expect(more?.why).toMatch(/^10 more events are not kept, among them: .*passwd-9$/)
})

test('one person causes no more with many sessions in a namespace, and is named all the same', async () => {
  const { events, session, uid, entries, kept } = await opened(3 * 1024 * 1024)
  const mine = { tenant_id: sample.tenant, id: 'somebody' }
  const { sessionEvents: written } = place.rooms.stores.of(sample.tenant)
  let floods = 0
  async function isKept(): Promise<boolean> {
    const flooding = await recordSession(place.rooms, { lines: [] })
    const log = session(flooding, mine)
    for (let n = 0; n < 40; n++) rename(log)
    log.end()
    return eventually(async () => {
      const [first] = await written.list(flooding, 0, 1)
      expect(first).toBeDefined()
      return first?.kind === 'rename'
    })
  }
  while (floods < 20 && (await isKept())) floods += 1
  expect(floods).toBeGreaterThan(3)
  expect(floods).toBeLessThan(10)
  const log = session(uid, mine)
  read(log, '/etc/shadow')
  void log.add({ kind: 'exec', subject: 'cat /etc/gshadow', outcome: 'done' })
  log.end()
  await events[Symbol.asyncDispose]()
  expect(await entries()).toMatchObject([{ more: 1, some: [{ path: '/etc/shadow' }] }])
  const why = '2 more events are not kept, among them: download /etc/shadow; exec cat /etc/gshadow'
  expect(await kept()).toMatchObject([{ kind: 'more', why }])
})

test.each([
  ['more than waits at once', undefined],
  ['more than one person may in an hour', 1024 * 1024],
])('whoever causes %s in a namespace of their own hides nothing elsewhere', async (_, ofPerson_bytes) => {
  const { events, session, uid, entries, kept } = await opened(ofPerson_bytes)
  const id = 'somebody'
  for (let one = 0; one < 2_000; one++) rename(session(`flood ${one}`, { tenant_id: elsewhere, id }))
  const log = session(uid, { tenant_id: sample.tenant, id })
  read(log, '/etc/shadow')
  log.end()
  await events[Symbol.asyncDispose]()
  expect(await entries()).toMatchObject([{ path: '/etc/shadow' }])
  expect(await kept()).toMatchObject([{ kind: 'download' }])
})

test('what is written makes room for what comes next, however much there is in all', async () => {
  const { events, session, dropped } = await opened(1024 ** 3)
  const mine = { tenant_id: sample.tenant }
  const { sessionEvents: written } = place.rooms.stores.of(sample.tenant)
  for (let round = 0; round < 6; round++) {
    for (let one = 0; one < 8; one++) {
      const log = session(`flood ${round} ${one}`, mine)
      for (let n = 0; n < 30; n++) rename(log)
    }
    const last = await recordSession(place.rooms, { lines: [] })
    const log = session(last, mine)
    read(log, '/etc/passwd')
    log.end()
    const [first] = await eventually(async () => {
      const found = await written.list(last, 0, 1)
      expect(found).toHaveLength(1)
      return found
    })
    expect(first).toMatchObject({ kind: 'download', subject: '/etc/passwd' })
  }
  await events[Symbol.asyncDispose]()
  expect(dropped()).toBe(0)
})

test('early noise in a session leaves room for what comes late, and a channel that cannot be read has an entry', async () => {
  const { events, session, uid, entries, kept } = await opened()
  const log = session(uid, { tenant_id: sample.tenant })
  for (let n = 0; n < 300; n++) void log.add({ kind: 'exec', subject: `: ${long}`, outcome: 'done' })
  const why = 'two requests have the same number'
  void log.add({ kind: 'unread', subject: 'sftp', outcome: 'partial', why })
  void log.add({ kind: 'exec', subject: 'cat /etc/shadow', outcome: 'done' })
  log.end()
  await events[Symbol.asyncDispose]()
  expect((await kept()).slice(-2)).toMatchObject([{ kind: 'unread' }, { subject: 'cat /etc/shadow' }])
  expect(await entries()).toMatchObject([{ kind: 'unread', path: 'sftp', why }])
})
