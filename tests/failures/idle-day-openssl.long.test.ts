// A day of idle devices in a time of its own: the real server with TLS, real agents, and a link in front of
// each that drops idle connections, goes away, cuts and stalls. Counted are bytes, reconnects and the minutes
// in which the server was wrong about a device. Timers and clocks are moved; sockets, TLS and the database
// are real. The daily tests live for three hours only.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import type { Client } from '@hawser/contract/client'
import { runAgent } from '../../agent/src/agent.ts'
import { readConfig } from '../../agent/src/config.ts'
import { idleMemory } from '../../agent/src/idle-memory.ts'
import { trustAuthorities } from '../../agent/src/trust.ts'
import { folder } from '../../ssh/test/programs.ts'
import { makeAuthority } from '../harness/authority.ts'
import { startLink, type Link, type LinkShape } from '../harness/link.ts'
import { startService, type Service } from '../harness/service.ts'
import { times } from '../harness/tier.ts'
import { buildWorld } from '../harness/world.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 })

const [minute_s, hour_s, day_s] = [60, 3_600, 86_400]
const lived_s = times(3, 24) * hour_s
/** One device leaves without a word after so long, and comes back. */
const [leaves_s, returns_s] = [lived_s / 3, lived_s / 2]
/** Sets everything that was counted in proportion to a day. */
const perDay = (count: number): number => Math.round((count * day_s) / lived_s)

interface Place {
  readonly link: Link
  /** Whether the network is there. */
  isThere: boolean
  /** The tunnel is up, as far as the agent knows. */
  isUp: boolean
  reconnects: number
  /**
   * Minutes in which the server took the device for online although nothing passed, and the other way round.
   */
  wronglyOnline: number
  wronglyOffline: number
  readonly uid: () => string
  readonly stop: () => Promise<void>
}

const where = folder()
const realTimeout = setTimeout
const sleep = (ms: number): Promise<void> => new Promise((resolve) => void realTimeout(resolve, ms))
let service: Service
let owner: Client
/** Moves the time along with the real one, for what waits on timers while a test begins or ends. */
const mover = { isOn: true, isOver: false }

beforeAll(async () => {
  const authority = await makeAuthority(where)
  const { chain, key } = await authority.issue('server', 'IP:127.0.0.1')
  await trustAuthorities(authority.file)
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  })
  void (async () => {
    for (; !mover.isOver; await sleep(5)) if (mover.isOn) vi.advanceTimersByTime(5)
  })()
  service = await startService({
    env: { HAWSER_URL: '', HAWSER_TLS_CERT: chain, HAWSER_TLS_KEY: key, HAWSER_PLAIN_HTTP: 'serve' },
  })
  const world = await buildWorld(service)
  owner = service.api({ token: await world.token('owner') })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  mover.isOver = true
  vi.useRealTimers()
  where[Symbol.dispose]()
})

async function startPlace(name: string, shape: Partial<LinkShape>): Promise<Place> {
  const link = await startLink({ port: service.tlsPort ?? 0 }, shape)
  const config = readConfig(
    {
      HAWSER_SERVER_ADDRESS: `https://127.0.0.1:${link.port}`,
      HAWSER_TENANT_ID: sample.tenant,
      HAWSER_PRIVATE_KEY: where.file(`${name}.device`),
      HAWSER_PREFERRED_HOSTNAME: name,
      HAWSER_PREFERRED_IDENTITY: name,
    },
    true,
  )
  const stopping = new AbortController()
  let uid = ''
  const up = Promise.withResolvers<void>()
  const log = (event: Record<string, unknown>): void => {
    if (event['event'] === 'tunnel.up') {
      uid = String(event['uid'])
      place.isUp = true
      place.reconnects++
      up.resolve()
    }
    if (event['event'] === 'tunnel.lost') place.isUp = false
  }
  const ended = runAgent(config, log, stopping.signal, idleMemory({ collect() {}, drop() {} }), {
    facts: () => ({
      id: 'debian',
      pretty_name: 'Debian',
      version: 'hawser-1',
      arch: 'amd64',
      platform: 'native',
    }),
    serve: () => Promise.resolve(),
  })
  const place: Place = {
    link,
    isThere: true,
    isUp: false,
    reconnects: -1,
    wronglyOnline: 0,
    wronglyOffline: 0,
    uid: () => uid,
    async stop() {
      stopping.abort()
      await ended
      await link[Symbol.asyncDispose]()
    },
  }
  await up.promise
  await owner.devices.accept({ params: { uid } })
  return place
}

/** Every byte that is on its way has arrived. */
async function settle(places: readonly Place[]): Promise<void> {
  const passed = (): number => places.reduce((sum, { link }) => sum + link.up.payload + link.down.payload, 0)
  for (let before = -1; before !== passed();) {
    before = passed()
    for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
    // A handshake uses threads, and is over after some real milliseconds.
    if (places.some(({ isUp, isThere }) => isThere && !isUp)) await sleep(4)
  }
}

/** Lives for so long. `act` is called every second. */
async function live(places: readonly Place[], seconds: number, act: (second: number) => void): Promise<void> {
  mover.isOn = false
  for (let second = 0; second < seconds; second++) {
    act(second)
    await vi.advanceTimersByTimeAsync(1_000)
    await settle(places)
    if (second % minute_s === 0) await judge(places)
  }
  mover.isOn = true
}

async function judge(places: readonly Place[]): Promise<void> {
  const { body } = await owner.devices.list({ query: { per_page: 100 } })
  for (const place of places) {
    const online = body.find(({ uid }) => uid === place.uid())?.online ?? false
    const isReachable = place.link.passing > 0
    if (online && !isReachable) place.wronglyOnline++
    if (!online && isReachable && place.isUp) place.wronglyOffline++
  }
}

const wire_kb = ({ link }: Place): number => Math.round((link.up.wire + link.down.wire) / 1000)
const intervalOf = async (place: Place): Promise<number | undefined> =>
  (await owner.devices.get({ params: { uid: place.uid() } })).body.ping_interval

/** The same numbers in every run. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

test('a day of four idle devices: few bytes, few reconnects, and the server knows who is there', async () => {
  const places = {
    steady: await startPlace('steady', {}),
    nat: await startPlace('nat', { forgets_ms: 60_000 }),
    mobile: await startPlace('mobile', { forgets_ms: 300_000 }),
    leaving: await startPlace('leaving', {}),
  }
  const all = Object.values(places)
  const before = Object.fromEntries(Object.entries(places).map(([name, place]) => [name, wire_kb(place)]))
  const chance = random(7)
  let goneShown_s: number | undefined
  let back_at = Infinity
  await live(all, lived_s, (second) => {
    // The mobile device: sixty times a day something happens to its network.
    const { mobile, leaving } = places
    if (second >= back_at) {
      back_at = Infinity
      mobile.isThere = true
      mobile.link.resume()
    } else if (mobile.isThere && chance() < 60 / day_s) {
      const kind = chance()
      if (kind < 0.2) mobile.link.cut()
      else {
        mobile.isThere = false
        if (kind < 0.7) mobile.link.stall()
        else mobile.link.silence()
        back_at = second + 3 + chance() ** 3 * 300
      }
    }
    if (second === leaves_s) {
      leaving.isThere = false
      leaving.link.silence()
    }
    if (second === returns_s) {
      leaving.isThere = true
      leaving.link.resume()
    }
    if (second > leaves_s && goneShown_s === undefined && !service.reach.tunnels.find(leaving.uid()))
      goneShown_s = second - leaves_s
  })
  const { steady, nat, mobile, leaving } = places
  const table: Record<string, Record<string, number>> = {}
  for (const [name, place] of Object.entries(places))
    table[name] = {
      'KB a day': perDay(wire_kb(place) - (before[name] ?? 0)),
      'reconnects a day': perDay(place.reconnects),
      'minutes a day wrongly online': perDay(place.wronglyOnline),
      'wrongly offline': perDay(place.wronglyOffline),
      'ping interval in s': (await intervalOf(place)) ?? 0,
    }
  console.table(table)

  expect(table['steady']?.['KB a day']).toBeLessThan(300)
  expect(steady).toMatchObject({ reconnects: 0, wronglyOnline: 0, wronglyOffline: 0 })
  expect(await intervalOf(steady)).toBe(600)

  expect(table['nat']?.['KB a day']).toBeLessThan(1_000)
  expect(nat.reconnects).toBeLessThan(20)
  expect(nat.wronglyOnline).toBeLessThan(20)

  // Sixty losses of its network, most of which cost it a connection.
  expect(mobile.reconnects).toBeLessThan(80)
  expect(perDay(mobile.wronglyOnline)).toBeLessThan(240)

  // Two of its longest intervals.
  expect(goneShown_s).toBeLessThan(2 * 600)
  expect(leaving.wronglyOnline).toBeLessThanOrEqual(20)
  expect(leaving.isUp).toBe(true)
  for (const place of all) expect(place.wronglyOffline).toBeLessThanOrEqual(2)
  // Every connection was a tunnel, but for the call that enrolled the device.
  for (const place of [steady, nat]) expect(place.link.opened).toBe(2 + place.reconnects)
  await Promise.all(all.map((place) => place.stop()))
})
