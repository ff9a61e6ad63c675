// A terminal at one end of a stream between nodes: it is given to nobody but its person, nothing piles up
// when the other node does not read, and whatever cannot be understood is a client that is lost.
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { localPair, startSession } from '@hawser/ssh'
import { eventually } from '../../../tests/harness/eventually.ts'
import { keptScreen } from '../recording/kept-screen.ts'
import { fairShare } from '../kit/fair-share.ts'
import { screenThread } from '../recording/screen-thread.ts'
import { giveTerminal, type RemoteAttachRequest } from './carried-terminal.ts'
import { heldSessions, type KeptSession } from './held-sessions.ts'
import { keptEnd } from './kept-end.ts'
import type { KeptTerminal } from './kept-terminal.ts'

/** Waits as long as a busy machine takes, the start of the thread above all. */
const thread = screenThread()
afterAll(() => thread[Symbol.asyncDispose]())

const claim = { tenant_id: 'harbour', device_uid: 'gantry', username: 'root', identity: 'user olga' }
const request: RemoteAttachRequest = {
  ...claim,
  uid: 'f'.repeat(64),
  width: 80,
  height: 24,
  scrollback: false,
  where: 'ssh from 192.0.2.1',
  source: '192.0.2.1',
  via: 'ssh',
}

/** A shell with a client, as the pipe has it, and what happens to it. */
async function openShell() {
  const held = heldSessions({ now: () => Date.now() })
  const [client, near] = localPair()
  const events: string[] = []
  const end = keptEnd(near, {
    screen: (size) => keptScreen(size, { tenant_id: 'tenant', thread, memory: fairShare(64 * 1024 * 1024) }),
    onLost: () => Boolean(events.push('lost')),
    onAttached: () => void events.push('attached'),
  })
  const starting = startSession(client, {
    program: { type: 'shell' },
    pty: { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() },
  })
  const terminal = (await end.channels.next())!.accept() as KeptTerminal
  const typed: string[] = []
  void terminal.readAll(({ bytes }) => void typed.push(bytes.toString())).catch(() => undefined)
  const asked: string[] = []
  void (async () => {
    for await (const one of terminal.requests) {
      asked.push(one.type)
      one.reply(true)
    }
  })()
  const { channel } = await starting
  void terminal.closed.then(() => events.push('closed'))
  const session: KeptSession = {
    ...claim,
    uid: request.uid,
    started_at: 0,
    hold_s: 60,
    held_until: undefined,
    terminal: () => terminal,
    resumed: () => void events.push('resumed'),
    join: async (other) => end.join(other),
    end: () => undefined,
    mayContinue: () => Promise.resolve(true),
    leave: () => false,
  }
  held.add(session)
  return { held, terminal, channel, events, typed, asked }
}

const frame = (kind: number, bytes = Buffer.alloc(0), length = bytes.length): Buffer => {
  const head = Buffer.alloc(5)
  head.writeUInt8(kind, 0)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, bytes])
}

/** Whether a promise is still open after the process has had all chances to go on. */
async function isStuck(work: Promise<void>): Promise<boolean> {
  const progress = { isDone: false }
  void work.then(() => (progress.isDone = true))
  for (let turns = 0; turns < 200 && !progress.isDone; turns += 1) await nextTurn()
  return !progress.isDone
}

test('it is given to its person on its account of its device in its namespace, and to nobody else', async () => {
  const { held, events } = await openShell()
  for (const change of [
    { uid: 'e'.repeat(64) },
    { tenant_id: 'other' },
    { device_uid: 'other' },
    { username: 'other' },
    { identity: 'user oskar' },
    { identity: '' },
  ])
    await expect(giveTerminal(held, { ...request, ...change })).rejects.toThrow('The session is over.')
  expect(events).toEqual([])
  await giveTerminal(held, request)
  expect(events[0]).toBe('resumed')
})

test('what is typed comes first, sizes pass, and whoever had it is told', async () => {
  const { held, channel, typed, asked, events } = await openShell()
  const stream = await giveTerminal(held, request)
  const size = Buffer.alloc(16)
  size.writeUInt32BE(90, 0)
  size.writeUInt32BE(30, 4)
  stream.write(frame(0, Buffer.from('first')))
  stream.write(frame(2, Buffer.concat([Buffer.of(13), Buffer.from('window-change'), size])))
  // What only a client that opens a terminal may ask for is refused without a word.
  stream.write(frame(2, Buffer.concat([Buffer.of(5), Buffer.from('shell')])))
  const shown: string[] = []
  void channel.readAll(({ bytes }) => void shown.push(bytes.toString()))
  await eventually(() => expect(typed.join('')).toBe('first'))
  await eventually(() => expect(asked.filter((one) => one === 'window-change')).toHaveLength(2))
  await eventually(() =>
    expect(shown.join('')).toContain('The session goes on elsewhere: ssh from 192.0.2.1.'),
  )
  stream.write(frame(4, Buffer.from('left')))
  await eventually(() => expect(events.at(-1)).toBe('closed'))
  expect(events).not.toContain('lost')
  expect(asked.filter((one) => one === 'shell')).toHaveLength(1)
})

test('a node that does not read stops the program, and little is held for it', async () => {
  const { held, terminal, events } = await openShell()
  await giveTerminal(held, request)
  await eventually(() => expect(events).toContain('attached'))
  const chunk = Buffer.alloc(32 * 1024, 'x')
  let taken_bytes = 0
  while (taken_bytes < 64 * 1024 * 1024) {
    const sending = terminal.send(chunk)
    if (sending && (await isStuck(sending))) break
    taken_bytes += chunk.length
  }
  expect(taken_bytes).toBeLessThan(1024 * 1024)
})

test.each([
  ['a frame that is too long', (stream: Duplex) => stream.write(frame(0, Buffer.alloc(0), 0xffff_ffff))],
  ['a request without a name', (stream: Duplex) => stream.write(frame(2))],
  ['half a frame and the end', (stream: Duplex) => stream.end(frame(0, Buffer.from('x'), 9))],
  ['a stream that breaks', (stream: Duplex) => stream.destroy()],
  ['the word that the client is lost', (stream: Duplex) => stream.write(frame(4, Buffer.from('lost')))],
])('%s leaves the terminal to its person', async (_, act) => {
  const { held, events } = await openShell()
  const stream = await giveTerminal(held, request)
  await eventually(() => expect(events).toContain('attached'))
  act(stream)
  await eventually(() => expect(events.at(-1)).toBe('lost'))
})
