import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rectangles, relabelled, resized, split, without, type Layout } from './layout.ts'

const steps = fc.array(
  fc.record({
    at: fc.nat(),
    direction: fc.constantFrom('row' as const, 'column' as const),
    act: fc.constantFrom('split', 'close', 'resize'),
    share: fc.double({ min: -1, max: 2, noNaN: true }),
  }),
  { maxLength: 20 },
)

test('however panes are split, closed and resized, they fill the room and none covers another', () => {
  fc.assert(
    fc.property(steps, (all) => {
      let layout: Layout = 0
      let next = 1
      for (const { at, direction, act, share } of all) {
        const { panes, borders } = rectangles(layout)
        const ids = [...panes.keys()]
        const id = ids[at % ids.length]!
        if (act === 'split') layout = split(layout, id, direction, next++)
        else if (act === 'close') layout = without(layout, id) ?? next++
        else if (borders.length > 0) layout = resized(layout, borders[at % borders.length]!.path, share)
      }
      const rooms = [...rectangles(layout).panes.values()]
      expect(rooms.reduce((sum, { width, height }) => sum + width * height, 0)).toBeCloseTo(1)
      const probe = 1e-9
      for (const a of rooms)
        for (const b of rooms) {
          if (a === b) continue
          const beside = a.left + a.width <= b.left + probe || b.left + b.width <= a.left + probe
          const below = a.top + a.height <= b.top + probe || b.top + b.height <= a.top + probe
          expect(beside || below).toBe(true)
        }
    }),
  )
})

test('a pane that is split keeps its side, and the last one leaves nothing', () => {
  const layout = split(split(1, 1, 'row', 2), 2, 'column', 3)
  expect(rectangles(layout).panes.get(3)).toEqual({ left: 0.5, top: 0.5, width: 0.5, height: 0.5 })
  expect(rectangles(layout).borders.map(({ path }) => path)).toEqual([[], [1]])
  expect(without(without(layout, 1)!, 3)).toBe(2)
  expect(without(2, 2)).toBeUndefined()
})

test('a layout that was kept gets other ids, without the panes that are gone, and nonsense is none', () => {
  const layout = split(split(1, 1, 'row', 2), 2, 'column', 3)
  const ids = new Map([
    [1, 11],
    [2, 12],
    [3, 13],
  ])
  expect(relabelled(layout, ids)).toEqual(split(split(11, 11, 'row', 12), 12, 'column', 13))
  expect(relabelled(layout, new Map([[3, 13]]))).toBe(13)
  expect(relabelled(layout, new Map())).toBeUndefined()
  expect(relabelled({ direction: 'up', share: 9, parts: [1, 2, 3] }, ids)).toEqual({
    direction: 'row',
    share: 0.85,
    parts: [11, 12],
  })
  let deep: unknown = 1
  for (let n = 0; n < 5000; n += 1) deep = { direction: 'row', share: 0.5, parts: [deep, 2] }
  for (const odd of [null, 'a', {}, { parts: 1 }, { parts: [] }]) expect(relabelled(odd, ids)).toBeUndefined()
  expect(rectangles(relabelled(deep, ids)!).panes.size).toBeLessThan(10)
})
