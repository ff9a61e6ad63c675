// How quick and how small the HTTP interface is: Auth device, devices, lists up to a million, sign-in,
// memory, start. Everything is a ratio measured in turns in one run: calls against a bare Fastify route with
// the same point look-up (bare.ts), lists against the same list of the smallest fleet, sign-in against one
// bare Argon2id, memory and start against the bare program. Words choose a part of it, in any order:
//   npm run bench -- api 1k,100k lists     sizes (1k, 100k, 1M unless stated) and parts (start, login, auth, get, lists)
//   … folder=<path>                        keep the fleets there for the next run instead of making them anew
//   … profile=<path>                       write CPU profiles of the servers there
import { argon2, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import { hashPassword } from '../server/src/domain/people/credentials.ts'
import {
  authBody,
  digitsOf,
  goneTag,
  isGone,
  owner,
  plantBare,
  plantFleet,
  rareTag,
  siteTag,
  uidOf,
} from './fleet.ts'
import {
  atLeast,
  atMost,
  below,
  compare,
  inTurns,
  interleaved,
  line,
  measure,
  median,
  table,
  type Row,
} from './kit.ts'
import { openLoad, requestBytes, type Load } from './load.ts'
import { startBare, startHawser, type Program } from './programs.ts'

const sizes: Readonly<Record<string, number>> = {
  '1k': 1000,
  '10k': 10_000,
  '100k': 100_000,
  '1M': 1_000_000,
}
const parts = ['start', 'login', 'auth', 'get', 'lists'] as const
type Part = (typeof parts)[number]

const connections = 16
/** Warm devices that take turns, each with its own key, uid and token. */
const most_callers = 5000
const say = (line: string): void => void process.stderr.write(`${line}\n`)

interface Fleet {
  readonly name: string
  readonly count: number
  readonly folder: string
}

interface Harbour extends Fleet {
  readonly server: Program
  readonly load: Load
}

export default async function api(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const named = words.filter((word) => !word.includes('=')).flatMap((word) => word.split(','))
  const unknown = named.find((word) => !(word in sizes) && !(parts as readonly string[]).includes(word))
  if (unknown !== undefined)
    throw new Error(
      `api: "${unknown}" is neither a size (${Object.keys(sizes).join(', ')}) nor a part (${parts.join(', ')})`,
    )
  const wantedParts = parts.filter((part) => named.includes(part))
  const wants = (part: Part): boolean => wantedParts.length === 0 || wantedParts.includes(part)
  const wantedSizes = Object.keys(sizes).filter((size) => named.includes(size))
  const chosen = wantedSizes.length > 0 ? wantedSizes : ['1k', '100k', '1M']

  const kept = option('folder')
  await using cleanUp = new AsyncDisposableStack()
  const folder = kept ?? mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  mkdirSync(folder, { recursive: true })
  if (kept === undefined) process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  // A signal exits regularly: processes end, files are removed.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const profiles = option('profile')

  const rows: Row[] = []
  const fleets = await plantAll(folder, chosen)
  const smallest = fleets[0]!
  const largest = fleets.at(-1)!
  if (wants('start')) rows.push(...(await starts(folder, smallest, largest)))

  const harbours: Harbour[] = []
  for (const fleet of fleets) harbours.push(await open(fleet, profiles, cleanUp))
  if (wants('login')) rows.push(await logins(harbours[0]!))
  for (const harbour of new Set([harbours[0]!, harbours.at(-1)!])) {
    if (!wants('auth') && !wants('get')) break
    await using bare = await startBare(plantBare(harbour.folder), { profiles })
    if (wants('auth')) rows.push(...(await auths(harbour, bare)))
    if (wants('get')) rows.push(...(await gets(harbour, bare)))
  }
  if (wants('lists')) rows.push(...(await lists(harbours)))
  table(rows)
}

async function plantAll(folder: string, names: readonly string[]): Promise<Fleet[]> {
  const fleets: Fleet[] = []
  for (const name of names) {
    const fleet = { name, count: sizes[name]!, folder: path.join(folder, name) }
    const planted = await plantFleet(fleet.folder, fleet.count, (done) => {
      if (fleet.count > 20_000) say(`planting ${name}: ${Math.round((done / fleet.count) * 100)} %`)
    })
    if (planted) {
      const { seconds, rows_per_second, file_mb } = planted
      say(
        `planted ${name} in ${seconds.toFixed(1)} s: ${Math.round(rows_per_second)} rows/s, ${Math.round(file_mb)} MB`,
      )
    }
    fleets.push(fleet)
  }
  return fleets
}

/** A user has 50 sign-ins, and measuring them ends the former ones: each part makes its own. */
async function signIn(load: Load): Promise<string> {
  const { username, password } = owner
  const answer = await load.call(requestBytes('POST', '/api/login', { body: { username, password } }))
  return (JSON.parse(answer.body) as { token: string }).token
}

async function open(
  fleet: Fleet,
  profiles: string | undefined,
  cleanUp: AsyncDisposableStack,
): Promise<Harbour> {
  const server = cleanUp.use(await startHawser(fleet.folder, { profiles }))
  say(
    `serving ${fleet.name}: healthy after ${Math.round(server.healthy_ms)} ms, ${Math.round(server.resident_mb())} MB`,
  )
  const load = cleanUp.use(await openLoad(server.port, connections))
  return { ...fleet, server, load }
}

/**
 * Start-up and memory: a first start (nothing there, nothing compiled), a usual one, and the bare program.
 */
async function starts(folder: string, smallest: Fleet, largest: Fleet): Promise<Row[]> {
  say('starting and stopping')
  const idle_ms = 1000
  const warmCache = path.join(folder, 'compile-cache')
  const bareFile = plantBare(smallest.folder)
  const memory = { usual: [] as number[], bare: [] as number[] }
  const cpu = { usual: [] as number[], bare: [] as number[] }

  async function first(): Promise<number> {
    const fresh = mkdtempSync(path.join(folder, 'first-'))
    try {
      await using program = await startHawser(path.join(fresh, 'data'), {
        env: { NODE_COMPILE_CACHE: path.join(fresh, 'cache') },
      })
      return program.healthy_ms
    } finally {
      rmSync(fresh, { recursive: true, force: true })
    }
  }
  async function usual(fleet: Fleet): Promise<number> {
    await using program = await startHawser(fleet.folder, { env: { NODE_COMPILE_CACHE: warmCache } })
    if (fleet === smallest) cpu.usual.push(program.cpu_s() * 1000)
    using load = await openLoad(program.port, 1)
    const token = await signIn(load)
    for (let i = 0; i < 10; i++) {
      await load.call(requestBytes('GET', `/api/devices/${uidOf(i)}`, { token }))
      await load.call(requestBytes('GET', '/api/devices', { token }))
      await load.call(requestBytes('POST', '/api/devices/auth', { body: authBody(i) }))
    }
    await wait(idle_ms)
    if (fleet === smallest) memory.usual.push(program.resident_mb())
    return program.healthy_ms
  }
  async function bare(): Promise<number> {
    await using program = await startBare(bareFile, { env: { NODE_COMPILE_CACHE: warmCache } })
    cpu.bare.push(program.cpu_s() * 1000)
    using load = await openLoad(program.port, 1)
    for (let i = 0; i < 10; i++) await load.call(requestBytes('GET', `/devices/${uidOf(i)}`))
    await wait(idle_ms)
    memory.bare.push(program.resident_mb())
    return program.healthy_ms
  }

  // Warms up, to fill the compile cache.
  await usual(smallest)
  await bare()
  for (const figures of [memory.usual, memory.bare, cpu.usual, cpu.bare]) figures.length = 0
  const sides: Record<string, () => Promise<number>> = { first, usual: () => usual(smallest), bare }
  if (largest !== smallest) sides.large = () => usual(largest)
  const figures = await inTurns(sides, 7)
  const started = (name: string, what: string): Row[] => {
    const ours = figures[name]
    if (!ours) return []
    return [line(`start, ${what}`, 'ms', compare(ours, figures.bare ?? []), below(1500, median(ours), 'ms'))]
  }
  const used = compare(memory.usual, memory.bare)
  return [
    ...started('first', 'first: empty folder, nothing compiled'),
    ...started('usual', `usual: ${smallest.name} devices`),
    ...started('large', `usual: ${largest.name} devices`),
    line('start, usual: processor', 'ms', compare(cpu.usual, cpu.bare)),
    line('memory, idle after a few requests', 'MB', used, below(120, used.a, 'MB')),
  ]
}

/** One sign-in after the other, against Argon2id with the parameters of a stored password. */
async function logins({ load }: Harbour): Promise<Row> {
  say('signing in')
  const [, memory, passes, parallelism] = /m=(\d+),t=(\d+),p=(\d+)/
    .exec(await hashPassword(owner.password))!
    .map(Number)
  const derive = promisify(argon2)
  const cost = { memory: memory!, passes: passes!, parallelism: parallelism!, tagLength: 32 }
  const { username, password } = owner
  const request = requestBytes('POST', '/api/login', { body: { username, password } })
  const seconds = 0.5
  const signIns = async () => (await measure(() => load.call(request), { seconds })).perSecond
  const hashes = async () =>
    (
      await measure(() => derive('argon2id', { message: password, nonce: randomBytes(16), ...cost }), {
        seconds,
      })
    ).perSecond
  return line('login, one after the other', '/s', await interleaved(signIns, hashes, 15))
}

/** Calls per second of both, and the processor time of one call, which is steadier on a busy machine. */
async function calls(
  what: string,
  harbour: Harbour,
  bare: Program,
  ours: Buffer[],
  theirs: Buffer[],
  aim?: number,
): Promise<Row[]> {
  using bareLoad = await openLoad(bare.port, connections)
  const cpu = { ours: [] as number[], bare: [] as number[] }
  const side = (load: Load, program: Program, requests: Buffer[], times: number[]) => {
    let next = 0
    return async (seconds = 0.5) => {
      const before = program.cpu_s()
      const measured = await measure(() => load.call(requests[next++ % requests.length]!), {
        seconds,
        concurrency: connections,
      })
      times.push(((program.cpu_s() - before) / measured.calls) * 1e6)
      return measured.perSecond
    }
  }
  const us = side(harbour.load, harbour.server, ours, cpu.ours)
  const them = side(bareLoad, bare, theirs, cpu.bare)
  // Every device once, so that all are warm; then both programs for a while, so that their code is compiled.
  for (const request of ours) await harbour.load.call(request)
  await us(2)
  await them(2)
  cpu.ours.length = cpu.bare.length = 0
  const compared = await interleaved(us, them, 21)
  const name = `${what}, ${harbour.name} devices`
  return [
    line(name, '/s', compared, aim === undefined ? undefined : atLeast(aim, compared.ratio)),
    line(`${name}: processor`, 'µs', compare(cpu.ours, cpu.bare)),
  ]
}

const callersOf = ({ count }: Harbour): number[] => {
  // A stride that shares no divisor with the fleet, its tags or its names covers all of them.
  return Array.from({ length: Math.min(count, most_callers) }, (_, k) => (k * 7919) % count).filter(
    (i) => !isGone(i),
  )
}

function auths(harbour: Harbour, bare: Program): Promise<Row[]> {
  say(`auth device, ${harbour.name}`)
  const devices = callersOf(harbour).map((i) => ({ uid: uidOf(i), body: authBody(i) }))
  const ours = devices.map(({ body }) => requestBytes('POST', '/api/devices/auth', { body }))
  const theirs = devices.map(({ uid, body }) => requestBytes('POST', `/devices/${uid}/auth`, { body }))
  return calls('auth device', harbour, bare, ours, theirs, 0.6)
}

async function gets(harbour: Harbour, bare: Program): Promise<Row[]> {
  say(`get device, ${harbour.name}`)
  const uids = callersOf(harbour).map(uidOf)
  const token = await signIn(harbour.load)
  const ours = uids.map((uid) => requestBytes('GET', `/api/devices/${uid}`, { token }))
  const theirs = uids.map((uid) => requestBytes('GET', `/devices/${uid}`))
  return calls('get device', harbour, bare, ours, theirs)
}

interface ListKind {
  readonly what: string
  readonly query: Readonly<Record<string, string>>
  readonly empty?: boolean
}

const property = (name: string, operator: 'eq' | 'contains', value: string): string =>
  encodeFilter([{ type: 'property', params: { name, operator, value } } satisfies FilterElement])

const accepted = { status: 'accepted', per_page: '10' }
const listKinds: readonly ListKind[] = [
  { what: 'page 1', query: accepted },
  { what: 'page 1000', query: { ...accepted, page: '1000' } },
  { what: 'page 1, sorted by name', query: { ...accepted, sort_by: 'name', order_by: 'asc' } },
  { what: 'page 1, any status', query: { per_page: '10' } },
  { what: 'page 1000, any status', query: { per_page: '10', page: '1000' } },
  { what: 'tags eq, a fiftieth', query: { ...accepted, filter: property('tags', 'eq', siteTag(7)) } },
  { what: 'tags eq, a fiftieth, long gone', query: { ...accepted, filter: property('tags', 'eq', goneTag) } },
  { what: 'tags eq, twenty devices', query: { ...accepted, filter: property('tags', 'eq', rareTag) } },
  { what: 'tags contains, a fifth', query: { ...accepted, filter: property('tags', 'contains', 'site-1') } },
  {
    what: 'tags contains, twenty devices',
    query: { ...accepted, filter: property('tags', 'contains', rareTag.slice(0, -1)) },
  },
  { what: 'name contains, a fifth', query: { ...accepted, filter: property('name', 'contains', 'winc') } },
  {
    what: 'name contains, one device',
    query: { ...accepted, filter: property('name', 'contains', digitsOf(7)) },
  },
  {
    what: 'name contains, none',
    query: { ...accepted, filter: property('name', 'contains', 'trawler') },
    empty: true,
  },
]

/** The time of one page, in each fleet in turns; the reference is the smallest fleet with the page. */
async function lists(harbours: readonly Harbour[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const { what, query, empty = false } of listKinds) {
    say(`list ${what}`)
    const deepest = Number(query.page ?? 1) * Number(query.per_page ?? 10)
    // With room to spare, as only a part of the devices has the status.
    const able = harbours.filter(({ count }) => count >= 2 * deepest)
    const sides: Record<string, () => Promise<number>> = {}
    for (const { name, load } of able) {
      const token = await signIn(load)
      const request = requestBytes('GET', `/api/devices?${new URLSearchParams(query).toString()}`, { token })
      const found = JSON.parse((await load.call(request)).body) as unknown[]
      if ((found.length === 0) !== empty)
        throw new Error(`the list "${what}" of ${name} has ${found.length} devices`)
      sides[name] = async () => (await measure(() => load.call(request), { seconds: 0.1 })).p50
      await sides[name]()
    }
    const figures = await inTurns(sides, 25)
    const [reference, ...larger] = able
    for (const { name } of larger) {
      const compared = compare(figures[name]!, figures[reference!.name]!)
      rows.push(
        line(`list ${what}: ${name} against ${reference!.name}`, 'ms', compared, atMost(1.5, compared.ratio)),
      )
    }
  }
  if (rows.length === 0) say('lists: one size alone has nothing to be compared with')
  return rows
}
