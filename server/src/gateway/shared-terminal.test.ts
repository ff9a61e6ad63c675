// A guest who watches a session until its very end: nothing is said in a terminal that is over.
import { afterEach, expect, test, vi } from 'vitest'
import { sharedTerminal, type SharingParts } from './shared-terminal.ts'

afterEach(() => void vi.useRealTimers())

test.each([
  { isOver: false, lines: 2 },
  { isOver: true, lines: 1 },
])('a guest who goes when the terminal is over, $isOver, is told of in $lines lines', ({ isOver, lines }) => {
  vi.useFakeTimers()
  const say = vi.fn<(text: string) => void>()
  const terminal = {
    closed: new Promise(() => undefined),
    client: {},
    isOver: false,
    drawAnew: () => undefined,
    refit: () => undefined,
  }
  const parts = { terminal, say, person: 'olga', changed: () => undefined } as unknown as SharingParts
  const shared = sharedTerminal(parts)
  const visitor = {
    caller: { kind: 'user', id: 'g', username: 'gast' },
    name: 'gast',
    invitedBy: 'olga',
    present: () => undefined,
    note: () => undefined,
  }
  const seat = shared.enter(visitor as never)
  terminal.isOver = isOver
  seat[Symbol.dispose]()
  vi.advanceTimersByTime(60_000)
  expect(say).toHaveBeenCalledTimes(lines)
})
