// A recording that ends the thread of the search whenever it is indexed: it is tried a few times, by itself,
// and then given up, which those who search are told. Others are indexed all the same.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { search } from '../../server/src/search/search.ts'
import { adopt } from '../../server/src/storage/search/sqlite.ts'
import { startPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'

const hour_ms = 3_600_000

test('a recording that ends the thread is given up after three tries, and others are indexed', async () => {
  await using place = await startPlace()
  const { stores, recordings } = place.rooms
  // It has an index of its own.
  await place.rooms.search[Symbol.asyncDispose]()
  const bad = await recordSession(place.rooms, { lines: ['bittern\r\n'] })
  const good = await recordSession(place.rooms, { lines: ['bittern, too\r\n'] })
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  const file = path.join(folder, 'search.db')
  adopt(file)
  const [tried, givenUp]: [string[], string[]] = [[], []]
  let hangs = false
  // A thread that does not come to an end is ended after a while; the test does not wait for that.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await using one = search({
      place: { file },
      queue: stores.searchQueue,
      journals: {
        list: recordings.channels,
        async read(name) {
          tried.push(name.session_uid)
          const reading = await recordings.read(name)
          if (name.session_uid !== bad) return reading
          let begun = 0
          // The server reads the head of it; then the thread begins, and waits for ever.
          return {
            async at(offset, length) {
              if (offset === 0) begun++
              if (begun === 1) return reading.at(offset, length)
              hangs = true
              return new Promise<never>(() => undefined)
            },
            size: () => reading.size(),
            [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose](),
          }
        },
      },
      clock: place.rooms.clock,
      hasRoom: () => true,
      onIndexed: () => undefined,
      onError: () => undefined,
      onGivenUp: ({ uid }) => void givenUp.push(uid),
    })
    for (let round = 1; round <= 5; round++) {
      const state = { done: false }
      const going = one.round().finally(() => (state.done = true))
      while (!state.done) {
        if (hangs) {
          hangs = false
          await vi.advanceTimersByTimeAsync(hour_ms)
        }
        await new Promise((resolve) => setImmediate(resolve))
      }
      await going
      place.clock.forward(hour_ms)
    }
    expect(tried.filter((uid) => uid === bad)).toHaveLength(3)
    expect(givenUp).toEqual([bad])
    expect(await stores.searchQueue.failed(sample.tenant)).toBe(1)
    expect(await stores.searchQueue.count(sample.tenant)).toBe(0)
    const query = { terms: [{ words: ['bittern'], prefix: false }] }
    const { hits } = await one.find({ tenant_id: sample.tenant, query, commands: false, limit: 9 })
    expect(hits.map(({ session_uid }) => session_uid)).toEqual([good])
    expect(Object.fromEntries(one.indexed)).toMatchObject({ 'given up': 1, whole: 1 })
    vi.useRealTimers()
    // Whoever asks for it gets another try.
    await stores.searchQueue.markAll(sample.tenant)
    expect(await stores.searchQueue.failed(sample.tenant)).toBe(0)
  } finally {
    vi.useRealTimers()
    rmSync(folder, { recursive: true, force: true })
  }
})
