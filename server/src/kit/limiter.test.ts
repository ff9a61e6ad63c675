// The limiter: how many calls a window takes, what it says about waiting, and that keys do not touch each
// other. And windows of counts: which names share a count, when a window ends, and that nothing is lost.
import { expect, test, vi } from 'vitest'
import { minute_ms } from './clock.ts'
import { limiter, windows } from './limiter.ts'

/** A clock that stands still until it is moved. */
function stillClock() {
  let now = Date.UTC(2024, 0, 1)
  return { now: () => now, forward: (ms: number) => void (now += ms) }
}

test('so many calls pass in a window, and the next one is told how long to wait', () => {
  const clock = stillClock()
  const calls = limiter(clock, { max: 3, window_ms: 10_000 })
  expect([1, 2, 3].map(() => calls.take('a'))).toEqual([0, 0, 0])
  expect(calls.take('a')).toBe(10)
  clock.forward(7500)
  expect(calls.take('a')).toBe(3)
  clock.forward(2499)
  expect(calls.take('a')).toBe(1)
  clock.forward(1)
  expect(calls.take('a')).toBe(0)
})

test('keys are counted apart', () => {
  const calls = limiter(stillClock(), { max: 1, window_ms: 1000 })
  expect([calls.take('a'), calls.take('b')]).toEqual([0, 0])
  expect(calls.take('a')).toBeGreaterThan(0)
  expect(calls.take('c')).toBe(0)
})

test('calls that were refused do not lengthen the wait', () => {
  const clock = stillClock()
  const calls = limiter(clock, { max: 1, window_ms: 10_000 })
  for (let i = 0; i < 1000; i++) calls.take('a')
  clock.forward(10_000)
  expect(calls.take('a')).toBe(0)
})

test('without a limit everything passes', () => {
  const calls = limiter(stillClock(), { max: Infinity, window_ms: 10_000 })
  expect(Array.from({ length: 10_000 }, () => calls.take('a')).every((wait) => wait === 0)).toBe(true)
})

test('a hundred thousand keys are held apart; those that come after them take the place of the oldest, one by one', () => {
  const calls = limiter(stillClock(), { max: 1, window_ms: 10_000 })
  const keys = 100_000
  for (let i = 0; i < keys; i++) expect(calls.take(`key ${i}`)).toBe(0)
  expect(calls.take('key 0')).toBe(10)
  for (let i = keys; i < keys + 3; i++) expect(calls.take(`key ${i}`)).toBe(0)
  expect(['key 0', 'key 4', `key ${keys}`].map((key) => calls.peek(key))).toEqual([10, 10, 10])
  expect(['key 1', 'key 2', 'key 3'].map((key) => calls.peek(key))).toEqual([0, 0, 0])
})

function counting() {
  const clock = stillClock()
  const ended: string[] = []
  const counts = windows<{ readonly name: string; times: number }>({
    clock,
    perGroup: 2,
    most: 4,
    onEnd: (values) => ended.push(...values.map(({ name, times }) => `${name}: ${times}`)),
  })
  function count(group: string, name: string): void {
    const names = { own: `${group} ${name}`, group, all: 'all' }
    counts.of(group, names, (share) => ({ name: names[share], times: 0 })).times += 1
  }
  return { clock, ended, counts, count }
}

test('a name has a count of its own, then shares that of its group, then that of all; nothing is lost', () => {
  const { ended, counts, count } = counting()
  for (const name of ['1', '2', '3', '4', '1']) count('a', name)
  for (const name of ['1', '2', '1']) count('b', name)
  count('a', '5')
  expect(ended).toEqual([])
  counts[Symbol.dispose]()
  expect(ended).toEqual(['a 1: 2', 'a 2: 1', 'a: 3', 'b 1: 2', 'all: 1'])
})

test('a window ends by its timer, or with the first event after it by the clock', () => {
  vi.useFakeTimers()
  try {
    const { clock, ended, counts, count } = counting()
    count('a', '1')
    vi.advanceTimersByTime(minute_ms)
    expect(ended).toEqual(['a 1: 1'])
    for (const forward_ms of [0, minute_ms - 1]) {
      clock.forward(forward_ms)
      count('a', '1')
      counts.endIfOver()
    }
    expect(ended).toEqual(['a 1: 1'])
    clock.forward(1)
    count('a', '1')
    expect(ended).toEqual(['a 1: 1', 'a 1: 2'])
    counts[Symbol.dispose]()
    expect(ended).toEqual(['a 1: 1', 'a 1: 2', 'a 1: 1'])
  } finally {
    vi.useRealTimers()
  }
})
