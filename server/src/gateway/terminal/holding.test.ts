// One session that is held: what its record and its agent hear of it, and the rights of its person, which are read
// when the client is lost and at each return.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { localPair, Reason, startSession, type Channel, type Connection } from '@hawser/ssh'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import type { Log } from '../../kit/log.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { clientOf } from './client.ts'
import { continuableTerminal, heldSessions } from './held.ts'
import { holding, type Holding } from './holding.ts'
import { lostEnd, nearEnd, type NearEnd } from './near-end.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const size = { width: 80, height: 24 }
const by = { source: '192.0.2.7', via: 'ssh' } as const
const claim = { tenant_id: 'harbour', device_uid: 'crane', username: 'root', identity: 'user olga' }
const screen = {
  resize: () => undefined,
  settle: async () => undefined,
  [Symbol.dispose]: () => undefined,
} as unknown as TerminalScreen

function place(change: Partial<Holding> = {}, client = lostEnd()) {
  const state = { mayBeHeld: async () => true, standing: 'operator 1' as string | undefined }
  const [noted, ended]: [string[], string[]] = [[], []]
  const record = {
    uid: 'one',
    note: (about: object) => void noted.push(JSON.stringify(about)),
    held: (until: string) => void noted.push(`held until ${until}`),
    resumed: (source: string, via: string) => void noted.push(`resumed from ${source} by ${via}`),
    released: () => void noted.push('released'),
    leave: (until: string) => void noted.push(`left until ${until}`),
  } as unknown as LiveSession
  const held = heldSessions(Date)
  const holds = holding(
    {
      mayBeHeld: async () => state.mayBeHeld(),
      standing: async () => state.standing,
      held,
      detachSecret: () => 'secret',
    },
    {
      claim,
      record,
      hold_s: 60,
      login: {
        person: { kind: 'user', id: 'olga', name: 'olga' },
        key: undefined,
        via: 'ssh',
        shown: undefined,
        standing: 'operator 1',
        restored: 'one',
      },
      near: (): NearEnd => near,
      far: { end: async (reason: number) => void ended.push(`device ${reason}`) } as unknown as Connection,
      started_at: Date.now(),
      expires_at: undefined,
      active: () => undefined,
      log: new Proxy({}, { get: () => () => undefined }) as Log,
      ...change,
    },
  )
  const near: NearEnd = nearEnd(client, {
    ...holds.terminal,
    screen() {
      holds.terminal.onOpened()
      return screen
    },
  })
  void near.ended.then(() => ended.push('session'))
  held.add(holds.session)
  /** The client of its terminal is lost. */
  const lose = () => near.restore(size, true)
  const settled = async (): Promise<void> => {
    await vi.advanceTimersByTimeAsync(0)
    await nextTurn()
  }
  return { state, noted, ended, held, holds, near, lose, settled, until: (ms: number) => isoIn(ms) }
}
const isoIn = (ms: number): string => new Date(Date.now() + ms).toISOString()

/** A session whose client has a shell in a terminal, which its agent keeps. */
async function live(change: Partial<Holding> = {}) {
  const [mine, end] = localPair()
  const one = place(change, end)
  const grant = async ({ requests }: Channel): Promise<void> => {
    for await (const { reply } of requests) reply(true)
  }
  void (async () => {
    for await (const opening of one.near.channels) void grant(opening.accept())
  })()
  const pty = { terminal: 'xterm', columns: 80, rows: 24, width: 0, height: 0, modes: new Map() }
  const { channel } = await startSession(mine, { program: { type: 'shell' }, pty })
  const leg = Promise.withResolvers<void>()
  one.holds.onDetachable(leg.promise)
  await one.settled()
  return { ...one, mine, channel, leg }
}

describe('the rights of the person', () => {
  test('are read when the client is lost: who may not reattach leaves nothing behind', async () => {
    const { state, lose, settled, ended } = place()
    state.mayBeHeld = async () => false
    expect(lose()?.heldUntil).toBeDefined()
    await settled()
    expect(ended).toEqual(['session'])
  })

  test('are read again while the database is away', async () => {
    const { state, lose, ended } = place()
    state.mayBeHeld = async () => Promise.reject(new Error('away'))
    lose()
    await vi.advanceTimersByTimeAsync(11_000)
    expect(ended).toEqual([])
    state.mayBeHeld = async () => false
    await vi.advanceTimersByTimeAsync(5_000)
    expect(ended).toEqual(['session'])
  })

  test('are read at each return', async () => {
    const { state, lose, settled, holds } = place()
    const terminal = lose()
    await settled()
    expect(await continuableTerminal(holds.session)).toBe(terminal)
    state.mayBeHeld = async () => false
    expect(await continuableTerminal(holds.session)).toBeUndefined()
  })

  test('of a restored session are those of its beginning, until its person is back', () => {
    const began = place().holds
    expect(began.heldFor()).not.toHaveProperty('standing')
    expect(began.heldFor()).not.toHaveProperty('restored')
    const { holds } = place({ expires_at: Date.now() + 30_000 })
    expect(holds.heldFor()).toMatchObject({ ...claim, standing: 'operator 1', restored: 'one' })
    holds.terminal.onAttach(by)
    expect(holds.heldFor()).not.toHaveProperty('standing')
  })
})

describe('the time', () => {
  test('is that of the namespace, and the record has it; so does it have who came back', async () => {
    const { lose, holds, noted, until } = place()
    expect(holds.terminal.mayHold).toBe(true)
    lose()
    expect(noted).toContain(`held until ${until(60_000)}`)
    holds.terminal.onAttach(by)
    expect(noted).toContain('resumed from 192.0.2.7 by ssh')
  })

  test('changes with the namespace; 0 changes nothing, and nothing is held for a login that may not be', () => {
    const { holds } = place()
    holds.hold(120)
    holds.hold(0)
    expect(holds.session.hold_s).toBe(120)
    const never = place({ hold_s: 0 })
    never.holds.hold(120)
    expect([never.holds.terminal.mayHold, never.holds.session.hold_s]).toEqual([false, 0])
    expect(never.holds.detachText).toBeUndefined()
  })

  test('of a restored session is what was left of it, and the whole when its person is back', async () => {
    const { holds, lose, noted, until } = place({ expires_at: Date.now() + 30_000 })
    lose()
    expect(noted).toContain(`held until ${until(30_000)}`)
    holds.terminal.onAttach(by)
    expect(holds.session.hold_s).toBe(60)
    const nobody = place({ expires_at: Date.now() + 30_000 })
    nobody.lose()
    await vi.advanceTimersByTimeAsync(30_000)
    expect(nobody.ended).toEqual(['session'])
  })
})

test('a restored session is not held where its namespace holds none now', async () => {
  const { lose, settled, held, ended } = place({ hold_s: 0, expires_at: Date.now() + 1_800_000 })
  expect(lose()).toBeUndefined()
  await settled()
  expect([held.count, ended]).toEqual([0, ['session']])
})

test.each(['its time is over', 'the right of its person is gone'])(
  'a terminal that another client had ends alone when %s, while its first client is there',
  async (why) => {
    const { state, holds, held, near, noted, ended, mine, settled } = await live()
    const terminal = holds.session.terminal()!
    const beside = await startSession(mine, { program: { type: 'exec', command: 'make' } })
    const [other, end] = localPair()
    const opening = other.open('session')
    const accepted = (await end.channels.next())!.accept()
    await opening
    await terminal.attach(clientOf(accepted, end, terminal), size, { ...by, scrollback: false })
    if (why !== 'its time is over') state.mayBeHeld = async () => false
    await other.end(Reason.connectionLost, 'lost')
    await settled()
    await vi.advanceTimersByTimeAsync(60_000)
    await settled()
    expect([terminal.isOver, held.count, noted.at(-1)]).toEqual([true, 0, 'released'])
    expect([ended, [...near.terminals].length]).toEqual([[], 1])
    await beside.channel.close('now')
    await mine.end()
  },
)

describe('an agent that keeps the terminal', () => {
  const kept = JSON.stringify({ kept_s: 60, kept_for: { standing: 'operator 1' } })

  test('is noted when it has a terminal to keep, and for a person who has rights', async () => {
    const one = place()
    one.holds.onDetachable(new Promise(() => undefined))
    await one.settled()
    expect(one.noted).toEqual([])
    one.holds.terminal.onOpened()
    await one.settled()
    expect(one.noted).toEqual([kept])
    const without = place()
    without.state.standing = undefined
    without.holds.terminal.onOpened()
    without.holds.onDetachable(new Promise(() => undefined))
    await without.settled()
    expect(without.noted).toEqual([])
  })

  test('has it when the server stops: the record stays open, and the device is lost without a goodbye', async () => {
    const { holds, noted, ended, mine, until } = await live()
    holds.hold(600)
    expect(holds.session.leave('The server stops.')).toBe(true)
    // The agent does not know of the longer time.
    expect(noted.at(-1)).toBe(`left until ${until(60_000)}`)
    expect([ended, holds.session.isLeft]).toEqual([[`device ${Reason.connectionLost}`], true])
    expect(await mine.ended).toMatchObject({ reason: Reason.serviceNotAvailable })
  })

  test('is the only one with which the session goes on elsewhere', async () => {
    const { holds, noted, leg, settled, mine } = await live()
    leg.resolve()
    await settled()
    const before = noted.length
    expect(holds.session.leave('The server stops.')).toBe(false)
    holds.session.handOver(by)
    expect([noted.length, holds.handedOver(), holds.session.isLeft]).toEqual([before, undefined, false])
    await mine.end()
  })

  test('gives it to another node: the client reads where, and the device is lost without a goodbye', async () => {
    const { holds, noted, ended, channel, until } = await live()
    holds.session.handOver(by)
    expect(noted.at(-1)).toBe(`left until ${until(60_000)}`)
    const chunk = await channel.read()
    expect(String(chunk?.bytes)).toContain('The session continues elsewhere: ssh from 192.0.2.7.')
    await holds.handedOver()
    expect(ended).toEqual([`device ${Reason.connectionLost}`, 'session'])
  })
})
