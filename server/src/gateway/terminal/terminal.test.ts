// One terminal without a device: what it asks of programs, which it starts, and how fast it is read.
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { readRequest, writeRequest, type Channel, type SessionRequest } from '@hawser/ssh'
import type { TerminalClient } from './client.ts'
import { unattendedPace } from './pace.ts'
import { Terminal, type TerminalParts } from './terminal.ts'

afterEach(() => void vi.useRealTimers())

/** A terminal of one client. */
function place(change: Partial<TerminalParts> = {}) {
  const screen = {
    resize: () => undefined,
    redraw: async () => Buffer.from('[]'),
    [Symbol.dispose]: () => undefined,
  } as unknown as TerminalScreen
  const terminal = new Terminal('session', {
    screen: () => screen,
    mayHold: true,
    onLost: () => undefined,
    onAttach: () => undefined,
    onAttached: () => undefined,
    ...change,
  })
  const never = new Promise<never>(() => undefined)
  const channel = {
    closed: never,
    write: async () => undefined,
    close: async () => undefined,
  } as never as Channel
  const client: TerminalClient = { channel, end: { ended: never }, terminal }
  terminal.begin(client)
  const [told, started, answers]: [string[], string[], boolean[]] = [[], [], []]
  /** The device's answers, which it has not given yet. */
  const unanswered: ((success: boolean) => void)[] = []
  void (async () => {
    for await (const { type, payload, reply } of terminal.requests) {
      unanswered.push(reply)
      const asked = readRequest(type, payload)
      if (asked.type === 'window-change') told.push(`${asked.size.columns}×${asked.size.rows}`)
      else started.push(type)
    }
  })()
  const ask = async (request: SessionRequest): Promise<void> => {
    const { name: type, payload } = writeRequest(request)
    const reply = (success: boolean): void => void answers.push(success)
    await terminal.takeRequest(client, { type, payload, wantReply: true, reply })
  }
  return { terminal, client, ask, told, started, answers, unanswered }
}
const size = { columns: 80, rows: 24, width: 0, height: 0 }
const pty = { ...size, terminal: 'xterm', modes: new Map<number, number>() }

// An editor that still draws for the first size may miss the second, and would stay a row short.
test('the second size comes apart from the first, and is the one that the client has then', async () => {
  vi.useFakeTimers()
  const { terminal, ask, told } = place()
  await ask({ type: 'pty-req', pty })
  await ask({ type: 'shell' })
  terminal.drawAnew()
  await vi.advanceTimersByTimeAsync(200)
  expect(told).toEqual(['80×23'])
  await ask({ type: 'window-change', size: { ...size, columns: 100 } })
  await vi.advanceTimersByTimeAsync(100)
  expect(told).toEqual(['80×23', '100×24', '100×24'])
})

test('a program that runs keeps its size when its client asks for another terminal', async () => {
  const { terminal, ask } = place()
  await ask({ type: 'pty-req', pty })
  await ask({ type: 'shell' })
  await ask({ type: 'pty-req', pty: { ...pty, columns: 200 } })
  expect(terminal.size).toEqual({ width: 80, height: 24 })
})

describe('a client that is asked whether it continues another session', () => {
  test('and does starts no program here, and has one answer', async () => {
    const { ask, started, answers } = place({
      async onProgram(terminal, { reply }) {
        reply(true)
        terminal.release()
        return false
      },
    })
    await ask({ type: 'shell' })
    expect([started, answers]).toEqual([[], [true]])
  })

  test('and does has what it asked for, whatever the device answers here later', async () => {
    for (const continues of [true, false]) {
      const { terminal, ask, answers, unanswered } = place()
      await ask({ type: 'pty-req', pty })
      if (continues) terminal.release()
      await new Promise(setImmediate)
      unanswered[0]!(false)
      expect(answers).toEqual([continues])
    }
  })

  test('and whose session is ended meanwhile starts no program', async () => {
    const asked = Promise.withResolvers<undefined>()
    const { terminal, ask, started, answers } = place({ onProgram: async () => asked.promise })
    const asking = ask({ type: 'shell' })
    terminal.release()
    asked.resolve(undefined)
    await asking
    expect([started, answers]).toEqual([[], [false]])
  })
})

test('others at the terminal have a say in its size, and see the keys of its person first', async () => {
  const { terminal, client, ask, told } = place()
  await ask({ type: 'pty-req', pty })
  await ask({ type: 'shell' })
  const [typed, passed]: [string[], string[]] = [[], []]
  terminal.sharing = {
    typed(chunk) {
      typed.push(String(chunk.bytes))
      return chunk.bytes.includes('y') ? undefined : chunk
    },
    fit: ({ width }) => ({ width: Math.min(width, 60), height: 20 }),
    isAttended: () => true,
  }
  await ask({ type: 'window-change', size: { ...size, columns: 132 } })
  await new Promise(setImmediate)
  expect([terminal.size, told]).toEqual([{ width: 60, height: 20 }, ['60×20']])
  client.channel.readAll = async (take) => {
    for (const keys of ['y', 'ls']) await take({ bytes: Buffer.from(keys), stream: 0 })
  }
  await terminal.readAll(({ bytes }) => void passed.push(String(bytes)))
  expect([typed, passed]).toEqual([['y', 'ls'], ['ls']])
  // So it is for a client that reattaches.
  await terminal.attach(client, { width: 100, height: 50 }, { source: '', via: 'ssh', scrollback: false })
  expect(terminal.size).toEqual({ width: 60, height: 20 })
})

test('a held terminal slows a program that writes much, until somebody sees it', async () => {
  const { terminal, client } = place({ onLost: () => 1 })
  const [much, restored] = [Buffer.alloc(9 * 1024 * 1024), { width: 80, height: 24 }]
  terminal.restore(restored, true)
  await terminal.showStored(Buffer.alloc(0))
  await new Promise(setImmediate)
  const slow = terminal.send(much)
  expect(slow).toBeInstanceOf(Promise)
  terminal.sharing = { typed: (chunk) => chunk, fit: (own) => own, isAttended: () => true }
  expect(terminal.send(much)).toBeUndefined()
  terminal.sharing = undefined
  await terminal.attach(client, restored, { source: '', via: 'ssh', scrollback: false })
  await slow
})

describe('output that nobody sees', () => {
  const much = 8 * 1024 * 1024

  /** Whether more may come. */
  function reader(isAttended = () => false) {
    vi.useFakeTimers()
    const pace = unattendedPace(isAttended)
    const state = { isFree: false }
    return {
      pace,
      state,
      async spend(bytes: number): Promise<boolean> {
        state.isFree = false
        void Promise.resolve(pace.spend(bytes)).then(() => (state.isFree = true))
        await vi.advanceTimersByTimeAsync(0)
        return state.isFree
      },
    }
  }

  test('passes at once for some megabytes, and then at the pace of a slow line', async () => {
    const { spend, state } = reader()
    expect(await spend(much)).toBe(true)
    expect(await spend(2 * 1024 * 60)).toBe(false)
    await vi.advanceTimersByTimeAsync(55_000)
    expect(state.isFree).toBe(false)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(state.isFree).toBe(true)
  })

  test('has no larger allowance after a long time', async () => {
    const { spend } = reader()
    await vi.advanceTimersByTimeAsync(24 * 3_600_000)
    expect(await spend(much + 1)).toBe(false)
  })

  test('passes from the moment at which somebody comes, and all of the allowance again', async () => {
    const { pace, spend, state } = reader()
    expect(await spend(2 * much)).toBe(false)
    pace.wake()
    await vi.advanceTimersByTimeAsync(0)
    expect(state.isFree).toBe(true)
    expect(await spend(much)).toBe(true)
  })

  test('passes soon for somebody who came without a word', async () => {
    let isAttended = false
    const { spend, state } = reader(() => isAttended)
    expect(await spend(2 * much)).toBe(false)
    isAttended = true
    await vi.advanceTimersByTimeAsync(1_000)
    expect(state.isFree).toBe(true)
    expect(await spend(2 * much)).toBe(true)
  })
})
