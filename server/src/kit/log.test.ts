// A flood of lines is cut, per source and altogether, and what was dropped is told.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { lineLimiter, type DroppedLines, type LineLimiter } from './log.ts'

let told: DroppedLines[]
let limit: LineLimiter
beforeEach(() => {
  vi.useFakeTimers()
  told = []
  limit = lineLimiter({ perSource: 3, together: 10, onDropped: (dropped) => void told.push(dropped) })
})
afterEach(() => {
  limit[Symbol.dispose]()
  vi.useRealTimers()
})

const written = (source: string, lines: number): number =>
  Array.from({ length: lines }, () => limit.allows(source)).filter(Boolean).length

test('one source gets its lines, and its next window has a count of the others', () => {
  expect(written('192.0.2.1', 100)).toBe(3)
  expect(written('192.0.2.2', 2)).toBe(2)
  expect(told).toEqual([])
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual([{ source: '192.0.2.1', lines: 97 }])
  expect(written('192.0.2.1', 1)).toBe(1)
})

test('many sources together get no more than all may have, and a few lines about the rest', () => {
  const sources = Array.from({ length: 50_000 }, (_, index) => `source ${index}`)
  expect(sources.filter((source) => limit.allows(source))).toHaveLength(10)
  for (let again = 0; again < 5; again += 1) limit.allows('source 20')
  vi.advanceTimersByTime(60_000)
  expect(told).toHaveLength(11)
  expect(told[0]).toEqual({ source: 'source 20', lines: 6 })
  expect(told.reduce((sum, { lines }) => sum + lines, 0)).toBe(50_000 - 10 + 5)
})

test('what was dropped is told when the server stops, too', () => {
  written('192.0.2.1', 5)
  limit[Symbol.dispose]()
  expect(told).toEqual([{ source: '192.0.2.1', lines: 2 }])
})
