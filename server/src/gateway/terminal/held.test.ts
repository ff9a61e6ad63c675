// Who may reattach to which session, for how long sessions are held, and that nobody takes the terminal of another
// person. The bounds for people, namespaces and nodes are in tests/attacks/held-sessions.test.ts.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { anybody, continuableTerminal, heldSessions, type HoldableSession } from './held.ts'
import type { Terminal } from './terminal.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const claim = { tenant_id: 'harbour', device_uid: 'crane', username: 'root', identity: 'user olga' }

function session(uid: string, change: Partial<HoldableSession> = {}) {
  const state = {
    isHoldable: true,
    heldUntil: 1 as number | undefined,
    client: undefined as object | undefined,
  }
  const ended: string[] = []
  const one: HoldableSession = {
    ...claim,
    uid,
    started_at: 0,
    hold_s: 60,
    terminal: () => state as unknown as Terminal,
    join: () => Promise.resolve(),
    mayContinue: () => Promise.resolve(true),
    leave: () => false,
    handOver: () => undefined,
    end: (sentence) => void ended.push(sentence),
    ...change,
  }
  return { one, state, ended }
}
/** These sessions are open here. */
function place(...some: { readonly one: HoldableSession }[]) {
  const held = heldSessions(Date)
  return { held, added: some.map(({ one }) => held.add(one)) }
}
const uids = (some: readonly HoldableSession[]): string[] => some.map(({ uid }) => uid)

describe('who may reattach', () => {
  test('is the same person, on the same account of the same device', () => {
    const { held } = place(session('one'))
    expect(uids(held.of(claim))).toEqual(['one'])
    for (const change of [
      { identity: 'user vera' },
      { username: 'www' },
      { device_uid: 'winch' },
      { tenant_id: 'shipyard' },
    ])
      expect(held.of({ ...claim, ...change })).toEqual([])
  })

  test('finds held sessions first, then the newest, and none that cannot be held', () => {
    const [old, recent, held, without] = ['old', 'recent', 'held', 'without'].map((uid, started_at) =>
      session(uid, { started_at: uid === 'held' ? -1 : started_at }),
    )
    for (const { state } of [old!, recent!]) state.heldUntil = undefined
    without!.state.isHoldable = false
    expect(uids(place(old!, recent!, held!, without!).held.of(claim))).toEqual(['held', 'recent', 'old'])
  })

  test('is asked for their rights each time; without an answer nobody reattaches', async () => {
    const rights: Record<string, () => Promise<boolean>> = {
      yes: async () => true,
      no: async () => false,
      away: async () => Promise.reject(new Error('The database is away.')),
    }
    const { held } = place(
      ...Object.entries(rights).map(([uid, mayContinue]) => session(uid, { mayContinue })),
    )
    expect(uids(await held.continuable(claim))).toEqual(['yes'])
  })

  test('may take a terminal from their own client, but not from one of many who know the same password', async () => {
    const known = session('known')
    const shared = session('shared', { identity: anybody })
    for (const { one, state } of [known, shared]) {
      state.client = {}
      state.heldUntil = undefined
      expect((await continuableTerminal(one)) !== undefined).toBe(one.identity !== anybody)
      state.client = undefined
      expect(await continuableTerminal(one)).toBe(one.terminal())
    }
  })

  test('does not get a terminal that ended while their rights were read', async () => {
    const { one, state } = session('one', {
      async mayContinue() {
        state.isHoldable = false
        return true
      },
    })
    expect(await continuableTerminal(one)).toBeUndefined()
  })
})

describe('a held session', () => {
  test('ends when its time is over, and not before', () => {
    const some = session('one')
    const { held } = place(some)
    expect(held.hold(some.one)).toBe(Date.now() + 60_000)
    vi.advanceTimersByTime(59_999)
    expect([some.ended, held.count]).toEqual([[], 1])
    vi.advanceTimersByTime(1)
    expect(some.ended).toEqual(['The session expired before anyone reconnected.'])
  })

  test('does not end after its person is back, or after it is over', () => {
    const [back, over] = [session('back'), session('over')]
    const { held, added } = place(back, over)
    for (const { one } of [back, over]) held.hold(one)
    held.resume(back.one)
    added[1]![Symbol.dispose]()
    expect([held.count, held.find('over')]).toEqual([0, undefined])
    vi.advanceTimersByTime(120_000)
    expect([back.ended, over.ended]).toEqual([[], []])
  })

  test('has its whole time again when its person was back', () => {
    const { one, ended } = session('one')
    const { held } = place({ one })
    held.hold(one)
    vi.advanceTimersByTime(50_000)
    held.resume(one)
    held.hold(one)
    vi.advanceTimersByTime(59_999)
    expect(ended).toEqual([])
    vi.advanceTimersByTime(1)
    expect(ended).toHaveLength(1)
  })

  test('is none with a time of 0', () => {
    const { one } = session('one', { hold_s: 0 })
    const { held } = place({ one })
    expect([held.hold(one), held.count]).toEqual([undefined, 0])
  })
})
