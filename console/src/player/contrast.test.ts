import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contrast, leastContrast, readable, type Colour } from './contrast.ts'

const colours = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255))

test('the ratios are those of WCAG', () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21)
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 1)
})

test('whatever a device writes on whatever it writes on can be read', () => {
  fc.assert(
    fc.property(colours, colours, (colour: Colour, ground: Colour) => {
      expect(contrast(readable(colour, ground), ground)).toBeGreaterThanOrEqual(leastContrast)
    }),
  )
})

test('what can be read already is left as it is', () => {
  expect(readable([127, 214, 164], [10, 22, 28])).toEqual([127, 214, 164])
})
