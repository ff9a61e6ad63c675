// Presence while writes fail: whatever is refused, or takes effect though its answer is lost, five turns
// after the database is back every node says that a device is online exactly if it has a tunnel, and the
// counts agree. Several nodes share a real PostgreSQL, one has a SQLite file. Histories are drawn at random,
// and a failing one is shrunk. The test makes the turns, which come once a second.
import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { databases, device, namespace, openFresh, unique } from '../../../../tests/storage/databases.ts'
import type { Storage } from '../../../../tests/storage/databases.ts'
import { times } from '../../../../tests/harness/tier.ts'
import { localBus } from '../../bus/local.ts'
import type { Stores } from '../../storage/stores.ts'
import { presence as startPresence, type Presence } from './presence.ts'

vi.setConfig({ testTimeout: 240_000 })

/** `deaf`: a write takes effect, and its answer is lost. */
const moods = ['there', 'away', 'deaf'] as const
type Mood = (typeof moods)[number]

/** `at` and `node` pick one of what is there: the remainder counts. */
type Command =
  | { do: 'open' | 'call'; at: number; node: number }
  | { do: 'close' | 'ping'; at: number }
  | { do: 'database'; node: number; mood: Mood }
  | { do: 'writeOff'; node: number }
  | { do: 'forward'; s: number }
  | { do: 'turn' }

const at = fc.nat(1)
const node = fc.nat(2)
const just = <const T extends string>(what: T) => fc.constant(what)
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: just('open'), at, node }) },
  { weight: 4, arbitrary: fc.record({ do: just('close'), at }) },
  { weight: 4, arbitrary: fc.record({ do: just('database'), node, mood: fc.constantFrom(...moods) }) },
  { weight: 4, arbitrary: fc.record({ do: just('turn') }) },
  { weight: 2, arbitrary: fc.record({ do: just('call'), at, node }) },
  { weight: 1, arbitrary: fc.record({ do: just('ping'), at }) },
  { weight: 1, arbitrary: fc.record({ do: just('writeOff'), node }) },
  { weight: 1, arbitrary: fc.record({ do: just('forward'), s: fc.constantFrom(1, 60, 95, 130) }) },
)

/** The stores as one node has them: what it writes of presence can fail. */
function moody(stores: Stores) {
  const state = { mood: 'there' as Mood, running: 0 }
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    state.running += 1
    try {
      if (state.mood === 'away') throw new Error('The database is away.')
      const { mood } = state
      const done = await work()
      if (mood === 'deaf') throw new Error('The answer is lost.')
      return done
    } finally {
      state.running -= 1
    }
  }
  const { write, markOffline } = stores.presence
  const presence: Stores['presence'] = {
    ...stores.presence,
    write: (...given) => guard(() => write(...given)),
    markOffline: (...given) => guard(() => markOffline(...given)),
  }
  return { state, stores: { ...stores, presence } }
}

interface House extends AsyncDisposable {
  run(command: Command): Promise<void>
  /** Everything that nodes say, and what is true. */
  said(): Promise<{ says: boolean[][]; counted: number; true: boolean[] }>
  /** The database is back, and so are agents whose new tunnel was refused. */
  recover(): Promise<void>
  turn(): Promise<void>
  /** A number for a new tunnel, whose answer is lost. */
  numberInVain(at: number): Promise<void>
}

interface Room {
  readonly id: string
  readonly presence: Presence
  readonly database: ReturnType<typeof moody>
}

async function house({ stores }: Storage, nodes: readonly string[]): Promise<House> {
  const clustered = nodes.length > 1
  const { here } = await namespace({ stores })
  const uids = [unique('device'), unique('device')]
  for (const uid of uids)
    await here.devices.insert(device({ uid, status: 'accepted', online: 0, last_seen: '2026-01-01' }))
  let ms = Date.parse('2026-05-01T12:00:00Z')
  const clock = { now: () => (ms += 1) }
  const bus = localBus()
  const rooms: Room[] = nodes.map((id) => {
    const database = moody(stores)
    const onError = (): void => undefined
    return {
      id,
      database,
      presence: startPresence({ stores: database.stores, clock, bus, node: id, onError }),
    }
  })
  const roomOf = (number: number): Room => rooms[number % rooms.length]!
  /** The tunnels that there are, by device, and where agents try to open one. */
  const tunnels = new Map<string, { room: Room; number: number }>()
  const trying = new Map<string, Room>()

  async function idle(): Promise<void> {
    do await nextTurnOfTheLoop()
    while (rooms.some(({ database }) => database.state.running > 0))
  }

  async function turn(): Promise<void> {
    vi.advanceTimersByTime(1000)
    await idle()
  }

  async function open(uid: string, room: Room): Promise<void> {
    trying.set(uid, room)
    // Where no number can be had, the agent is sent away and comes back.
    if (clustered && room.database.state.mood !== 'there') return
    const number = clustered ? (await here.devices.claimTunnel(uid))! : 0
    trying.delete(uid)
    const before = tunnels.get(uid)
    tunnels.set(uid, { room, number })
    if (before && before.room !== room) before.room.presence.forget(uid)
    room.presence.up(uid, number)
  }

  return {
    async run(wanted) {
      const uid = 'at' in wanted ? uids[wanted.at]! : ''
      const tunnel = tunnels.get(uid)
      if (wanted.do === 'open') await open(uid, roomOf(wanted.node))
      if (wanted.do === 'call' && tunnel) roomOf(wanted.node).presence.seen(uid)
      if (wanted.do === 'ping') tunnel?.room.presence.up(uid, tunnel.number)
      if (wanted.do === 'close') trying.delete(uid)
      if (wanted.do === 'close' && tunnel) {
        tunnels.delete(uid)
        void tunnel.room.presence.down(uid, tunnel.number)
      }
      if (wanted.do === 'database') roomOf(wanted.node).database.state.mood = wanted.mood
      if (wanted.do === 'writeOff' && clustered) {
        const room = roomOf(wanted.node)
        await stores.nodes.cleanUp(room.id)
        await room.presence.revive()
      }
      if (wanted.do === 'forward') ms += wanted.s * 1000
      if (wanted.do === 'turn') await turn()
    },
    numberInVain: async (wanted) => void (await here.devices.claimTunnel(uids[wanted]!)),
    turn,
    async recover() {
      for (const { database } of rooms) database.state.mood = 'there'
      for (const [uid, room] of trying) await open(uid, room)
    },
    async said() {
      const rows = await Promise.all(uids.map(async (uid) => (await here.devices.find(uid))!))
      return {
        says: rooms.map(({ presence }) => rows.map((row) => presence.of(row).online)),
        counted: (await here.devices.tallies()).get('online.accepted') ?? 0,
        true: uids.map((uid) => tunnels.has(uid)),
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { presence } of rooms) await presence[Symbol.asyncDispose]()
    },
  }
}

// Nothing else has intervals here: the connections to the database use timeouts.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

describe.each(databases)('presence on $name', (database) => {
  let storage: Storage
  beforeAll(async () => void (storage = await openFresh(database)))
  afterAll(() => storage[Symbol.asyncDispose]())
  const nodes = database.name === 'SQLite' ? [''] : ['a', 'b', 'c']

  test('the node of a device says that it is gone, though a newer tunnel was numbered that never came', async () => {
    await using all = await house(storage, nodes)
    await all.run({ do: 'open', at: 0, node: 0 })
    await all.turn()
    expect(await all.said()).toMatchObject({ true: [true, false], counted: 1 })
    await all.numberInVain(0)
    await all.run({ do: 'close', at: 0 })
    await all.turn()
    expect(await all.said()).toMatchObject({ says: nodes.map(() => [false, false]), counted: 0 })
  })

  test('a call before a device left one node is out of date at another, also where an older departure waits', async () => {
    await using all = await house(storage, nodes)
    const history: readonly Command[] = [
      { do: 'open', at: 0, node: 0 },
      { do: 'database', node: 0, mood: 'away' },
      { do: 'close', at: 0 },
      { do: 'open', at: 0, node: 1 },
      { do: 'call', at: 0, node: 0 },
      { do: 'close', at: 0 },
    ]
    for (const one of history) await all.run(one)
    await all.recover()
    for (let turn = 0; turn < 5; turn += 1) await all.turn()
    expect(await all.said()).toMatchObject({ says: nodes.map(() => [false, false]), counted: 0 })
  })

  test('is true soon after the database is back, whichever writes failed', async () => {
    const history = fc.array(command, { minLength: 3, maxLength: 25, size: 'max' })
    await fc.assert(
      fc.asyncProperty(history, async (commands) => {
        await using all = await house(storage, nodes)
        for (const one of commands) await all.run(one)
        await all.recover()
        for (let turn = 0; turn < 5; turn += 1) await all.turn()
        const said = await all.said()
        expect(said.says).toEqual(nodes.map(() => said.true))
        expect(said.counted).toBe(said.true.filter(Boolean).length)
      }),
      { numRuns: times(80, 1500) },
    )
  })
})
