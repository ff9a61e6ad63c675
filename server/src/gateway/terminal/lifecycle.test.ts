// The life of a terminal between two ends in memory: a device that echoes, and clients that come, are lost, reattach
// and leave.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  localPair,
  pipe,
  readRequest,
  Reason,
  startSession,
  writeRequest,
  type Channel,
  type ConnectionEnd,
  type RunningSession,
} from '@hawser/ssh'
import { until } from '../../../../tests/harness/eventually.ts'
import type { ChannelRecorder } from '../../recording/channel-recorder.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { clientOf } from './client.ts'
import { lostEnd, nearEnd, type NearEnd } from './near-end.ts'
import type { Reattached, Terminal, TerminalParts } from './terminal.ts'

const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() }
const size = { width: 80, height: 24 }
const elsewhere = { source: '192.0.2.7', via: 'ssh', scrollback: false } as const

/** A screen that is its output in brackets. */
function fakeScreen() {
  const shown: string[] = []
  const state = { isPartial: false, drawing: Promise.resolve(), isDisposed: false }
  const screen = {
    show: (bytes: Uint8Array) => void shown.push(String(Buffer.from(bytes))),
    resize: () => undefined,
    async redraw() {
      await state.drawing
      return Buffer.from(`[${shown.join('')}]`)
    },
    settle: async () => undefined,
    get isPartial() {
      return state.isPartial
    },
    held_bytes: 0,
    size,
    [Symbol.dispose]: () => void (state.isDisposed = true),
  } as unknown as TerminalScreen
  return { screen, shown, state }
}

/** A shell that writes back what it reads, and notes what it is asked. */
function echo(channel: Channel, asked: string[]): void {
  void (async () => {
    for await (const { type, payload, reply } of channel.requests) {
      const request = readRequest(type, payload)
      const { columns, rows } = request.type === 'window-change' ? request.size : { columns: 0, rows: 0 }
      asked.push(request.type === 'window-change' ? `${columns}×${rows}` : type)
      reply(true)
    }
  })()
  void (async () => {
    for await (const { bytes } of channel) {
      const text = String(bytes)
      if (text !== 'exit 7') await channel.write(bytes)
      else {
        const { name, payload } = writeRequest({ type: 'exit-status', status: 7 })
        await channel.request(name, payload)
        await channel.close()
      }
    }
  })().catch(() => undefined)
}

let near: NearEnd
let device: ConnectionEnd
let asked: string[]
let screen: ReturnType<typeof fakeScreen>
let recorded: string[]
/** Resolves when the output is recorded. */
let recording: () => Promise<void> | undefined
let marks: string[]
let attached: Reattached[]
let over: Promise<unknown>
const heldUntil = Date.now() + 60_000

function begin(client: ConnectionEnd, change: Partial<TerminalParts> = {}): void {
  const [far, back] = localPair()
  device = back
  near = nearEnd(client, {
    screen: () => screen.screen,
    mayHold: true,
    onLost: () => heldUntil,
    onAttach: (by) => void attached.push(by),
    onAttached: () => undefined,
    ...change,
  })
  void (async () => {
    for await (const opening of device.channels) echo(opening.accept(), asked)
  })()
  const recorder = {
    output: (bytes: Uint8Array) => {
      recorded.push(String(Buffer.from(bytes)))
      screen.screen.show(bytes)
      return recording()
    },
    interrupted: ({ type }: { type: string }) => void marks.push(type),
    announcement: (text: string) => void marks.push(text),
  } as unknown as ChannelRecorder
  const opened = (terminal: Channel): void => void ((terminal as Terminal).recorder = recorder)
  over = pipe(near, far, { channel: () => ({ allow: true, tap: { opened } }) })
}

beforeEach(() => {
  ;[asked, recorded, marks, attached, screen] = [[], [], [], [], fakeScreen()]
  recording = () => undefined
})
afterEach(async () => {
  vi.useRealTimers()
  await near.end(Reason.byApplication, 'The test is over.')
  await device.end()
  await over
})

/** A client with a shell in a terminal. */
async function openShell(change?: Partial<TerminalParts>) {
  const [mine, end] = localPair()
  begin(end, change)
  const shell = await startSession(mine, { program: { type: 'shell' }, pty })
  const [terminal] = near.terminals
  return { mine, end, shell, terminal: terminal! }
}

/** A terminal whose client was lost. */
async function openHeld(change?: Partial<TerminalParts>) {
  const { mine, terminal } = await openShell(change)
  await mine.end(Reason.connectionLost, 'lost')
  await until(() => terminal.heldUntil !== undefined)
  return terminal
}

/** Another client of the same person, which reattaches. */
async function reattach(terminal: Terminal, how: Parameters<Terminal['attach']>[2] = elsewhere, id?: string) {
  const [mine, end] = localPair()
  const opening = mine.open('session')
  const accepted = (await end.channels.next())!.accept()
  const channel = await opening
  const moved = { is: false }
  const onMoved = (): void => void (moved.is = true)
  const client = clientOf(
    accepted,
    { ended: end.ended, onMoved, ...(id === undefined ? {} : { id }) },
    terminal,
  )
  const attaching = terminal.attach(client, size, how)
  return { mine, end, channel, client, attaching, moved }
}

/** A client that has reattached and has seen the screen. */
async function reattached(terminal: Terminal) {
  const one = await reattach(terminal)
  await reads(one.channel, ']')
  await one.attaching
  return one
}

async function reads(channel: Channel, text: string): Promise<string> {
  let all = ''
  while (!all.includes(text)) {
    const chunk = await channel.read()
    if (!chunk) throw new Error(`the channel ended after ${JSON.stringify(all)}`)
    all += String(chunk.bytes)
  }
  return all
}
/** Until all has happened that needs nothing from outside. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn()
}
const types = async (shell: Pick<RunningSession, 'channel'>, text: string): Promise<void> =>
  shell.channel.write(Buffer.from(text))
/** Everything that a channel is sent from now on. */
function listening(channel: Channel): { text: string } {
  const heard = { text: '' }
  void channel.readAll(({ bytes }) => void (heard.text += String(bytes))).catch(() => undefined)
  return heard
}

describe('a client', () => {
  test('types and reads, and its output is recorded first', async () => {
    const { shell } = await openShell()
    await types(shell, 'one')
    expect(await reads(shell.channel, 'one')).toBe('one')
    expect(recorded).toEqual(['one'])
  })

  test('is shown output when it is recorded, and not before', async () => {
    const { shell } = await openShell()
    const { promise, resolve } = Promise.withResolvers<void>()
    recording = () => promise
    const heard = listening(shell.channel)
    await types(shell, 'one')
    await until(() => recorded.includes('one'))
    await nextTurn()
    expect(heard.text).toBe('')
    resolve()
    await until(() => heard.text === 'one')
  })

  test('is not shown what cannot be recorded', async () => {
    const { shell, terminal } = await openShell()
    const heard = listening(shell.channel)
    recording = async () => Promise.reject(new Error('The disk is full.'))
    await expect(terminal.write(Buffer.from('secret'))).rejects.toThrow('The disk is full.')
    expect(heard.text).toBe('')
  })

  test('is shown what an administrator announces, and the recording has it', async () => {
    const { shell, terminal } = await openShell()
    terminal.announce('Welcome.')
    expect(await reads(shell.channel, '.')).toBe('Welcome.')
    expect(marks).toEqual(['Welcome.'])
  })

  test('that typed before its program began has typed into it first', async () => {
    const { shell } = await openShell({
      onProgram: async (terminal) => void (terminal.typedBefore = Buffer.from('early ')),
    })
    await types(shell, 'late')
    expect(await reads(shell.channel, 'late')).toBe('early late')
  })

  test('that says goodbye ends the terminal', async () => {
    const { mine, terminal } = await openShell()
    await mine.end(Reason.byApplication, 'bye')
    await terminal.closed
    expect(terminal.isOver).toBe(true)
    expect(screen.state.isDisposed).toBe(true)
  })

  test('that closes its terminal and stays connected ends the terminal', async () => {
    const { shell, terminal } = await openShell({ onLost: () => expect.unreachable() })
    await shell.channel.close()
    await terminal.closed
    expect(terminal.isOver).toBe(true)
  })

  test('that the server disconnects ends the terminal', async () => {
    const { end, terminal } = await openShell({ onLost: () => expect.unreachable() })
    await end.end(Reason.byApplication, 'The server has had enough.')
    await terminal.closed
  })

  test('that is lost leaves the terminal held, and its program runs on', async () => {
    const { mine, shell, terminal } = await openShell()
    await types(shell, 'before')
    await reads(shell.channel, 'before')
    await mine.end(Reason.connectionLost, 'lost')
    await until(() => terminal.heldUntil !== undefined)
    expect([terminal.heldUntil, terminal.client]).toEqual([heldUntil, undefined])
    await terminal.typeFor(Buffer.from('after'))
    await until(() => recorded.includes('after'))
    expect(screen.shown.join('')).toBe('beforeafter')
    expect(marks).toEqual(['held'])
    // The session lasts as long as its terminal.
    let isOver = false
    void over.then(() => (isOver = true))
    await turns()
    expect(isOver).toBe(false)
  })

  test('that is lost ends the terminal where it may not be held', async () => {
    const { mine, terminal } = await openShell({ onLost: () => undefined })
    await mine.end(Reason.connectionLost, 'lost')
    await terminal.closed
    expect(terminal.isOver).toBe(true)
  })

  test('that is lost ends what may never be held, without a question', async () => {
    const { mine, terminal } = await openShell({ mayHold: false, onLost: () => expect.unreachable() })
    expect(terminal.isHoldable).toBe(false)
    await mine.end(Reason.connectionLost, 'lost')
    await terminal.closed
  })

  test('that is lost with two terminals leaves one of them', async () => {
    const { mine } = await openShell()
    await startSession(mine, { program: { type: 'shell' }, pty })
    expect(near.terminals.size).toBe(2)
    await mine.end(Reason.connectionLost, 'lost')
    await until(() => near.terminals.size === 1)
    expect([...near.terminals].map((one) => one.heldUntil)).toEqual([heldUntil])
  })

  test('a program without a terminal is never held', async () => {
    const [mine, end] = localPair()
    begin(end, { onLost: () => expect.unreachable() })
    await startSession(mine, { program: { type: 'exec', command: 'make' } })
    const [terminal] = near.terminals
    expect(terminal!.isHoldable).toBe(false)
    await mine.end(Reason.connectionLost, 'lost')
    await terminal!.closed
  })
})

describe('a held terminal', () => {
  test('ends with its session', async () => {
    const terminal = await openHeld()
    await near.end(Reason.byApplication, 'An administrator closed the session.')
    expect(terminal.isOver).toBe(true)
    expect(() => terminal.send(Buffer.from('late'))).toThrow('closed')
  })
})

test('a device that is lost leaves nothing to hold', async () => {
  const { terminal } = await openShell({ onLost: () => expect.unreachable() })
  await near.end(Reason.connectionLost, 'The connection to the device was lost.')
  expect(terminal.isOver).toBe(true)
})

describe('a client that reattaches', () => {
  test('is shown the screen, then the output of now, and types', async () => {
    const { mine, shell, terminal } = await openShell()
    await types(shell, 'old')
    await reads(shell.channel, 'old')
    await mine.end(Reason.connectionLost, 'lost')
    await until(() => terminal.heldUntil !== undefined)
    const { channel, attaching } = await reattach(terminal)
    expect(await reads(channel, ']')).toBe('[old]')
    await attaching
    await types({ channel }, 'new')
    expect(await reads(channel, 'new')).toBe('new')
    expect(attached).toEqual([{ source: '192.0.2.7', via: 'ssh' }])
    expect(terminal.heldUntil).toBeUndefined()
  })

  test('output waits until the screen is drawn, and comes once', async () => {
    const { mine, terminal } = await openShell()
    await mine.end(Reason.connectionLost, 'lost')
    await until(() => terminal.heldUntil !== undefined)
    const drawing = Promise.withResolvers<void>()
    screen.state.drawing = drawing.promise
    const { channel, attaching } = await reattach(terminal)
    const sent = terminal.send(Buffer.from('late'))
    expect(recorded).toEqual([])
    drawing.resolve()
    expect(await reads(channel, 'late')).toBe('[]late')
    await Promise.all([attaching, sent])
  })

  test('keeps the terminal from the moment at which it has seen the screen', async () => {
    let kept = 0
    const terminal = await openHeld({ onAttached: () => void (kept += 1) })
    const drawing = Promise.withResolvers<void>()
    screen.state.drawing = drawing.promise
    const { channel, attaching } = await reattach(terminal)
    await nextTurn()
    expect([attached.length, kept]).toEqual([1, 0])
    drawing.resolve()
    await reads(channel, ']')
    await attaching
    expect([kept, marks]).toEqual([1, ['held', 'resumed']])
  })

  test('sees output that is just being recorded once: the screen is drawn over it', async () => {
    const { shell, terminal } = await openShell()
    const { promise, resolve } = Promise.withResolvers<void>()
    recording = () => promise
    await types(shell, 'now')
    await until(() => recorded.includes('now'))
    const { channel, attaching } = await reattach(terminal)
    await nextTurn()
    resolve()
    expect(await reads(channel, ']')).toBe('now[now]')
    await attaching
    await types({ channel }, 'next')
    expect(await reads(channel, 'next')).toBe('next')
  })

  test('and is overtaken while it is drawn the screen does not get the terminal back', async () => {
    const terminal = await openHeld()
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    screen.state.drawing = first.promise
    const slow = await reattach(terminal)
    const heard = listening(slow.channel)
    await nextTurn()
    screen.state.drawing = second.promise
    const quick = await reattach(terminal)
    first.resolve()
    await slow.attaching
    await slow.channel.closed
    expect([terminal.client === quick.client, slow.moved.is]).toEqual([true, true])
    expect(heard.text).toContain('The session continues elsewhere')
    // Output still waits for the second screen.
    const sent = terminal.send(Buffer.from('late'))
    expect(recorded).toEqual([])
    second.resolve()
    expect(await reads(quick.channel, 'late')).toBe('[]late')
    await Promise.all([quick.attaching, sent])
    expect(terminal.client).toBe(quick.client)
  })

  test('and reads the last of a program that ends meanwhile', async () => {
    const terminal = await openHeld()
    const drawing = Promise.withResolvers<void>()
    screen.state.drawing = drawing.promise
    const { channel, attaching } = await reattach(terminal)
    const told: string[] = []
    void (async () => {
      for await (const { type } of channel.requests) told.push(type)
    })()
    await terminal.typeFor(Buffer.from('exit 7'))
    await turns()
    expect(told).toEqual([])
    drawing.resolve()
    expect(await reads(channel, ']')).toBe('[]')
    await Promise.all([attaching, terminal.closed])
    await until(() => told.includes('exit-status'))
  })

  test('and reads the screen of a terminal that is closed meanwhile', async () => {
    const terminal = await openHeld()
    const drawing = Promise.withResolvers<void>()
    screen.state.drawing = drawing.promise
    const { channel, attaching } = await reattach(terminal)
    const closing = terminal.close()
    await turns()
    drawing.resolve()
    expect(await reads(channel, ']')).toBe('[]')
    await Promise.all([attaching, closing])
  })

  test('and is lost, too, leaves the terminal held again; so does one that the server disconnects', async () => {
    const terminal = await openHeld()
    const lost = await reattached(terminal)
    await lost.mine.end(Reason.connectionLost, 'lost')
    await until(() => terminal.heldUntil !== undefined)
    const stopped = await reattached(terminal)
    expect(terminal.heldUntil).toBeUndefined()
    await stopped.end.end(Reason.byApplication, 'The login of this client is over.')
    await until(() => terminal.heldUntil !== undefined)
  })

  test('takes the terminal from the client that has it, which is told where the session is', async () => {
    const { shell, terminal } = await openShell()
    const { channel, moved } = await reattached(terminal)
    // Input of the former client is dropped, while it has not read yet that the terminal is another's.
    await types(shell, 'theirs')
    await types({ channel }, 'mine')
    expect(await reads(channel, 'mine')).toBe('mine')
    expect(await reads(shell.channel, '192.0.2.7.')).toContain(
      'The session continues elsewhere: ssh from 192.0.2.7.',
    )
    await shell.channel.closed
    expect(moved.is).toBe(false)
  })

  test('leaves the former client no say in the size', async () => {
    const { terminal } = await openShell()
    const former = terminal.client!
    const { channel, attaching } = await reattach(terminal)
    await reads(channel, ']')
    await attaching
    await until(() => asked.includes('80×24'))
    asked.length = 0
    const { name, payload } = writeRequest({
      type: 'window-change',
      size: { columns: 20, rows: 5, width: 0, height: 0 },
    })
    const answers: boolean[] = []
    const reply = (success: boolean): void => void answers.push(success)
    await terminal.takeRequest(former, { type: name, payload: Buffer.from(payload), wantReply: true, reply })
    expect([answers, asked, terminal.size]).toEqual([[false], [], size])
  })

  test('tells pages that come back by themselves whether somebody came since', async () => {
    const { terminal } = await openShell()
    expect(terminal.isMovedFrom('page')).toBe(false)
    const { channel, attaching } = await reattach(terminal, elsewhere, 'page')
    await reads(channel, ']')
    await attaching
    expect([terminal.isMovedFrom('page'), terminal.isMovedFrom('another')]).toEqual([false, true])
  })

  test('makes programs draw anew only if the screen lacks something', async () => {
    const { terminal } = await openShell()
    asked.length = 0
    const first = await reattach(terminal)
    await reads(first.channel, ']')
    await first.attaching
    await until(() => asked.length === 1)
    expect(asked).toEqual(['80×24'])
    screen.state.isPartial = true
    asked.length = 0
    const second = await reattach(terminal)
    await reads(second.channel, ']')
    await second.attaching
    await until(() => asked.length === 2)
    expect(asked).toEqual(['80×23', '80×24'])
  })

  test('may change the window, and asks for no second program', async () => {
    const { terminal } = await openShell()
    const { mine, channel, attaching } = await reattach(terminal)
    await reads(channel, ']')
    await attaching
    await until(() => asked.includes('80×24'))
    asked.length = 0
    const wide = writeRequest({
      type: 'window-change',
      size: { columns: 132, rows: 50, width: 0, height: 0 },
    })
    await channel.request(wide.name, wide.payload)
    await until(() => asked.includes('132×50'))
    const exec = writeRequest({ type: 'exec', command: 'reboot' })
    expect(await channel.request(exec.name, exec.payload, true)).toBe(false)
    expect(asked).toEqual(['132×50'])
    await mine.end(Reason.byApplication, 'bye')
    await terminal.closed
  })

  test('gets the exit status, which ends the terminal', async () => {
    const { terminal } = await openShell()
    const { channel, attaching } = await reattach(terminal)
    await reads(channel, ']')
    await attaching
    const statuses: number[] = []
    void (async () => {
      for await (const { type, payload } of channel.requests) {
        const request = readRequest(type, payload)
        if (request.type === 'exit-status') statuses.push(request.status)
      }
    })()
    await types({ channel }, 'exit 7')
    await terminal.closed
    await until(() => statuses.length > 0)
    expect(statuses).toEqual([7])
  })

  test('cannot have a terminal that is over', async () => {
    const { mine, terminal } = await openShell()
    await mine.end(Reason.byApplication, 'bye')
    await terminal.closed
    const { attaching } = await reattach(terminal)
    await expect(attaching).rejects.toThrow('The session is over.')
  })
})

describe('a restored terminal', () => {
  test.each([
    [true, ['80×24']],
    [false, ['80×23', '80×24']],
  ])(
    'begins held, shows what the agent kept, and draws anew unless that is all: %s',
    async (isWhole, sizes) => {
      begin(lostEnd())
      const terminal = near.restore(size, isWhole)!
      expect([terminal.heldUntil, terminal.isHoldable]).toEqual([heldUntil, true])
      terminal.recorder = { output: screen.screen.show, interrupted: () => undefined } as never
      const told: string[] = []
      void (async () => {
        for await (const { type, payload } of terminal.requests) {
          const request = readRequest(type, payload)
          if (request.type === 'window-change') told.push(`${request.size.columns}×${request.size.rows}`)
        }
      })()
      const { channel, attaching } = await reattach(terminal)
      await terminal.showStored(Buffer.from('kept'))
      expect(await reads(channel, ']')).toBe('[kept]')
      await attaching
      await until(() => told.length === sizes.length)
      expect(told).toEqual(sizes)
    },
  )

  test('is over at once where it cannot be held', async () => {
    begin(lostEnd(), { onLost: () => undefined })
    expect(near.restore(size, true)).toBeUndefined()
    // The end of the session: nothing else is in it.
    await over
    expect(near.terminals.size).toBe(0)
  })
})

test('who stops a terminal tells its client a sentence and a status', async () => {
  const { shell, terminal } = await openShell()
  const stopping = terminal.stop('The session was closed.')
  const told = await reads(shell.channel, 'closed.')
  expect(told).toContain('The session was closed.')
  // Whatever the program left on is off, such as the alternate screen.
  expect(told).toContain('\u001b[?1049l')
  await stopping
  await terminal.closed
  expect(terminal.isOver).toBe(true)
  // As an ssh whose connection is lost.
  expect(await shell.exit).toMatchObject({ status: 255 })
})
