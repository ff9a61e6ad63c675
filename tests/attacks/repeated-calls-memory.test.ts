// A limit remembers callers, and counting the same caller again held 152 bytes for good: an iterator that stood at
// the oldest entry kept every table that the counts had been in. Whoever called often enough took the server's
// memory, at 10,000 calls a second 130 GB a day, also by calls that were refused.
import { expect, test } from 'vitest'
import { BoundedMap } from '../../server/src/kit/bounded-map.ts'
import { limiter } from '../../server/src/kit/limiter.ts'
import { held_bytes } from './held.ts'

const calls = 300_000
const most_bytes = 4 * 2 ** 20

async function more_bytes(work: () => void): Promise<number> {
  work()
  const before = await held_bytes()
  work()
  return (await held_bytes()) - before
}

test('a caller who is counted again and again takes the memory of one', async () => {
  let now = 0
  const limit = limiter({ now: () => now }, { max: 100, window_ms: 10_000 })
  const more = await more_bytes(() => {
    for (let call = 0; call < calls; call++) {
      now += 1
      limit.take('203.0.113.7')
    }
  })
  expect(more).toBeLessThan(most_bytes)
})

test('entries that are set again and again take the memory of those that there are', async () => {
  const map = new BoundedMap<string, number>(100_000)
  const more = await more_bytes(() => {
    for (let call = 0; call < calls; call++) map.set(`device ${call % 100}`, call)
  })
  expect(more).toBeLessThan(most_bytes)
  expect(map.size).toBe(100)
})
