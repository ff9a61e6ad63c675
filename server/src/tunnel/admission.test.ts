import { expect, test } from 'vitest'
import { admission } from './admission.ts'

const clockAt = (at: number) => ({ at, now: () => clock.at })
let clock = clockAt(0)

test('within any second no more come in than the rate says, wherever the second begins', () => {
  clock = clockAt(1_000)
  const gate = admission(clock, { max: 10, window_ms: 1_000 })
  const entered: number[] = []
  for (; clock.at < 11_000; clock.at += 7) if (gate.enter() === 0) entered.push(clock.at)
  for (const [index, at] of entered.entries())
    expect((entered[index + 10] ?? Infinity) - at).toBeGreaterThanOrEqual(1_000)
  expect(entered.length).toBeGreaterThanOrEqual(99)
})

test('those who are sent away get turns one after the other, and no pause is longer than two minutes', () => {
  clock = clockAt(1_000)
  const gate = admission(clock, { max: 10, window_ms: 1_000 }, () => 0.5)
  for (let n = 0; n < 10; n += 1) expect(gate.enter()).toBe(0)
  const pauses = Array.from({ length: 2_000 }, () => gate.enter())
  expect(pauses.slice(0, 1_080)).toEqual(pauses.slice(0, 1_080).toSorted((a, b) => a - b))
  expect([pauses[0], pauses[89], pauses[1_079]]).toEqual([1, 10, 120])
  expect(new Set(pauses.slice(1_080))).toEqual(new Set([90]))
})

test('a clock that is put back locks nobody out', () => {
  clock = clockAt(1_000_000)
  const gate = admission(clock, { max: 1, window_ms: 60_000 })
  expect([gate.enter(), gate.enter() > 0]).toEqual([0, true])
  clock.at = 0
  expect(gate.enter()).toBe(0)
})

test('without a limit everybody comes in', () => {
  const gate = admission(clock, { max: Infinity, window_ms: 1_000 })
  expect(Array.from({ length: 1_000 }, () => gate.enter()).every((pause) => pause === 0)).toBe(true)
})
