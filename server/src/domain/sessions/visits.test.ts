// Visits to a session in the audit log: each has its two entries, until somebody comes too often.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { MemberCaller } from '../callers/callers.ts'
import { away_ms, visits } from './visits.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const about = { target: { kind: 'session', id: 's', name: 'root' }, detail: { device: 'd' } } as const
const from = (source: string, id = 'g') => ({ kind: 'user', id, source }) as MemberCaller

function log() {
  const entries: { action: string; detail: unknown }[] = []
  const working: Promise<void>[] = []
  const isBroken = { value: false }
  const all = visits({
    audit: {
      async event(_, { action, detail }) {
        if (isBroken.value) throw new Error('the database is away')
        entries.push({ action, detail })
      },
    },
    clock: { now: () => Date.now() },
    later: (_, work) => void working.push(work()),
  })
  return {
    entries,
    isBroken,
    begin: (caller: MemberCaller, session = 's') => all.begin(session, caller, about),
    settled: async () => Promise.all(working),
    stop: () => all[Symbol.asyncDispose](),
  }
}

test('windows at the same time are one visit, and somebody else has entries of their own', async () => {
  const { entries, begin, settled } = log()
  const [one, two] = [begin(from('192.0.2.1')), begin(from('192.0.2.1'))]
  const other = begin(from('192.0.2.1', 'h'))
  one[Symbol.dispose]()
  other[Symbol.dispose]()
  two[Symbol.dispose]()
  await settled()
  const actions = entries.map(({ action }) => action)
  expect(actions.filter((action) => action === 'session.watched')).toHaveLength(2)
  expect(actions.filter((action) => action === 'session.unwatched')).toHaveLength(2)
})

test('windows at two addresses are two visits, so that the log names both addresses', async () => {
  const { entries, begin, settled } = log()
  const open = [begin(from('192.0.2.1')), begin(from('192.0.2.2'))]
  for (const one of open) one[Symbol.dispose]()
  await settled()
  const actions = entries.map(({ action }) => action)
  expect(actions.filter((action) => action === 'session.watched')).toHaveLength(2)
  expect(actions.filter((action) => action === 'session.unwatched')).toHaveLength(2)
})

test('after five visits the sixth lasts until they stay away, and tells how often they came', async () => {
  const { entries, begin, settled } = log()
  for (let visit = 0; visit < 100; visit += 1) {
    begin(from(`192.0.2.${visit % 20}`))[Symbol.dispose]()
    vi.advanceTimersByTime(4_000)
  }
  await settled()
  expect(entries).toHaveLength(2 * 5 + 1)
  vi.advanceTimersByTime(away_ms)
  await settled()
  expect(entries).toHaveLength(2 * 5 + 2)
  const { action, detail } = entries.at(-1)!
  expect(action).toBe('session.unwatched')
  expect(detail).toMatchObject({ device: 'd', visits: 95 })
  expect((detail as { sources: string[] }).sources).toHaveLength(10)
  // Later they are like anybody.
  begin(from('192.0.2.1'))[Symbol.dispose]()
  await settled()
  expect(entries.slice(-2).map((entry) => entry.detail)).toEqual([about.detail, about.detail])
})

test('a server that stops writes the end of the visit of somebody who is away for a moment', async () => {
  const { entries, begin, stop } = log()
  for (let visit = 0; visit < 8; visit += 1) begin(from('192.0.2.1'))[Symbol.dispose]()
  await stop()
  expect(entries.at(-1)).toMatchObject({ action: 'session.unwatched', detail: { visits: 3 } })
  const count = entries.length
  vi.advanceTimersByTime(away_ms)
  expect(entries).toHaveLength(count)
})

test('a visit whose beginning could not be written has no end in the log either', async () => {
  const { entries, begin, isBroken, settled } = log()
  isBroken.value = true
  const visit = begin(from('192.0.2.1'))
  await expect(visit.written).rejects.toThrow('away')
  isBroken.value = false
  visit[Symbol.dispose]()
  await settled()
  expect(entries).toEqual([])
})

test('an entry that could not be written is written for the next visit', async () => {
  const { entries, begin, isBroken, settled } = log()
  for (let visit = 0; visit < 5; visit += 1) begin(from('192.0.2.1'))[Symbol.dispose]()
  await settled()
  isBroken.value = true
  const refused = begin(from('192.0.2.1'))
  await expect(refused.written).rejects.toThrow('away')
  refused[Symbol.dispose]()
  isBroken.value = false
  await settled()
  const before = entries.length
  using visit = begin(from('192.0.2.1'))
  await visit.written
  expect(entries).toHaveLength(before + 1)
})
