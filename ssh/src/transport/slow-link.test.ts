// When a link counts as slow: by a late answer, or by data that waits; and that neither an idle connection
// nor a burst looks like one.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SlowLink } from './slow-link.ts'

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout', 'setImmediate'] }),
)
afterEach(() => void vi.useRealTimers())

/** A link with this rate. */
function linkOf(bytesPerMs: number) {
  let waiting = 0
  const link = new SlowLink(() => waiting)
  return {
    link,
    send(bytes: number): boolean {
      const isSlow = link.isSlow(bytes)
      waiting += bytes
      return isSlow
    },
    pass(ms: number): void {
      vi.advanceTimersByTime(ms)
      waiting = Math.max(0, waiting - ms * bytesPerMs)
    },
  }
}

test.each([
  ['an answer after 100 ms', 100, false],
  ['an answer after 300 ms', 300, true],
])('%s', (_, after_ms, isSlow) => {
  const { link, pass, send } = linkOf(Infinity)
  pass(5_000)
  link.asked()
  pass(after_ms)
  link.answered()
  pass(5_000)
  expect(send(100)).toBe(isSlow)
})

test.each([
  ['2 Mbit/s', 250, true],
  ['100 Mbit/s', 12_500, false],
])('a transfer over %s', (_, bytesPerMs, isSlow) => {
  const { send, pass } = linkOf(bytesPerMs)
  pass(5_000)
  let found = false
  for (let sent = 0; sent < 100; sent += 1) {
    found = send(65_536)
    // The sender waits when much is unsent.
    pass(sent % 4 === 3 ? (3.5 * 65_536) / bytesPerMs : 0)
  }
  expect(found).toBe(isSlow)
})

test('messages now and then, several at once, are no sign of it', () => {
  const { send, pass } = linkOf(1_000)
  for (let turn = 0; turn < 100; turn += 1) {
    pass(1_000)
    expect([send(100), send(200), send(60_000)]).toEqual([false, false, false])
  }
})
