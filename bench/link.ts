// How good reaching a device is over a bad link: round trips and seconds of logins, small files and large
// ones, against an sshd that is reached directly over a link of the same kind, and against our agent with the
// old ways (no features, no compression). The link (tests/harness/link.ts) lies between the device and the
// server, which the agent reaches with TLS; for sshd it lies between the client and the device. Round trips
// are the time that a link adds, divided by the time of a round trip. "Cold" is the first login after the
// agent has started, "warm" one a moment later. Words choose a part of it:
//   npm run bench -- link login sftp scp idle          parts, all unless stated
//   … rtt=0,50,200,500 rounds=3 size=10 mbit=2         milliseconds, turns, MB of a large file, Mbit/s for it
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { folder, type Folder } from '../ssh/test/programs.ts'
import { makeAuthority } from '../tests/harness/authority.ts'
import { startLink, type Link, type LinkShape } from '../tests/harness/link.ts'
import { buildWorld, type Agent, type World } from './access-world.ts'
import { below, compare, inTurns, line, median, table, type Aim, type Row } from './kit.ts'
import { clientArgs, plainLogin, type Destination } from './openssh.ts'
import { freePort } from './programs.ts'

const parts = ['login', 'sftp', 'scp', 'idle'] as const
type Part = (typeof parts)[number]
const proofs = ['key', 'password'] as const
type Proof = (typeof proofs)[number]
const password = 'rope-and-anchor'
/** The round trip of the link for a large file. */
const scpRoundTrip_ms = 100
const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** A way to a device. */
interface Side extends AsyncDisposable {
  readonly link: Link
  readonly to: Destination
  /** Makes the device one that nobody has used. */
  cool(): Promise<void>
  warm(): Promise<void>
}
const names = ['ours', 'old', 'sshd'] as const
type Name = (typeof names)[number]
type Shape = Pick<LinkShape, 'delay_ms'> & Partial<LinkShape>
type Sides = Readonly<Record<Name, Side>>

interface Setting {
  readonly folder: string
  readonly world: World
  /** Where agents reach the server with TLS. */
  readonly tlsPort: number
  /** Make an agent trust the server's certificate. */
  readonly trust: Readonly<Record<string, string>>
  /** The program that answers the client's question for the password. */
  readonly askPassword: string
}

export default async function link(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number =>
    Math.max(0.1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`link: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: Part): boolean => named.length === 0 || named.includes(part)
  const roundTrips = (option('rtt') ?? '0,50,200,500').split(',').map(Number)
  if (roundTrips.some((one) => !(one >= 0))) throw new Error('link: rtt takes milliseconds, as in rtt=0,500')
  const rounds = Math.ceil(number('rounds', 3))

  const where = folder()
  process.once('exit', () => where[Symbol.dispose]())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  if (wants('login') || wants('sftp') || wants('scp')) {
    await using open = new AsyncDisposableStack()
    const setting = await prepare(where, open)
    if (wants('login')) table(await logins(setting, roundTrips, rounds))
    if (wants('sftp')) table(await smallFiles(setting, roundTrips, rounds))
    if (wants('scp')) table(await largeFiles(setting, number('size', 10), number('mbit', 2)))
  }
  if (wants('idle')) await idle()
}

export async function prepare(where: Folder, open: AsyncDisposableStack): Promise<Setting> {
  const folder = where.path
  const before = plainLogin(folder, password)
  if (before.length === 0)
    throw new Error('link: it must run as root, for a private /etc/shadow in which the password is known')
  const authority = await makeAuthority(where)
  const certificate = await authority.issue('server', 'IP:127.0.0.1')
  const tlsPort = await freePort()
  const world = open.use(
    await buildWorld({
      folder,
      before,
      profiles: undefined,
      env: {
        HAWSER_TLS_CERT: certificate.chain,
        HAWSER_TLS_KEY: certificate.key,
        HAWSER_HTTPS: `127.0.0.1:${tlsPort}`,
        HAWSER_PLAIN_HTTP: 'serve',
        HAWSER_DRAIN: '1',
        HAWSER_TLS_RATE_LIMIT: '0/10',
        HAWSER_TUNNEL_RATE_LIMIT: '0/1',
      },
    }),
  )
  const askPassword = path.join(folder, 'ask-password')
  writeFileSync(askPassword, `#!/bin/sh\necho ${password}\n`, { mode: 0o700 })
  return { folder, world, tlsPort, trust: { HAWSER_CA_FILE: authority.file }, askPassword }
}

/** Behind a link, or none. */
async function throughAgent(
  setting: Setting,
  name: string,
  shape: Shape,
  env: Readonly<Record<string, string>>,
): Promise<Side> {
  const { world, tlsPort, trust } = setting
  const link = await startLink({ port: tlsPort }, shape)
  const start = (): Promise<Agent> =>
    world.startAgent(name, {
      env: { ...trust, ...env, HAWSER_SERVER_ADDRESS: `https://127.0.0.1:${link.port}` },
    })
  let agent = await start()
  return {
    link,
    to: agent.through,
    async cool() {
      await agent[Symbol.asyncDispose]()
      agent = await start()
      await settled(link, shape.delay_ms)
    },
    async warm() {
      await login(agent.through, 'key', setting)
      await settled(link, shape.delay_ms)
    },
    async [Symbol.asyncDispose]() {
      await agent[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
    },
  }
}

/** For an agent without features for bad links. */
const oldWays = { HAWSER_FEATURES: '', HAWSER_COMPRESSION: 'never' }

/** The three ways over links of this kind. */
async function openSides(setting: Setting, open: AsyncDisposableStack, shape: Shape): Promise<Sides> {
  const ours = open.use(await throughAgent(setting, 'gantry', shape, {}))
  const old = open.use(await throughAgent(setting, 'capstan', shape, oldWays))
  const direct = open.use(await startLink(setting.world.sshd, shape))
  const sshd: Side = {
    link: direct,
    to: { ...setting.world.straight, port: direct.port },
    cool: () => Promise.resolve(),
    warm: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { ours, old, sshd }
}

/** Waits until the link was silent for more than a round trip: the session has settled. */
async function settled({ up, down }: Link, delay_ms: number): Promise<void> {
  const passed = (): number => up.payload + down.payload
  for (let tries = 0, before = -1; tries < 50 && passed() !== before; tries++) {
    before = passed()
    await wait(300 + 3 * delay_ms)
  }
}

/** To its end; returns the time in seconds. */
async function run(program: string, args: readonly string[], askPassword?: string): Promise<number> {
  const asking = askPassword === undefined ? {} : { SSH_ASKPASS: askPassword, SSH_ASKPASS_REQUIRE: 'force' }
  const started = performance.now()
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...asking },
  })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${complaint}`)
  return (performance.now() - started) / 1_000
}

function login(to: Destination, proof: Proof, { askPassword }: Setting): Promise<number> {
  const options =
    proof === 'key' ? [] : ['PreferredAuthentications=password', 'BatchMode=no', 'NumberOfPasswordPrompts=1']
  return run('ssh', [...clientArgs(to, ...options), 'true'], askPassword)
}

/** The user as one argument, because its name has an @. */
const copyArgs = (to: Destination): string[] =>
  clientArgs(to, `User=${to.user}`, `Port=${to.port}`).filter(
    (word, index, all) => word !== '-p' && all[index - 1] !== '-p' && !word.endsWith('@127.0.0.1'),
  )

/** Seconds for each side, by round trip. */
type Times = Map<number, Record<Name, number[]>>

/** Seconds at each round trip, and the number of round trips between the shortest and the longest. */
function rowsOf(
  what: string,
  times: Times,
  aims?: { readonly trips: number; readonly at500_s: number },
): Row[] {
  const against = (name: Name): string => (name === 'sshd' ? 'sshd directly' : 'the old ways')
  const rows: Row[] = []
  for (const [roundTrip_ms, seconds] of times)
    for (const other of ['sshd', 'old'] as const) {
      const compared = compare(seconds.ours, seconds[other])
      const limit_s = roundTrip_ms === 500 && other === 'sshd' ? aims?.at500_s : undefined
      const aim = limit_s === undefined ? undefined : below(limit_s, compared.a, 's')
      rows.push(line(`${what} at ${roundTrip_ms} ms : ${against(other)}`, 's', compared, aim))
    }
  const [nearest, farthest] = [Math.min(...times.keys()), Math.max(...times.keys())]
  const [near, far] = [times.get(nearest), times.get(farthest)]
  if (nearest === farthest || !near || !far) return rows
  const trips = (name: Name): number[] => [
    Math.max(0, (median(far[name]) - median(near[name])) / ((farthest - nearest) / 1_000)),
  ]
  for (const other of ['sshd', 'old'] as const) {
    const compared = compare(trips('ours'), trips(other))
    const aim: Aim | undefined =
      aims && other === 'sshd'
        ? { text: `≤ ${aims.trips}`, met: Math.round(compared.a) <= aims.trips }
        : undefined
    rows.push(line(`${what} : ${against(other)}`, 'trips', compared, aim))
  }
  return rows
}

export async function logins(
  setting: Setting,
  roundTrips: readonly number[],
  rounds: number,
): Promise<Row[]> {
  const kinds = proofs.flatMap((proof) => (['cold', 'warm'] as const).map((state) => ({ proof, state })))
  const times = kinds.map((kind) => ({ ...kind, times: new Map() as Times }))
  for (const roundTrip_ms of roundTrips) {
    say(`logging in over a link of ${roundTrip_ms} ms`)
    await using open = new AsyncDisposableStack()
    const sides = await openSides(setting, open, { delay_ms: roundTrip_ms / 2 })
    for (const one of times) {
      const side = (name: Name) => async () => {
        await (one.state === 'cold' ? sides[name].cool() : sides[name].warm())
        return login(sides[name].to, one.proof, setting)
      }
      one.times.set(
        roundTrip_ms,
        await inTurns({ ours: side('ours'), old: side('old'), sshd: side('sshd') }, rounds),
      )
    }
  }
  return times.flatMap(({ proof, state, times }) =>
    rowsOf(
      `ssh true by ${proof}, ${state}`,
      times,
      state === 'warm' ? { trips: 2, at500_s: 1.3 } : { trips: 4, at500_s: 2.3 },
    ),
  )
}

/** `sftp` gets a file of 1 KB from a device that was used a moment before. */
export async function smallFiles(
  setting: Setting,
  roundTrips: readonly number[],
  rounds: number,
): Promise<Row[]> {
  const source = path.join(setting.folder, 'small')
  const batch = path.join(setting.folder, 'small.batch')
  writeFileSync(source, randomBytes(1_024))
  writeFileSync(batch, `get ${source} ${source}.got\n`)
  const times: Times = new Map()
  for (const roundTrip_ms of roundTrips) {
    say(`fetching a small file over a link of ${roundTrip_ms} ms`)
    await using open = new AsyncDisposableStack()
    const sides = await openSides(setting, open, { delay_ms: roundTrip_ms / 2 })
    const side = (name: Name) => async () => {
      await sides[name].warm()
      return run('sftp', ['-b', batch, ...copyArgs(sides[name].to), '127.0.0.1'])
    }
    times.set(
      roundTrip_ms,
      await inTurns({ ours: side('ours'), old: side('old'), sshd: side('sshd') }, rounds),
    )
  }
  return rowsOf('sftp of 1 KB, warm', times)
}

/**
 * All ways run at the same time, each over a link of its own. With a slow link at the client's side, the
 * client's own compression (`-C`) helps; at the device's side ours does.
 */
export async function largeFiles(setting: Setting, size_mb: number, mbit: number): Promise<Row[]> {
  const bytes = Math.round(size_mb * 1e6)
  const kinds = { text: logText(bytes), random: randomBytes(bytes) }
  const shape = { delay_ms: scpRoundTrip_ms / 2, bytesPerSecond: (mbit * 1e6) / 8 }
  await using open = new AsyncDisposableStack()
  const sides = await openSides(setting, open, shape)
  const near = open.use(await throughAgent(setting, 'davit', { delay_ms: 0 }, {}))
  const gateway = open.use(await startLink({ port: near.to.port }, shape))
  const ways = {
    ...Object.fromEntries(names.map((name) => [name, { link: sides[name].link, to: sides[name].to }])),
    client: { link: gateway, to: { ...near.to, port: gateway.port } },
  } as Record<Name | 'client', Pick<Side, 'link' | 'to'>>
  const rows: Row[] = []
  for (const [kind, content] of Object.entries(kinds)) {
    const source = path.join(setting.folder, kind)
    writeFileSync(source, content)
    for (const compressed of [false, true]) {
      const what = `scp of ${size_mb} MB of ${kind} at ${mbit} Mbit/s${compressed ? ' with -C' : ''}`
      say(what)
      const fetched = await Promise.all(
        Object.entries(ways).map(async ([name, { link, to }]) => {
          const before = link.up.wire + link.down.wire
          const options = [...(compressed ? ['-C'] : []), ...copyArgs(to)]
          const seconds = await run('scp', [...options, `127.0.0.1:${source}`, `${source}.${name}`])
          return [name, { seconds, mb: (link.up.wire + link.down.wire - before) / 1e6 }] as const
        }),
      )
      const { ours, old, sshd, client } = Object.fromEntries(fetched) as Record<
        Name | 'client',
        { seconds: number; mb: number }
      >
      for (const unit of ['seconds', 'mb'] as const) {
        const compared = (where: string, a: typeof ours, b: typeof ours, other: string): Row =>
          line(
            `${what}, ${where} : ${other}`,
            unit === 'mb' ? 'MB on the link' : 's',
            compare([a[unit]], [b[unit]]),
          )
        rows.push(
          compared('slow at the device', ours, sshd, 'sshd directly'),
          compared('slow at the device', ours, old, 'the old ways'),
          compared('slow at the client', client, sshd, 'sshd directly'),
        )
      }
    }
  }
  return rows
}

/** Log lines of a service: much the same, with numbers of their own. */
function logText(bytes: number): Buffer {
  const levels = ['info', 'info', 'info', 'warning', 'error']
  const events = ['request done', 'connection opened', 'value stored', 'sensor read', 'queue is long']
  const lines: string[] = []
  for (let length = 0, i = 0; length < bytes; i++) {
    const random = randomBytes(6)
    const text =
      `2026-11-17T0${i % 10}:${String(i % 60).padStart(2, '0')}:11.${random.readUInt16BE(0)}Z ` +
      `pump-${random[2]} ${levels[i % 5]}: ${events[(random[3] ?? 0) % 5]}, took ${random[4]} ms, ` +
      `id ${random.toString('hex')}\n`
    lines.push(text)
    length += text.length
  }
  return Buffer.from(lines.join('')).subarray(0, bytes)
}

/** Idle bytes have a bench of their own, which takes half an hour. */
async function idle(): Promise<void> {
  const file = path.join(import.meta.dirname, 'idle.ts')
  if (!existsSync(file)) return say('link: there is no bench/idle.ts here, so idle bytes are not measured')
  const bench = (await import(file)) as { default?: unknown }
  if (typeof bench.default !== 'function') throw new Error('bench/idle.ts is no bench')
  await (bench.default as () => unknown)()
}
