// Who may wait at the SSH port, by a clock that the test moves. Attacks on it, with real connections, are in
// tests/attacks (idle-connections, key-exchange-rate).
import { expect, test } from 'vitest'
import { startups, type StartupsOptions } from './startups.ts'

/** Random drops are off. */
function start(options: Partial<StartupsOptions> = {}) {
  const clock = { ms: 1_000_000, now: () => clock.ms }
  const all = startups(
    clock,
    { perSource: 1_000, rate: { max: 10, window_ms: 10_000 }, ...options },
    () => 0.999,
  )
  /** A connection that comes, does this and leaves; returns the reason if it is refused. */
  const visit = (source: string, does: 'nothing' | 'try' | 'log in'): string => {
    const entered = all.enter(source, false)
    if (typeof entered === 'string') return entered
    if (does !== 'nothing') entered.tried()
    if (does === 'log in') entered.loggedIn()
    entered[Symbol.dispose]()
    return 'entered'
  }
  const times = (count: number, visiting: () => string): string[] => Array.from({ length: count }, visiting)
  return { clock, visit, times }
}

test('an unknown source comes no faster than its rate; one that logged in has none of its own', () => {
  const { visit, times } = start()
  // Each leaves without a penalty that counts: only the rate stops them.
  expect(times(12, () => visit('198.51.100.1', 'nothing')).slice(10)).toEqual(['too fast', 'too fast'])
  expect(visit('198.51.100.2', 'log in')).toBe('entered')
  expect(new Set(times(30, () => visit('198.51.100.2', 'try')))).toEqual(new Set(['entered']))
})

test.each([
  ['nothing', 16],
  ['try', 4],
] as const)('a source whose connections do %s is refused after %i', (does, bearable) => {
  // A connection that leaves costs a second, a refused proof five; more than 15 seconds are too many.
  const { visit, times } = start({ rate: { max: Infinity, window_ms: 1_000 } })
  const visits = times(bearable + 1, () => visit('203.0.113.7', does))
  expect(visits).toEqual([...Array.from({ length: bearable }, () => 'entered'), 'too many without a login'])
  expect(visit('203.0.113.8', does)).toBe('entered')
})

test('a login takes the penalty away, and a source that logged in gets none for a day', () => {
  const { clock, visit, times } = start({ rate: { max: Infinity, window_ms: 1_000 } })
  times(3, () => visit('203.0.113.7', 'try'))
  expect(visit('203.0.113.7', 'log in')).toBe('entered')
  expect(new Set(times(20, () => visit('203.0.113.7', 'try')))).toEqual(new Set(['entered']))
  clock.ms += 24 * 3_600_000
  expect(times(5, () => visit('203.0.113.7', 'try')).at(-1)).toBe('too many without a login')
})
