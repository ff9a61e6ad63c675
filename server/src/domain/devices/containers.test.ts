// Which devices take the names of their containers: whatever is wanted, names stay different, nobody outside
// loses one, and nobody waits for a name that could be had.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { namesToTake } from './containers.ts'

const names = ['a', 'b', 'c', 'd', 'e', 'f'] as const

test('swaps and rotations work, and a name that somebody keeps is not taken', () => {
  // Each device has its own name, and wants some name or none.
  fc.assert(
    fc.property(fc.array(fc.option(fc.constantFrom(...names)), { minLength: 6, maxLength: 6 }), (wishes) => {
      const all = names.map((name, n) => ({
        uid: `uid-${name}`,
        name: name as string,
        container: wishes[n] ?? null,
      }))
      const wanting = all.filter(({ name, container }) => container !== null && container !== name)
      const moved = new Set(namesToTake(wanting, all).map(({ uid }) => uid))
      const after = all.map((row) => (moved.has(row.uid) ? row.container : row.name))
      expect(new Set(after).size).toBe(all.length)
      // A cycle of wishes in which each name is wanted once always comes true.
      if (new Set(wishes.filter((wish) => wish !== null)).size === names.length) expect(after).toEqual(wishes)
    }),
  )
})

test('of two that want one name the first gets it, if it is free', () => {
  const rows = [
    { uid: '1', name: 'web-1', container: 'web' },
    { uid: '2', name: 'web-2', container: 'web' },
  ]
  expect(namesToTake(rows, [])).toEqual([rows[0]])
  expect(namesToTake(rows, [{ uid: '3', name: 'web' }])).toEqual([])
})
