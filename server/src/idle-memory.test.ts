import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { giveBackWhenIdle } from './idle-memory.ts'

const minute_ms = 60_000

describe('when memory is given back', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** The test decides how busy the loop is, how large the heap, and how many have a session. */
  function watched(busy: number, heap_mib = 60) {
    const seen = { busy, heap_mib, sessions: 0 }
    const done: string[] = []
    const watching = giveBackWhenIdle(() => seen.sessions, {
      busy: () => seen.busy,
      heap_bytes: () => seen.heap_mib * 2 ** 20,
      collect: () => void done.push('collect'),
      trim: () => void done.push('trim'),
    })
    return { seen, done, watching }
  }
  const pass = (minutes: number): void => void vi.advanceTimersByTime(minutes * minute_ms)
  const everything = ['trim', 'collect', 'collect', 'trim']

  test('never under load', () => {
    const { done } = watched(0.8)
    pass(60)
    expect(done).toEqual([])
  })

  test('within three minutes after the load has gone, and then no more', () => {
    const { seen, done } = watched(0.8)
    pass(10)
    seen.busy = 0.05
    const counts = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 60].map((minutes) => {
      pass(minutes)
      return done.length
    })
    expect(counts).toEqual([0, 1, 1, 2, 3, 4, 4])
    expect(done).toEqual(everything)
  })

  test('a pause of half a minute in a load is no reason', () => {
    const { seen, done } = watched(0.8)
    for (let times = 0; times < 60; times++) {
      seen.busy = times % 2 === 0 ? 0.8 : 0
      pass(0.5)
    }
    expect(done).toEqual([])
  })

  test('a large heap is left to V8: collecting it would stop everybody for long', () => {
    const { done } = watched(0, 300)
    pass(10)
    expect(done).toEqual(['trim', 'trim'])
  })

  test('nobody’s session is stopped by a collection, which waits for the last one to end', () => {
    const { seen, done } = watched(0)
    seen.sessions = 1
    pass(10)
    expect(done).toEqual(['trim', 'trim'])
    seen.sessions = 0
    pass(10)
    expect(done).toEqual(['trim', 'trim', 'collect', 'collect'])
  })

  test('again after the next load', () => {
    const { seen, done } = watched(0)
    pass(10)
    seen.busy = 0.8
    pass(1)
    seen.busy = 0
    pass(10)
    expect(done).toEqual([...everything, ...everything])
  })

  test('no more once it is disposed of', () => {
    const { done, watching } = watched(0)
    watching[Symbol.dispose]()
    pass(10)
    expect(done).toEqual([])
  })
})

/** Frees blocks between others that stay: the C library keeps such holes. Then gives them back. */
const script = `
  import { giveBackMemory } from ${JSON.stringify(path.join(import.meta.dirname, 'idle-memory.ts'))}
  const blocks = Array.from({ length: 20_000 }, () => Buffer.allocUnsafeSlow(8_192).fill(1))
  for (let i = 0; i < blocks.length; i++) if (i % 50 > 0) blocks[i] = undefined
  const before = process.memoryUsage.rss()
  giveBackMemory()
  console.log(JSON.stringify({ before, after: process.memoryUsage.rss(), kept: blocks.at(-50).length }))`

function run(...flags: string[]): { before: number; after: number; kept: number } {
  const args = ['--single-threaded-gc', ...flags, '--no-warnings', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as ReturnType<typeof run>
}

test('freed memory between blocks that are in use goes back to the system', () => {
  const { before, after, kept } = run()
  expect(kept).toBe(8_192)
  expect(before - after).toBeGreaterThan(80 * 2 ** 20)
})

test('a Node without node:ffi goes on', () => {
  expect(run('--no-experimental-ffi').kept).toBe(8_192)
})
