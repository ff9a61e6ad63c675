// The budget of a stream that breaks: progress refills it, idle streams do not use it up, and breaks that come
// soon wait longer and longer.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { mostFruitless, resumeBudget } from './resume-budget.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

/** Breaks this often, each time after the carrier lived for this long, and returns the pauses. */
function breaks(
  stream: { moved_bytes: number; isOwed: boolean },
  count: number,
  { lived_ms, moves = 0 }: { lived_ms: number; moves?: number },
) {
  const budget = resumeBudget(stream)
  return Array.from({ length: count }, () => {
    budget.attached()
    vi.advanceTimersByTime(lived_ms)
    stream.moved_bytes += moves
    return budget.lost()
  })
}

test('a stream that moves nothing although bytes wait is given up after many breaks in a row', () => {
  const pauses = breaks({ moved_bytes: 7, isOwed: true }, mostFruitless + 1, { lived_ms: 1 })
  // The first of them has carried what there was before.
  expect(pauses.at(-1)).toBeUndefined()
  expect(pauses.slice(0, -1)).not.toContain(undefined)
})

test('a byte that passes refills the budget, and an idle stream does not use it', () => {
  const moving = breaks({ moved_bytes: 0, isOwed: true }, 500, { lived_ms: 1, moves: 1 })
  const idle = breaks({ moved_bytes: 0, isOwed: false }, 500, { lived_ms: 1 })
  expect([...moving, ...idle]).not.toContain(undefined)
})

test('breaks that come soon wait longer and longer, those that come late do not', () => {
  const soon = breaks({ moved_bytes: 0, isOwed: false }, 10, { lived_ms: 1 })
  expect(soon).toEqual([0, 0, 100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000])
  expect(breaks({ moved_bytes: 0, isOwed: false }, 5, { lived_ms: 10_000 })).toEqual([0, 0, 0, 0, 0])
})
