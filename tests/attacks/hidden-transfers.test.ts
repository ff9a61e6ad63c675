// Somebody in a session reads a hundred empty files, and then the one that they came for: the audit log had
// entries for the first hundred of a session and only counted the others, for as long as the session lasted.
// The test looks at what the log says of the last file, and at how many entries a flood leaves.
import { afterEach, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { stranger } from '../../server/src/domain/audit/audit.ts'
import { sessionEvents, type SessionEventLog } from '../../server/src/domain/sessions/session-events.ts'
import { eventually } from '../harness/eventually.ts'
import { sharedPlace } from '../harness/place.ts'

const place = sharedPlace()
const minute_ms = 60_000
const sha256 = 'ab'.repeat(32)
let sessions = 0

afterEach(() => void vi.useRealTimers())

function opened() {
  const { stores, audit } = place.rooms
  const { clock } = place
  const uid = (++sessions).toString(16).padStart(64, '0')
  const fail = (error: unknown) => {
    throw error
  }
  const events = sessionEvents({ stores, audit, clock, onError: fail, onDropped: fail })
  const log = events.of({
    uid,
    by: { ...stranger('192.0.2.9'), tenant_id: sample.tenant },
    target: { kind: 'session', id: uid, name: 'crane-1' },
    detail: { device: sample.device },
  })
  const entries = async () =>
    (await place.owner.audit.list({ query: { target: uid, after: 0, limit: 500 } })).body.entries.map(
      ({ detail }) => detail,
    )
  return { events, log, entries }
}

const read = (log: SessionEventLog, subject: string) =>
  void log.add({ kind: 'download', subject, outcome: 'done', sent: 1_024, sha256 })

function flood(log: SessionEventLog, files: number, name = '/tmp/empty-') {
  for (let n = 0; n < files; n++) read(log, `${name}${n}`)
}

test('a file that is read some minutes after a hundred others has its entry', async () => {
  const { events, log, entries } = opened()
  flood(log, 100)
  place.clock.forward(3 * minute_ms)
  read(log, '/etc/shadow')
  await events[Symbol.asyncDispose]()
  const all = await entries()
  expect(all).toHaveLength(101)
  expect(all.at(-1)).toMatchObject({ kind: 'download', path: '/etc/shadow', bytes: 1_024, sha256 })
})

test('a file with a long way to it is named by its end', async () => {
  const { events, log, entries } = opened()
  read(log, `${'/.'.repeat(1_500)}/etc/shadow`)
  await events[Symbol.asyncDispose]()
  expect((await entries()).at(-1)?.['path']).toMatch(/^\/\..*….*\/etc\/shadow$/)
})

test('a file that is read right after a hundred others is named in their summary', async () => {
  const { events, log, entries } = opened()
  flood(log, 100)
  read(log, '/etc/shadow')
  flood(log, 10, '/tmp/more-')
  log.end()
  await events[Symbol.asyncDispose]()
  const all = await entries()
  expect(all).toHaveLength(101)
  expect(all.at(-1)).toMatchObject({ more: 11, device: sample.device })
  expect(all.at(-1)?.['some']).toHaveLength(11)
  expect(all.at(-1)?.['some']).toContainEqual({
    kind: 'download',
    path: '/etc/shadow',
    outcome: 'done',
    bytes: 1_024,
    sha256,
  })
})

test('the summary is written within a minute, whether the session ends or not, and when the server stops', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { events, log, entries } = opened()
  flood(log, 102)
  vi.advanceTimersByTime(minute_ms)
  await eventually(async () => expect((await entries()).at(-1)).toMatchObject({ more: 2 }))
  vi.advanceTimersByTime(10 * minute_ms)
  read(log, '/etc/shadow')
  await events[Symbol.asyncDispose]()
  const all = await entries()
  expect(all).toHaveLength(102)
  expect(all.at(-1)).toMatchObject({ more: 1, some: [{ path: '/etc/shadow' }] })
})

test('a flood leaves one entry a minute beyond the first hundred, whatever its files are called', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { events, log, entries } = opened()
  for (let minute = 0; minute < 10; minute++) {
    // A name that needs as much room as possible, with its telling part at the end.
    for (let n = 0; n < 1_000; n++) read(log, `/${'\u0001"\\'.repeat(1_000)}/secret-${minute}-${n}`)
    place.clock.forward(minute_ms)
    vi.advanceTimersByTime(minute_ms)
  }
  log.end()
  await events[Symbol.asyncDispose]()
  const all = await entries()
  const summaries = all.filter(({ more }) => more !== undefined)
  expect(all.length - summaries.length).toBeLessThanOrEqual(101)
  expect(summaries).toHaveLength(10)
  const left = summaries.reduce((sum, { more }) => sum + Number(more), 0)
  expect(left + all.length - summaries.length).toBe(10_000)
  for (const { some } of summaries) {
    expect(some).toHaveLength(20)
    for (const { path } of some as { path: string }[]) expect(path).toMatch(/secret-\d-\d+$/)
  }
})

test('a destination that was left out has its entry when it is reached again later, once', async () => {
  const { events, log, entries } = opened()
  const reach = (subject: string) => void log.add({ kind: 'forward', subject, outcome: 'done' })
  for (let n = 0; n < 100; n++) reach(`10.0.0.${n}:22`)
  const vault = '10.9.9.9:5432'
  reach(vault)
  place.clock.forward(3 * minute_ms)
  for (let n = 0; n < 3; n++) reach(vault)
  await events[Symbol.asyncDispose]()
  const all = await entries()
  expect(all.filter(({ destination }) => destination === vault)).toHaveLength(1)
  expect(all).toHaveLength(102)
  expect(all.at(-1)).toMatchObject({ more: 1, some: [{ destination: vault }] })
})

test('nobody can tell which files of a flood are named', async () => {
  const { events, log, entries } = opened()
  flood(log, 100)
  flood(log, 2_000, '/left-out-')
  log.end()
  await events[Symbol.asyncDispose]()
  const some = (await entries()).at(-1)?.['some'] as { path: string }[]
  const numbers = some.map(({ path }) => Number(path.slice('/left-out-'.length)))
  expect(new Set(numbers).size).toBe(20)
  // Neither the first twenty nor the last: that it happens by chance is less likely than a wrong hash.
  expect(numbers.every((n) => n < 20) || numbers.every((n) => n >= 1_980)).toBe(false)
})
