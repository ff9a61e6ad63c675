// Accounts of what is held: who waits, and who does not, when a connection or the process holds too much.
import { expect, test } from 'vitest'
import { compact, heldBy, memoryPool, object_bytes, type Account, type MemoryPool } from './memory.ts'

/** An account that obeys the pool; `told`: its last order. */
function holder(pool: MemoryPool, limit_bytes: number): Account & { readonly told: string } {
  let told = 'nothing'
  const account = pool.open({
    limit_bytes,
    pause: () => void (told = 'wait'),
    resume: () => void (told = 'go on'),
    evict: () => void (told = 'go'),
  })
  return Object.defineProperties(account as Account & { told: string }, { told: { get: () => told } })
}

test('an account over its own limit waits until it is not', () => {
  const one = holder(memoryPool(1_000_000), 1_000)
  one.hold(1_000)
  expect(one.told).toBe('nothing')
  one.hold(1)
  expect(one.told).toBe('wait')
  one.release(1)
  expect(one.told).toBe('go on')
})

const MiB = 1024 * 1024

test('when all hold too much together, those with more than their share are crowded until they are not', () => {
  const pool = memoryPool(9 * MiB)
  const [large, small] = [holder(pool, 100 * MiB), holder(pool, 100 * MiB)]
  large.hold(8 * MiB)
  small.hold(MiB)
  expect([large.crowded, small.crowded]).toEqual([false, false])
  small.hold(MiB)
  expect([large.crowded, small.crowded]).toEqual([true, false])
  let called = 0
  large.whenRoom(() => (called += 1))
  small.release(MiB - 1)
  expect([large.crowded, called]).toEqual([true, 0])
  small.release(1)
  expect([large.crowded, called]).toEqual([false, 1])
  small.release(1)
  // No account had to pause.
  expect([large.told, small.told, called]).toEqual(['nothing', 'nothing', 1])
})

test('one that drains to its share is not crowded any more, whatever the others hold', () => {
  const pool = memoryPool(8 * MiB)
  const [one, other] = [holder(pool, 100 * MiB), holder(pool, 100 * MiB)]
  one.hold(6 * MiB)
  other.hold(6 * MiB)
  let called = 0
  one.whenRoom(() => (called += 1))
  one.release(MiB)
  expect(called).toBe(0)
  one.release(MiB)
  expect([called, other.crowded]).toEqual([1, true])
})

test('at twice of what all may hold, the one who holds most goes', () => {
  const pool = memoryPool(9 * MiB)
  const [large, small] = [holder(pool, 100 * MiB), holder(pool, 100 * MiB)]
  large.hold(17 * MiB)
  small.hold(MiB)
  expect([large.told, small.told]).toEqual(['nothing', 'nothing'])
  small.hold(1)
  expect([large.told, small.told, pool.held_bytes]).toEqual(['go', 'nothing', MiB + 1])
})

test('who is gone holds nothing', () => {
  const pool = memoryPool(10 * MiB)
  const [one, two] = [holder(pool, 100 * MiB), holder(pool, 100 * MiB)]
  one.hold(9 * MiB)
  two.hold(6 * MiB)
  expect(two.crowded).toBe(true)
  let called = 0
  one.whenRoom(() => expect.unreachable())
  two.whenRoom(() => (called += 1))
  one.close()
  one.release(100)
  one.hold(100)
  one.close()
  expect([pool.held_bytes, two.crowded, called]).toEqual([6 * MiB, false, 1])
})

test('a view is copied out of memory of which it is the smaller part, and counted with all of it', () => {
  const read = Buffer.alloc(1_000)
  expect(compact(read.subarray(0, 500)).buffer).toBe(read.buffer)
  expect(compact(read.subarray(0, 499)).buffer.byteLength).toBe(499)
  expect(heldBy(read.subarray(0, 500))).toBe(object_bytes + 1_000)
})
