// Queues of changes: what a write gets, what happens to it when the write fails, and what a queue holds at most.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WriteBehind, type WriteBehindOptions } from './write-behind.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Sum {
  readonly name: string
  readonly n: number
}

const letter = (name: string, n = 1): Sum => ({ name, n })

function opened(options: Partial<WriteBehindOptions<Sum>> = {}) {
  const seen = { batches: [] as string[][], reports: [] as string[], attempts: 0 }
  const database = { isAway: false, answers: Promise.resolve() }
  const queue = new WriteBehind<Sum>({
    delay_ms: 1_000,
    batch: 3,
    async write(batch) {
      seen.attempts += 1
      await database.answers
      if (database.isAway) throw new Error('away')
      seen.batches.push(batch.map(({ name, n }) => `${name}${n}`))
    },
    onError: (error) => void seen.reports.push(String(error)),
    onRecovered: () => void seen.reports.push('recovered'),
    onDropped: (count) => void seen.reports.push(`dropped ${count}`),
    ...options,
  })
  return { queue, seen, database }
}

/** Begins a turn, whose write hangs until `resolve`. */
async function begun({ queue, seen, database }: ReturnType<typeof opened>) {
  const { promise, resolve } = Promise.withResolvers<void>()
  database.answers = promise
  const turn = queue.flush()
  await vi.advanceTimersByTimeAsync(0)
  expect(seen.attempts).toBe(1)
  return { turn, resolve }
}

const merge = (older: Sum, newer: Sum): Sum => letter(newer.name, older.n + newer.n)
const putAll = (queue: WriteBehind<Sum>, names: string): void => {
  for (const name of names) queue.put(name, letter(name))
}

test('changes are collected for the delay and written together, in their order', async () => {
  const { queue, seen } = opened()
  putAll(queue, 'ab')
  await vi.advanceTimersByTimeAsync(999)
  expect(seen.batches).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(seen.batches).toEqual([['a1', 'b1']])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(seen.attempts).toBe(1)
  expect(queue.size).toBe(0)
})

test('of two changes under one key the newer counts, or both in one', async () => {
  const newest = opened()
  newest.queue.put('a', letter('a', 1))
  newest.queue.put('a', letter('a', 5))
  await newest.queue.flush()
  expect(newest.seen.batches).toEqual([['a5']])
  const sum = opened({ merge })
  sum.queue.put('a', letter('a', 1))
  sum.queue.put('a', letter('a', 5))
  await sum.queue.flush()
  expect(sum.seen.batches).toEqual([['a6']])
})

test('entries of a list do not replace each other', async () => {
  const { queue, seen } = opened()
  queue.add(letter('a'))
  queue.add(letter('a'))
  await queue.flush()
  expect(seen.batches).toEqual([['a1', 'a1']])
})

test('batches have a bounded weight, and one change at least; a turn has so many of them', async () => {
  const { queue, seen } = opened({ batches: 2, weight: ({ n }) => n })
  putAll(queue, 'ab')
  queue.put('c', letter('c', 9))
  putAll(queue, 'defg')
  await queue.flush()
  expect(seen.batches).toEqual([['a1', 'b1'], ['c9']])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(seen.batches.slice(2)).toEqual([['d1', 'e1', 'f1'], ['g1']])
})

test('a failed batch is put back before what came since, and merged under it', async () => {
  const place = opened({ merge })
  const { queue, seen, database } = place
  database.isAway = true
  putAll(queue, 'ab')
  const { turn, resolve } = await begun(place)
  expect(queue.get('a')).toBeUndefined()
  expect(queue.has('a')).toBe(true)
  queue.put('c', letter('c'))
  queue.put('a', letter('a', 10))
  resolve()
  await turn
  expect(queue.size).toBe(3)
  expect(queue.get('a')).toEqual(letter('a', 11))
  database.isAway = false
  await queue.flush()
  expect(seen.batches.flat().toSorted()).toEqual(['a11', 'b1', 'c1'])
})

test('the pause after failures grows to its limit; the first is reported, and the end', async () => {
  const { queue, seen, database } = opened()
  database.isAway = true
  putAll(queue, 'a')
  const attempts: number[] = []
  for (let s = 1; s <= 130; s += 1) {
    const before = seen.attempts
    // New changes make no attempt of their own.
    putAll(queue, 'b')
    if (s > 1) queue.hurry()
    await vi.advanceTimersByTimeAsync(1_000)
    if (seen.attempts > before) attempts.push(s)
  }
  expect(attempts).toEqual([1, 2, 4, 8, 16, 32, 62, 92, 122])
  expect(seen.reports).toEqual(['Error: away'])
  database.isAway = false
  await vi.advanceTimersByTimeAsync(30_000)
  expect(seen.reports).toEqual(['Error: away', 'recovered'])
  expect(seen.batches).toEqual([['a1', 'b1']])
})

test('callers who ask for a turn while writing fails make no pause longer', async () => {
  const { queue, seen, database } = opened()
  database.isAway = true
  putAll(queue, 'a')
  for (let time = 0; time < 50; time += 1) await queue.flush()
  database.isAway = false
  await vi.advanceTimersByTimeAsync(1_000)
  expect(seen.batches).toEqual([['a1']])
})

test('one write runs at a time, other writes wait for their turn, and callers share one that has not begun', async () => {
  const place = opened()
  const { queue, seen } = place
  putAll(queue, 'a')
  const { turn: first, resolve } = await begun(place)
  putAll(queue, 'b')
  const second = queue.flush()
  expect(queue.flush()).toBe(second)
  let before = -1
  const other = queue.inTurn(async () => void (before = seen.batches.length))
  await vi.advanceTimersByTimeAsync(5_000)
  expect(seen.attempts).toBe(1)
  resolve()
  await Promise.all([first, second, other])
  expect(seen.batches).toEqual([['a1'], ['b1']])
  expect(before).toBe(2)
  await expect(queue.inTurn(() => Promise.reject(new Error('theirs')))).rejects.toThrow('theirs')
  putAll(queue, 'c')
  await queue.flush()
  expect(seen.batches.at(-1)).toEqual(['c1'])
})

test('what waits is bounded, also what is put back; the oldest goes, and is counted', async () => {
  const place = opened({ most: 3, count: ({ n }) => n })
  const { queue, seen, database } = place
  database.isAway = true
  queue.put('a', letter('a', 7))
  putAll(queue, 'bcd')
  const { turn, resolve } = await begun(place)
  putAll(queue, 'ef')
  resolve()
  await turn
  expect(queue.values().map(({ name }) => name)).toEqual(['d', 'e', 'f'])
  queue.drop(5)
  database.isAway = false
  await queue.flush()
  expect(seen.reports.filter((one) => one.startsWith('dropped'))).toEqual(['dropped 9', 'dropped 5'])
})

test('closing writes what is left, however many turns it takes', async () => {
  const { queue, seen } = opened({ batches: 1 })
  putAll(queue, 'abcdefg')
  await queue[Symbol.asyncDispose]()
  expect(seen.batches.flat()).toHaveLength(7)
  expect(seen.reports).toEqual([])
})

test('closing tries once, and counts what could not be written', async () => {
  const { queue, seen, database } = opened()
  database.isAway = true
  putAll(queue, 'ab')
  await queue[Symbol.asyncDispose]()
  expect(seen.attempts).toBe(1)
  expect(seen.reports).toEqual(['Error: away', 'dropped 2'])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(seen.attempts).toBe(1)
})

test('closing does not wait for a database that hangs', async () => {
  const { queue, seen, database } = opened()
  database.answers = new Promise(() => undefined)
  putAll(queue, 'abcd')
  void queue.flush()
  const closed = queue[Symbol.asyncDispose]()
  await vi.advanceTimersByTimeAsync(10_000)
  await closed
  expect(seen.reports).toEqual(['dropped 4'])
})

test('changes after the end are written by nobody', async () => {
  const { queue, seen } = opened()
  putAll(queue, 'a')
  await queue[Symbol.asyncDispose]()
  putAll(queue, 'b')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(seen.batches).toEqual([['a1']])
})

test('each outage is reported, and its end once', async () => {
  const { queue, seen, database } = opened()
  for (const name of 'ab') {
    database.isAway = true
    putAll(queue, name)
    await queue.flush()
    database.isAway = false
    await queue.flush()
    await queue.flush()
  }
  expect(seen.reports).toEqual(['Error: away', 'recovered', 'Error: away', 'recovered'])
})

test('changes that the caller had no room for are reported soon, by themselves', async () => {
  const { queue, seen } = opened()
  queue.drop(3)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(seen.reports).toEqual(['dropped 3'])
})
