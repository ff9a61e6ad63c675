import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { idleMemory } from './idle-memory.ts'

const quiet_ms = 10_000
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function watched() {
  const done: string[] = []
  const memory = idleMemory({ collect: () => done.push('collect'), drop: () => done.push('drop') })
  return { done, memory }
}

test('the garbage of the start is collected once, and pages are dropped after every call', () => {
  const { done, memory } = watched()
  memory.called()
  expect(done).toEqual([])
  vi.advanceTimersByTime(quiet_ms)
  expect(done).toEqual(['collect', 'drop'])
  memory.called()
  vi.advanceTimersByTime(quiet_ms)
  expect(done).toEqual(['collect', 'drop', 'drop'])
})

test('calls that follow each other closely do not put it off', () => {
  const { done, memory } = watched()
  for (let calls = 0; calls < 20; calls++) {
    memory.called()
    vi.advanceTimersByTime(quiet_ms / 10)
  }
  expect(done).toEqual(['collect', 'drop', 'drop'])
})

test('nothing is given back while a session is served, nor between sessions that follow closely', () => {
  const { done, memory } = watched()
  for (let sessions = 0; sessions < 5; sessions++) {
    const session = memory.session()
    memory.called()
    vi.advanceTimersByTime(quiet_ms * 2)
    session[Symbol.dispose]()
  }
  vi.advanceTimersByTime(quiet_ms - 1)
  expect(done).toEqual([])
  vi.advanceTimersByTime(1)
  expect(done).toEqual(['collect', 'drop'])
})

test('of two sessions the last one counts, and its garbage is collected as well', () => {
  const { done, memory } = watched()
  memory.called()
  vi.advanceTimersByTime(quiet_ms)
  const [first, second] = [memory.session(), memory.session()]
  first[Symbol.dispose]()
  vi.advanceTimersByTime(quiet_ms)
  expect(done).toEqual(['collect', 'drop'])
  second[Symbol.dispose]()
  vi.advanceTimersByTime(quiet_ms)
  expect(done).toEqual(['collect', 'drop', 'collect', 'drop'])
})
