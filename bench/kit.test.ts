// The measuring itself: percentiles, turns and columns, on numbers that are known beforehand.
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import {
  atLeast,
  below,
  compare,
  inTurns,
  interleaved,
  line,
  measure,
  percentile,
  single,
  table,
} from './kit.ts'

test('a percentile is the nearest rank', () => {
  const values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  expect([0, 50, 95, 100].map((percent) => percentile(values, percent))).toEqual([1, 5, 10, 10])
  expect(percentile([], 50)).toBeNaN()
})

test('a measurement counts its calls and keeps as many under way as asked', async () => {
  let now = 0
  let most = 0
  const measured = await measure(
    async () => {
      most = Math.max(most, ++now)
      await wait(5)
      now--
    },
    { seconds: 0.1, concurrency: 4 },
  )
  expect(most).toBe(4)
  expect(measured.calls).toBeGreaterThanOrEqual(4)
  expect(measured.p50).toBeGreaterThan(3)
  expect(measured.p50).toBeLessThanOrEqual(measured.p99)
  expect(measured.p99).toBeLessThanOrEqual(measured.max)
})

test('a call that fails ends the measurement', async () => {
  await expect(measure(() => Promise.reject(new Error('no')), { seconds: 1 })).rejects.toThrow('no')
})

test('a comparison takes turns and gives the median of the ratios', async () => {
  const order: string[] = []
  const figures = { a: [2, 9, 8], b: [1, 3, 2] }
  const side = (name: 'a' | 'b') => () => {
    order.push(name)
    return Promise.resolve(figures[name].shift() ?? Number.NaN)
  }
  expect(await interleaved(side('a'), side('b'), 3)).toEqual({ ratio: 3, lowest: 2, highest: 4, a: 8, b: 2 })
  expect(order.join('')).toBe('abbaab')
})

test('any number of sides take turns, every other round backwards', async () => {
  const order: string[] = []
  const side = (name: string) => () => Promise.resolve(order.push(name))
  expect(await inTurns({ a: side('a'), b: side('b'), c: side('c') }, 2)).toEqual({
    a: [1, 6],
    b: [2, 5],
    c: [3, 4],
  })
  expect(order.join('')).toBe('abccba')
})

test('a table has aligned columns, numbers to the right', () => {
  const lines: string[] = []
  table(
    [
      { side: 'ours', calls: 12_345, ms: 0.12345 },
      { side: 'theirs', calls: 7, ms: 12.345 },
    ],
    (line) => lines.push(line),
  )
  expect(lines).toEqual(['side     calls     ms', 'ours    12,345  0.123', 'theirs       7   12.3'])
})

test('a row says whether its aim was met, and a figure that stands alone leaves its columns in line', () => {
  const lines: string[] = []
  const compared = compare([2, 4, 6], [4, 4, 4])
  const rows = [
    line('speed', '/s', compared, atLeast(0.5, compared.ratio)),
    single('size', 'KB', 30, below(25, 30, 'KB')),
    single('time', 's', 1.5),
  ]
  table(rows, (text) => lines.push(text))
  expect(lines).toEqual([
    'what   unit  ours  reference  ratio  range     aim          verdict',
    'speed  /s       4          4      1  0.50–1.5  ratio ≥ 0.5  met',
    'size   KB      30                              < 25 KB      MISSED',
    'time   s     1.50',
  ])
})
