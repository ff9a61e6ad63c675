// A terminal that its person shares: who types is decided by the person, by the firewall and by whoever has the
// keyboard, and everything that a guest types is recorded under their name. Nothing is said in a terminal that is over.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Visitor } from '../../domain/sessions/sharing.ts'
import type { Size } from '../../recording/journal.ts'
import { TerminalSeats, type SharingParts } from './shared-terminal.ts'
import { sharedTerminals } from './sharing.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const big: Size = { width: 100, height: 40 }

/** A terminal of olga's with a shell that gets what is typed. */
function place() {
  const state = { mayReach: async () => true, places: 0, free: 9 }
  const [lines, typed, typists, actions]: [string[], string[], string[], string[]] = [[], [], [], []]
  let people: { id: number; state: string }[] = []
  const terminal = {
    closed: new Promise<void>(() => undefined),
    client: {} as object | undefined,
    isOver: false,
    recorder: {
      channel: 1 as number | undefined,
      typist: (by: string, id?: string) => void typists.push(id === undefined ? by : `${by} ${id}`),
    },
    sharing: undefined as SharingParts['terminal']['sharing'],
    drawAnew: () => undefined,
    refit: () => undefined,
    say: (text: string) => void lines.push(text),
    typeFor: async (bytes: Uint8Array) => void typed.push(String(Buffer.from(bytes))),
  }
  const parts = {
    terminal,
    person: 'olga',
    place() {
      if (state.places >= state.free) return undefined
      state.places += 1
      return { [Symbol.dispose]: () => void (state.places -= 1) }
    },
    mayReach: async () => state.mayReach(),
    changed(presence: { people: { id: number; state: string }[] }, notes: { action: string }[]) {
      people = presence.people
      actions.push(...notes.map(({ action }) => action))
    },
  } as unknown as SharingParts
  const shared = new TerminalSeats(parts)
  /** A user in a window of their own. */
  function enter(id: string, change: Partial<Visitor> = {}) {
    const told: string[] = []
    const visitor = {
      caller: { kind: 'user', id, source: '192.0.2.1' },
      name: id,
      needsNoConsent: async () => false,
      present: () => undefined,
      note: (sentence: string) => void told.push(sentence),
      admitted: () => void told.push('admitted'),
      dismissed: (sentence: string) => void told.push(sentence),
      ...change,
    } as unknown as Visitor
    const seat = shared.enter(visitor)
    const type = async (text: string): Promise<void> => seat.type(Buffer.from(text))
    return { seat, told, type }
  }
  return {
    state,
    terminal,
    lines,
    typed,
    typists,
    actions,
    enter,
    decide: shared.decide.bind(shared),
    people: () => people.map((one) => one.state),
    /** What the device gets of keys that the person types. */
    press: (text: string) => terminal.sharing!.typed({ bytes: Buffer.from(text), stream: 0 }),
    fit: () => terminal.sharing!.fit(big),
  }
}

/** Two guests who may type, and a third who watches. */
async function three() {
  const one = place()
  const [vera, stan, gast] = [one.enter('vera'), one.enter('stan'), one.enter('gast')]
  await vera.seat.ask()
  one.decide({ kind: 'allow', channel: 1, who: 1 })
  await stan.seat.ask()
  one.decide({ kind: 'allow', channel: 1, who: 2 })
  return { ...one, vera, stan, gast }
}

describe('a guest', () => {
  test('types only after the person has agreed, by a key or by a button', async () => {
    const { enter, press, decide, typed, typists, actions } = place()
    const [vera, stan] = [enter('vera'), enter('stan')]
    await vera.type('no')
    await vera.seat.ask()
    await vera.type('not yet')
    expect([vera.seat.mayType, typed, vera.told]).toEqual([false, [], []])
    expect(press('\x1dy')).toBeUndefined()
    await vera.type('ls')
    await stan.seat.ask()
    decide({ kind: 'allow', channel: 1, who: 2 })
    await stan.type('id')
    expect([vera.seat.hasConsent, stan.seat.hasConsent, typed]).toEqual([true, true, ['ls', 'id']])
    expect(typists).toEqual(['vera vera', 'stan stan'])
    expect(actions.filter((action) => action === 'session.consent.given')).toHaveLength(2)
    // And the person again.
    press('x')
    expect(typists.at(-1)).toBe('olga')
  })

  test('who did not ask is not allowed by a button', async () => {
    const { enter, decide, typed } = place()
    const vera = enter('vera')
    decide({ kind: 'allow', channel: 1, who: 1 })
    await vera.type('no')
    expect([vera.seat.mayType, typed]).toEqual([false, []])
  })

  test('is not allowed without an answer, and not heard for a minute after it', async () => {
    const { enter, people, state } = place()
    const vera = enter('vera')
    await vera.seat.ask()
    expect([people(), state.places]).toEqual([['typing', 'asking'], 1])
    await vi.advanceTimersByTimeAsync(60_000)
    expect([vera.seat.mayType, vera.told, state.places]).toEqual([false, ['olga did not answer.'], 0])
    await vera.seat.ask()
    expect(vera.told.at(-1)).toContain('wait a minute')
    await vi.advanceTimersByTimeAsync(60_000)
    await vera.seat.ask()
    expect(people()).toEqual(['typing', 'asking'])
  })

  test('is not let in by an answer that was meant for another', async () => {
    const { enter, press } = place()
    const [vera, stan] = [enter('vera'), enter('stan')]
    await vera.seat.ask()
    await stan.seat.ask()
    expect(press('\x1d')).toBeUndefined()
    vera.seat[Symbol.dispose]()
    press('y')
    expect([vera.seat.mayType, stan.seat.mayType]).toEqual([false, false])
    expect(press('\x1dy')).toBeUndefined()
    expect(stan.seat.mayType).toBe(true)
  })

  test('types no more after they left, went back to watching, or were sent back', async () => {
    const { vera, stan, typed, decide, state } = await three()
    vera.seat.watch()
    decide({ kind: 'dismiss', channel: 1, who: 2 })
    await vera.type('a')
    await stan.type('b')
    expect([typed, state.places]).toEqual([[], 0])
    const again = await three()
    again.vera.seat[Symbol.dispose]()
    await again.vera.type('c')
    expect([again.typed, again.state.places]).toEqual([[], 1])
  })

  test('is sent back to watching by Ctrl-] three times and y, with all others', async () => {
    const { vera, stan, press, people, typed } = await three()
    press('\x1d\x1d\x1d')
    expect(press('\x1dy')).toBeUndefined()
    expect(people()).toEqual(['typing', 'watching', 'watching', 'watching'])
    await vera.type('a')
    await stan.type('b')
    expect(typed).toEqual([])
  })

  test('does not type while the person is away, unless they need no consent', async () => {
    const { enter, terminal, typed, decide } = place()
    const [vera, root] = [enter('vera'), enter('root', { needsNoConsent: async () => true })]
    await vera.seat.ask()
    decide({ kind: 'allow', channel: 1, who: 1 })
    await root.seat.ask()
    expect([root.seat.mayType, root.seat.hasConsent]).toEqual([true, false])
    terminal.client = undefined
    await vera.type('no')
    await root.type('yes')
    expect([typed, vera.told.at(-1)]).toEqual([['yes'], 'olga is away; wait until they are back.'])
    const stan = enter('stan')
    await stan.seat.ask()
    expect([stan.seat.mayType, stan.told]).toEqual([
      false,
      ['Nobody is at the session now who could allow it.'],
    ])
  })

  test('types nothing while nothing is recorded', async () => {
    const { vera, terminal, typed } = await three()
    terminal.recorder.channel = undefined
    await vera.type('no')
    expect([typed, vera.told.at(-1)]).toEqual([[], 'The session is not recorded now.'])
  })

  test.each([
    ['does not admit them', async () => false],
    ['cannot be asked', async () => Promise.reject(new Error('away'))],
  ])('does not reach the person where the firewall %s', async (_, mayReach) => {
    const { enter, state, lines, people, typed } = place()
    state.mayReach = mayReach
    const [vera, root] = [enter('vera'), enter('root', { needsNoConsent: async () => true })]
    for (const { seat, type } of [vera, root]) {
      await seat.ask()
      await type('no')
    }
    expect([people(), lines, typed, state.places]).toEqual([['typing', 'watching', 'watching'], [], [], 0])
  })

  test('who may or may not need consent needs it', async () => {
    const { enter, people } = place()
    await enter('root', { needsNoConsent: async () => Promise.reject(new Error('away')) }).seat.ask()
    expect(people()).toEqual(['typing', 'asking'])
  })

  test('is nothing that the person could decide on before the firewall has answered', async () => {
    const { enter, state, people, lines, decide } = place()
    const firewall = Promise.withResolvers<boolean>()
    state.mayReach = async () => firewall.promise
    const [vera, stan] = [enter('vera'), enter('stan')]
    const asking = vera.seat.ask()
    decide({ kind: 'allow', channel: 1, who: 1 })
    // Somebody else goes meanwhile, so that the next question would be asked.
    stan.seat[Symbol.dispose]()
    expect([vera.seat.mayType, people(), lines]).toEqual([false, ['typing', 'watching'], []])
    vera.seat.watch()
    firewall.resolve(true)
    await asking
    expect([people(), lines]).toEqual([['typing', 'watching'], []])
  })

  test('who leaves, or withdraws, while the firewall answers takes no place and types nothing', async () => {
    for (const leave of ['watch', Symbol.dispose] as const) {
      const { enter, state, lines } = place()
      const firewall = Promise.withResolvers<boolean>()
      state.mayReach = async () => firewall.promise
      const { seat } = enter('root', { needsNoConsent: async () => true })
      const asking = seat.ask()
      seat[leave]()
      firewall.resolve(true)
      await asking
      expect([seat.mayType, state.places, lines]).toEqual([false, 0, []])
    }
  })

  test('asks once in all their windows, and only if they may ask at all', async () => {
    const { enter, people } = place()
    const [vera, other] = [enter('vera'), enter('vera')]
    const watcher = enter('stan', { mayNotAsk: 'You may only watch.', needsNoConsent: async () => true })
    const key = enter('key', {
      caller: { kind: 'api-key', name: 'ci', source: '192.0.2.1' } as never,
      needsNoConsent: async () => true,
    })
    for (const { seat } of [vera, other, watcher, key]) await seat.ask()
    expect(people()).toEqual(['typing', 'asking', 'watching', 'watching', 'watching'])
    expect([other.told, watcher.told, key.told]).toEqual([
      ['You ask here already.'],
      ['You may only watch.'],
      ['Only people may type in a session of others.'],
    ])
  })

  test('is one of few who type in a terminal, and in a namespace', async () => {
    const { enter, people, state } = place()
    for (let at = 0; at < 9; at += 1) await enter(`user ${at}`).seat.ask()
    expect(people().filter((one) => one === 'asking')).toHaveLength(8)
    expect(state.places).toBe(8)
    const full = place()
    full.state.free = 0
    await full.enter('vera').seat.ask()
    expect(full.people()).toEqual(['typing', 'watching'])
  })

  test('has no name that could draw on the screen of the person', () => {
    const { enter, lines } = place()
    enter('\u001b[2Jgast', { invitedBy: 'olga\u0007' })
    // eslint-disable-next-line no-control-regex
    expect(lines.join('')).not.toMatch(/\u001b|\u0007/)
  })
})

describe('the keyboard', () => {
  test('is that of the driver alone, until the person types', async () => {
    const { vera, stan, typed, press } = await three()
    vera.seat.take()
    await stan.type('no')
    await vera.type('a')
    expect(typed).toEqual(['a'])
    // A report of the terminal is not typed.
    press('\x1b[24;80R')
    await vera.type('b')
    press('x')
    await vera.type('no')
    expect(typed).toEqual(['a', 'b'])
  })

  test('is not for those who watch: they neither take, give nor share it', async () => {
    const { vera, stan, gast, typed } = await three()
    gast.seat.take()
    await vera.type('a')
    gast.seat.hand(2)
    await vera.type('b')
    vera.seat.take()
    gast.seat.share()
    await stan.type('no')
    vera.seat.hand(3)
    await vera.type('c')
    expect(typed).toEqual(['a', 'b', 'c'])
  })

  test('is everybody’s again when its driver has left', async () => {
    const { vera, stan, typed } = await three()
    vera.seat.take()
    vera.seat[Symbol.dispose]()
    await stan.type('a')
    expect(typed).toEqual(['a'])
  })
})

describe('the size', () => {
  test('is the smallest of those who type, none of whom makes the terminal useless', async () => {
    const { vera, stan, gast, fit } = await three()
    expect(fit()).toEqual(big)
    gast.seat.resize({ width: 30, height: 10 })
    expect(fit()).toEqual(big)
    vera.seat.resize({ width: 80, height: 50 })
    expect(fit()).toEqual({ width: 80, height: 40 })
    stan.seat.resize({ width: 1, height: 1 })
    expect(fit()).toEqual({ width: 20, height: 5 })
  })

  test('follows the driver when somebody who types says so', async () => {
    const { vera, stan, gast, fit } = await three()
    vera.seat.resize({ width: 120, height: 50 })
    stan.seat.resize({ width: 60, height: 20 })
    vera.seat.take()
    gast.seat.follow('driver')
    expect(fit()).toEqual({ width: 60, height: 20 })
    stan.seat.follow('driver')
    expect(fit()).toEqual({ width: 120, height: 50 })
  })
})

describe('lines about a guest who was invited', () => {
  const invited = { invitedBy: 'olga' }

  test.each([
    { isOver: false, lines: 2 },
    { isOver: true, lines: 1 },
  ])('one who goes when the terminal is over, $isOver, is told of in $lines lines', async (about) => {
    const { enter, terminal, lines } = place()
    const { seat } = enter('gast', invited)
    terminal.isOver = about.isOver
    seat[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines).toHaveLength(about.lines)
  })

  test('one who is back in a moment has not left', async () => {
    const { enter, lines } = place()
    enter('gast', invited).seat[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(2_000)
    const { seat } = enter('gast', invited)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines).toHaveLength(1)
    seat[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines.at(-1)).toContain('has left')
  })
})

test('of two terminals of a session the one is shared that a guest has chosen', () => {
  const terminals = [1, 2].map((channel) => ({
    ...place().terminal,
    recorder: { channel },
    sharing: undefined,
  }))
  const shared = sharedTerminals({
    person: 'olga',
    place: () => undefined,
    mayReach: async () => true,
    shared: () => undefined,
  })
  for (const terminal of terminals) shared.add(terminal as never)
  expect(shared.find(3)).toBeUndefined()
  expect(shared.find(2)).toBeDefined()
  expect(terminals.map(({ sharing }) => sharing !== undefined)).toEqual([false, true])
})
