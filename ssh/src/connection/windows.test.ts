// Windows: small at first, as large as they are used, and never more together than was said.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { windowsOf, type Window } from './windows.ts'

const [KiB, MiB] = [1024, 1024 * 1024]
const options = { largest_bytes: 2 * MiB, mostChannels: 256 }

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }))
afterEach(() => void vi.useRealTimers())

/** Reads bytes as they come; returns how much the peer could have sent. */
function pass(window: Window, bytes: number, every_ms: number): number {
  let granted = window.size_bytes
  for (let passed = 0; passed < bytes; passed += 32 * KiB) {
    vi.advanceTimersByTime(every_ms)
    granted += window.taken(32 * KiB)
  }
  return granted
}

test('a reader who keeps up gets the largest window soon, and the peer never has more on its way', () => {
  const window = windowsOf(options).open()
  expect(window.size_bytes).toBe(256 * KiB)
  const granted = pass(window, 4 * MiB, 1)
  expect(window.size_bytes).toBe(2 * MiB)
  expect(granted).toBeLessThanOrEqual(4 * MiB + window.size_bytes)
  expect(granted).toBeGreaterThan(4 * MiB + (window.size_bytes * 7) / 8 - 32 * KiB)
})

test('a reader who is slow gives back what others could use, and gets it again when it is not', () => {
  const windows = windowsOf(options)
  const window = windows.open()
  const granted = pass(window, 4 * MiB, 1_000)
  expect(window.size_bytes).toBeLessThan(64 * KiB)
  expect(granted).toBeLessThanOrEqual(4 * MiB + 256 * KiB)
  pass(window, 8 * MiB, 1)
  expect(window.size_bytes).toBe(2 * MiB)
})

test('all together are never more than was said, and somebody new still finds room to grow', () => {
  const windows = windowsOf(options)
  const opened = Array.from({ length: 255 }, () => windows.open())
  for (const window of opened) pass(window, MiB, 1)
  const sum = (): number => opened.reduce((total, { size_bytes }) => total + size_bytes, 0)
  expect(sum()).toBeLessThanOrEqual(windows.most_bytes)
  expect(windows.most_bytes).toBe(16 * MiB)
  for (const window of opened.splice(0, 10)) window.close()
  const late = windows.open()
  pass(late, 4 * MiB, 1)
  expect(late.size_bytes).toBeGreaterThan(512 * KiB)
  opened.push(late)
  expect(sum()).toBeLessThanOrEqual(windows.most_bytes)
})

test('with many idle channels one that is used has the largest window', () => {
  const windows = windowsOf(options)
  for (let count = 0; count < 100; count += 1) windows.open()
  const used = windows.open()
  pass(used, 4 * MiB, 1)
  expect(used.size_bytes).toBe(2 * MiB)
})

test('nobody has more than the connection says is the largest', () => {
  const window = windowsOf({ ...options, largest_bytes: 10_000 }).open()
  expect(window.size_bytes).toBe(10_000)
  pass(window, MiB, 1)
  expect(window.size_bytes).toBe(10_000)
})
