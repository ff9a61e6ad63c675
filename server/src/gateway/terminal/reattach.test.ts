// Plain ssh logs in anew and may continue a held session: which sessions are offered, which keys are an answer, and
// that every other input reaches the new shell as it was typed.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { localPair, readRequest, Reason, writeRequest, type Channel, type SessionRequest } from '@hawser/ssh'
import type { SessionPerson } from '@hawser/contract/sessions'
import { until } from '../../../../tests/harness/eventually.ts'
import type { ChannelRecorder } from '../../recording/channel-recorder.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { clientOf } from './client.ts'
import { anybody, heldSessions, type HoldableSession } from './held.ts'
import { reattaching, type ReattachParts } from './reattach.ts'
import { Terminal, type TerminalParts } from './terminal.ts'

afterEach(() => void vi.useRealTimers())

const by = { source: '192.0.2.7', via: 'ssh' } as const
const olga: SessionPerson = { kind: 'user', id: 'olga', name: 'olga' }
const claim = { tenant_id: 'harbour', device_uid: 'crane', username: 'root', identity: 'user olga' }

function terminalWith(name: string, change: Partial<TerminalParts> = {}) {
  const screen = {
    resize: () => undefined,
    redraw: async (_: object, scrollback: boolean) =>
      Buffer.from(`[${name}${scrollback ? ' and before' : ''}]`),
    settle: async () => undefined,
    [Symbol.dispose]: () => undefined,
  } as unknown as TerminalScreen
  const terminal = new Terminal('session', {
    screen: () => screen,
    mayHold: true,
    onLost: () => 1,
    onAttach: () => undefined,
    onAttached: () => undefined,
    ...change,
  })
  terminal.recorder = { interrupted: () => undefined, output: () => undefined } as unknown as ChannelRecorder
  const asked: string[] = []
  void (async () => {
    for await (const { type, payload, reply } of terminal.requests) {
      const request = readRequest(type, payload)
      asked.push(request.type === 'window-change' ? `${request.size.columns}×${request.size.rows}` : type)
      reply(true)
    }
  })()
  return { terminal, asked }
}

/** Sessions of olga at this node, and a client that logs in now. */
function place(change: Partial<ReattachParts> = {}) {
  const held = heldSessions(Date)
  const state = { may: async () => true }
  const continued: string[] = []
  const add = (uid: string, about: Partial<HoldableSession> = {}) => {
    const { terminal, asked } = terminalWith(uid)
    terminal.restore({ width: 80, height: 24 }, true)
    void terminal.showStored(Buffer.alloc(0))
    held.add({
      ...claim,
      uid,
      started_at: Date.UTC(2026, 0, 1, 10, 32) + continued.length,
      hold_s: 60,
      terminal: () => terminal,
      mayContinue: async () => state.may(),
      join: async () => undefined,
      leave: () => false,
      handOver: () => undefined,
      end: () => undefined,
      ...about,
    })
    return { terminal, asked }
  }
  const onProgram = reattaching({
    held,
    elsewhere: undefined,
    restoring: () => undefined,
    claim,
    person: olga,
    uid: 'new',
    by,
    onReattached: (uid) => void continued.push(uid),
    ...change,
  })
  const own = terminalWith('new', { onProgram })
  /** The client begins this program in a terminal. */
  async function begin(program: SessionRequest, hasTerminal = true) {
    const [mine, end] = localPair()
    const opening = mine.open('session')
    const channel = (await end.channels.next())!.accept()
    const shell = await opening
    own.terminal.begin(clientOf(channel, end, own.terminal))
    const size = { columns: 100, rows: 30, width: 0, height: 0 }
    const ask = async (request: SessionRequest): Promise<boolean | undefined> => {
      const { name, payload } = writeRequest(request)
      return shell.request(name, payload, true)
    }
    if (hasTerminal) await ask({ type: 'pty-req', pty: { ...size, terminal: 'xterm', modes: new Map() } })
    const heard = { text: '', status: -1 }
    void shell.readAll(({ bytes }) => void (heard.text += String(bytes))).catch(() => undefined)
    void (async () => {
      for await (const { type, payload } of shell.requests) {
        const request = readRequest(type, payload)
        if (request.type === 'exit-status') heard.status = request.status
      }
    })()
    const answered = ask(program).catch(() => false)
    const hears = async (text: string) => until(() => heard.text.includes(text))
    return { mine, shell, heard, hears, answered, ask }
  }
  return { own, state, continued, add, held, begin }
}
const types = async (channel: Channel, text: string): Promise<void> => channel.write(Buffer.from(text))
const attachCommand = (rest = ''): SessionRequest => ({ type: 'exec', command: `hawser-attach${rest}` })
const isStarted = async (own: { readonly asked: string[] }) => until(() => own.asked.includes('shell'))

describe('a shell', () => {
  test('begins without a question where nothing is held', async () => {
    const { own, begin } = place()
    const { heard, answered } = await begin({ type: 'shell' })
    expect([await answered, own.asked, heard.text]).toEqual([true, ['pty-req', 'shell'], ''])
  })

  test('begins without a question where the client of the other session is still there', async () => {
    const { add, own, begin } = place({ elsewhere: async () => [] })
    const other = add('live')
    const [, end] = localPair()
    const never = new Promise<never>(() => undefined)
    const channel = { write: async () => undefined, request: async () => true, closed: never } as never
    await other.terminal.attach(
      { channel, end, terminal: other.terminal },
      { width: 80, height: 24 },
      {
        ...by,
        scrollback: false,
      },
    )
    const { heard, answered } = await begin({ type: 'shell' })
    expect([await answered, own.asked, heard.text]).toEqual([true, ['pty-req', 'shell'], ''])
    expect(other.terminal.client).toBeDefined()
  })

  test('is not offered to itself, nor to another person', async () => {
    const { add, own, begin } = place({ elsewhere: async () => [] })
    add('new')
    add('theirs', { identity: 'user vera' })
    const { heard, answered } = await begin({ type: 'shell' })
    expect([await answered, own.asked, heard.text]).toEqual([true, ['pty-req', 'shell'], ''])
  })

  test.each([
    ['\r', '[held]'],
    ['\r\n', '[held]'],
    ['y', '[held]'],
    ['1', '[held]'],
    ['s', '[held and before]'],
  ])('is exchanged for the held session by %j, and the size of the window with it', async (key, screen) => {
    const { add, own, continued, begin } = place()
    const { terminal, asked } = add('held')
    const { shell, hears, answered, ask } = await begin({ type: 'shell' })
    await hears('Your session of 10:32 UTC is still there')
    await types(shell, key)
    await hears(screen)
    expect([await answered, continued, own.asked, own.terminal.isOver]).toEqual([
      true,
      ['held'],
      ['pty-req'],
      true,
    ])
    await until(() => asked.includes('100×30'))
    // What the client asks from now on is for the held session.
    await ask({ type: 'window-change', size: { columns: 132, rows: 50, width: 0, height: 0 } })
    expect([terminal.size, asked.at(-1)]).toEqual([{ width: 132, height: 50 }, '132×50'])
  })

  test('is exchanged for one of several by its number', async () => {
    const { add, continued, begin } = place()
    for (const [at, uid] of ['first', 'second', 'third'].entries()) add(uid, { started_at: -at })
    const { shell, hears } = await begin({ type: 'shell' })
    await hears('Your sessions are still there')
    await types(shell, '2')
    await hears('[second]')
    expect(continued).toEqual(['second'])
  })

  test.each(['n', 'N', '9'])('begins by %j, which is not typed into it', async (key) => {
    const { add, own, begin } = place()
    const { terminal } = add('held')
    const { shell, hears } = await begin({ type: 'shell' })
    await hears('still there')
    await types(shell, key)
    await isStarted(own)
    expect([own.terminal.typedBefore, terminal.heldUntil]).toEqual([undefined, 1])
  })

  test.each(['yes\r', '\rls\r', '\u001b[24;80R', 'id', 'ü'])(
    'begins by %j, which no key alone is, and gets all of it',
    async (input) => {
      const { add, own, begin } = place()
      const { terminal } = add('held')
      const { shell, hears } = await begin({ type: 'shell' })
      await hears('still there')
      await types(shell, input)
      await isStarted(own)
      expect([String(own.terminal.typedBefore), terminal.heldUntil]).toEqual([input, 1])
    },
  )

  test('begins when the right to the held session has ended while the question stood', async () => {
    const { add, own, state, continued, begin } = place()
    const { terminal } = add('held')
    const { shell, hears } = await begin({ type: 'shell' })
    await hears('still there')
    state.may = async () => false
    await types(shell, '\r')
    await hears('That session has ended; starting a new one.')
    await isStarted(own)
    expect([continued, terminal.heldUntil]).toEqual([[], 1])
  })

  test('begins when one of many who know the same password was quicker', async () => {
    const shared = { ...claim, identity: anybody }
    const { add, own, begin } = place({ claim: shared })
    const { terminal } = add('held', { identity: anybody })
    const { shell, hears } = await begin({ type: 'shell' })
    await hears('still there')
    const [, end] = localPair()
    const never = new Promise<never>(() => undefined)
    const channel = { write: async () => undefined, request: async () => true, closed: never } as never
    const quicker = { channel, end, terminal }
    await terminal.attach(quicker, { width: 80, height: 24 }, { ...by, scrollback: false })
    await types(shell, '\r')
    await isStarted(own)
    expect(terminal.client).toBe(quicker)
  })
})

test('of two who know the same password and are answered at once, one gets the terminal', async () => {
  const rights = Promise.withResolvers<boolean>()
  let asked = 0
  const { add, begin, held } = place({ claim: { ...claim, identity: anybody } })
  const { terminal } = add('held', {
    identity: anybody,
    // Each asks for the list, and again to take the session.
    mayContinue: async () => ++asked % 2 === 1 || rights.promise,
  })
  const second = place({ claim: { ...claim, identity: anybody }, held })
  const both = [await begin(attachCommand()), await second.begin(attachCommand())]
  await until(() => asked === 4)
  rights.resolve(true)
  const hasHeard = (text: string): boolean[] => both.map(({ heard }) => heard.text.includes(text))
  await until(() => hasHeard('[held]').includes(true) && hasHeard('The session is over').includes(true))
  expect(hasHeard('continues elsewhere')).toEqual([false, false])
  expect(terminal.client).toBeDefined()
})

describe('hawser-attach', () => {
  test('continues a session without a question, by the beginning of its id', async () => {
    const { add, continued, begin, own } = place()
    for (const [at, uid] of ['ab1', 'ab2'].entries()) add(uid, { started_at: -at })
    const { hears, answered } = await begin(attachCommand(' -s ab2'))
    await hears('[ab2 and before]')
    expect([await answered, continued, own.asked]).toEqual([true, ['ab2'], ['pty-req']])
  })

  test.each([
    ['an id of nothing', ' cd', 'You have no such session'],
    ['no id', ' ../../etc', 'usage: ssh -t'],
    ['something else behind the id', ' ab1 -s', 'usage: ssh -t'],
  ])('with %s starts nothing, says so and ends with 1', async (_, rest, sentence) => {
    const { add, own, begin } = place()
    const { terminal } = add('ab1')
    const { shell, hears, heard } = await begin(attachCommand(rest))
    await hears(sentence)
    await shell.closed
    await until(() => heard.status === 1)
    expect([own.asked, own.terminal.isOver, terminal.heldUntil]).toEqual([['pty-req'], true, 1])
  })

  test('without a terminal, or with a right that has ended, starts nothing', async () => {
    const { add, own, begin } = place()
    add('ab1')
    const { hears, shell } = await begin(attachCommand(), false)
    await hears('needs a terminal')
    await shell.closed
    expect(own.asked).toEqual([])
    const without = place()
    without.add('ab1')
    without.state.may = async () => Promise.reject(new Error('The database is away.'))
    const refused = await without.begin(attachCommand())
    await refused.hears('You have no such session')
  })

  test('continues a session of another node, and says so where that node has it no more', async () => {
    const take = vi.fn<() => Promise<HoldableSession | undefined>>(async () => undefined)
    const { own, begin } = place({
      elsewhere: async () => [{ uid: 'ab1', started_at: 0, isHeld: false, take }],
    })
    const { hears, heard } = await begin(attachCommand())
    await hears('The session is over, or cannot be reached.')
    await until(() => heard.status === 1)
    expect([take.mock.calls, own.terminal.isOver]).toEqual([[[by]], true])
  })
})

test('a client that is lost at the question leaves nothing behind', async () => {
  const { add, own, begin } = place()
  const { terminal } = add('held')
  const { mine, hears } = await begin({ type: 'shell' })
  await hears('still there')
  await mine.end(Reason.connectionLost, 'lost')
  await own.terminal.closed
  expect([own.asked, terminal.heldUntil]).toEqual([['pty-req'], 1])
})
