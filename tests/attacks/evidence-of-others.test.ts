// Somebody causes events in sessions by the thousand, with the longest names that there are, while files are read in
// another namespace. What waited for the database was one queue: when it was full, those files left neither an event
// nor an entry in the audit log. And each new session could write as much as the one before: 17 GB in an hour.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { stranger } from '../../server/src/domain/audit/audit.ts'
import { sessionEvents, type SessionEventLog } from '../../server/src/domain/sessions/session-events.ts'
import { sharedPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'

const place = sharedPlace()
const elsewhere = '00000000-0000-4000-8000-00000000000e'
const long = `/${'\u0001'.repeat(4_000)}`

async function opened() {
  const { stores, audit } = place.rooms
  let dropped = 0
  const events = sessionEvents({
    stores,
    audit,
    clock: place.clock,
    onError(error) {
      throw error
    },
    onDropped: (count) => void (dropped += count),
  })
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
  expect(await kept()).toMatchObject([{ kind: 'more', why: '10 more events are not kept.' }])
})

test('one person causes no more with many sessions, and is named all the same', async () => {
  const { events, session, uid, entries, kept } = await opened()
  const mine = { tenant_id: sample.tenant, id: 'somebody' }
  // Most of them have no room in memory; all of them count.
  for (let one = 0; one < 320; one++) {
    const log = session(`flood ${one}`, { ...mine, tenant_id: elsewhere })
    for (let n = 0; n < 30; n++) rename(log)
  }
  place.clock.forward(60_000)
  await events[Symbol.asyncDispose]()
  const log = session(uid, mine)
  read(log, '/etc/shadow')
  log.end()
  await events[Symbol.asyncDispose]()
  expect(await entries()).toMatchObject([{ more: 1, some: [{ path: '/etc/shadow' }] }])
  expect(await kept()).toMatchObject([{ kind: 'more', why: '1 more events are not kept.' }])
})
