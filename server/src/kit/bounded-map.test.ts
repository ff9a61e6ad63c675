// BoundedMap: which entry goes when a new one comes, what counts as new, and what `set` and `evict` return.
import { describe, expect, test } from 'vitest'
import { BoundedMap } from './bounded-map.ts'

describe('a full map', () => {
  test('replaces its oldest entry, and says which value went', () => {
    const map = new BoundedMap<string, number>(2)
    expect([map.set('a', 1), map.set('b', 2), map.set('c', 3)]).toEqual([undefined, undefined, 1])
    expect([...map]).toEqual([
      ['b', 2],
      ['c', 3],
    ])
  })

  test('replaces nothing for a key that it has, which becomes the newest', () => {
    const map = new BoundedMap<string, number>(2)
    map.set('a', 1)
    map.set('b', 2)
    expect(map.set('a', 10)).toBeUndefined()
    expect(map.set('c', 3)).toBe(2)
    expect([...map.keys()]).toEqual(['a', 'c'])
  })

  test('stays as large after many entries, and finds the oldest also after deletions', () => {
    const map = new BoundedMap<number, number>(100)
    for (let i = 0; i < 10_000; i++) {
      map.set(i, i)
      if (i % 7 === 0) map.delete(i - 3)
    }
    expect(map.size).toBe(100)
    expect(map.has(9_999)).toBe(true)
    const [oldest] = map.keys()
    expect(map.set(10_000, 0)).toBe(oldest)
  })

  test('spares what is worth more, unless the few oldest all are', () => {
    const map = new BoundedMap<string, number>(3, (value) => value > 1)
    for (const [key, value] of Object.entries({ a: 2, b: 1, c: 2 })) map.set(key, value)
    expect(map.set('d', 2)).toBe(1)
    expect(map.set('e', 2)).toBe(2)
    expect(map.size).toBe(3)
  })
})

test('evict removes the oldest entry of a map that is not full', () => {
  const map = new BoundedMap<string, number>(10)
  map.set('a', 1)
  map.set('b', 2)
  expect(map.evict()).toBe(1)
  expect([map.has('a'), map.has('b')]).toEqual([false, true])
})
