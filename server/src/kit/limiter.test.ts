// The limiter: how many calls a window takes, what it says about waiting, and that keys do not touch each
// other.
import { expect, test } from 'vitest'
import { limiter } from './limiter.ts'

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
