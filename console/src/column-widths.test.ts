// The widths of columns: a border moves between its neighbours, and what is stored is only used if it fits.
import { expect, test } from 'vitest'
import { moved, narrowest, readWidths } from './column-widths.ts'

const columns = ['name', 'state', 'tags']
const widths = { name: 30, state: 20, tags: 40 }

test('what a column gains its neighbour loses, and no further than the narrowest', () => {
  expect(moved(widths, columns, 0, 5)).toEqual({ name: 35, state: 15, tags: 40 })
  expect(moved(widths, columns, 1, -50)).toEqual({ name: 30, state: narrowest, tags: 60 - narrowest })
  expect(moved(widths, columns, 0, 500)).toEqual({ name: 50 - narrowest, state: narrowest, tags: 40 })
  expect(moved(widths, columns, 2, 5)).toEqual(widths)
})

test.each([
  [widths, widths],
  [{ ...widths, other: 90 }, widths],
  [{ name: 30, state: 20 }, undefined],
  [{ ...widths, tags: 60 }, undefined],
  [{ ...widths, tags: '40' }, undefined],
  [{ ...widths, tags: Number.NaN }, undefined],
  [{ ...widths, tags: -1 }, undefined],
  [null, undefined],
  ['wide', undefined],
])('of %j come %j', (stored, used) => {
  expect(readWidths(stored, columns)).toEqual(used)
})
