// Whoever invented 100,000 keys (an IPv6 network has more /64s than that) made the limiter forget all counts
// at once, also the one that kept a guesser waiting. One key at a time gives way, and one that was counted
// often outlasts those that were seen once.
import { expect, test } from 'vitest'
import { limiter } from '../../server/src/kit/limiter.ts'

const clock = { now: () => Date.UTC(2024, 0, 1) }
const invented = (index: number): string =>
  `2001:db8:${(index >> 16).toString(16)}:${(index & 0xffff).toString(16)}::/64`

test('a guesser who waits goes on waiting, however many addresses call in between', () => {
  const failures = limiter(clock, { max: 3, window_ms: 60_000 })
  for (let guess = 0; guess < 4; guess += 1) failures.take('192.0.2.66')
  expect(failures.peek('192.0.2.66')).toBe(60)
  for (let index = 0; index < 350_000; index += 1) failures.take(invented(index))
  expect(failures.peek('192.0.2.66')).toBe(60)
})

test('one who only asks makes nobody forgotten', () => {
  const failures = limiter(clock, { max: 1, window_ms: 60_000 })
  for (let index = 0; index < 100_000; index += 1) failures.take(invented(index))
  failures.take(invented(7))
  for (let index = 100_000; index < 200_000; index += 1) failures.peek(invented(index))
  for (const index of [0, 7, 99_999]) expect(failures.peek(invented(index))).toBe(60)
})
