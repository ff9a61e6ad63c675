// How quick and how small reaching a device is, through gateway, tunnel and agent, against OpenSSH straight
// to an sshd. All programs are processes of their own on this machine, which has to serve both ends. Logins
// and transfers are those of OpenSSH's client; new sessions per second, and sessions that are held, are those
// of our own client (bench/session-load.ts), the many agents those of bench/tunnel-load.ts. Both sides start
// /bin/sh in an empty home. Words choose a part of it:
//   npm run bench -- access transfer versions setup rate sessions data tunnels     parts, all unless stated
//   … size=64 rounds=3 setups=20 sessions=100 agents=1000 seconds=75      MiB, turns, logins, sessions, agents, idle time
//   … profile=<path>                                                      write CPU profiles of server and agents there
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { buildWorld, plantAgents, type Agent, type Settings, type World } from './access-world.ts'
import { collect, collectable } from './collect.ts'
import {
  atLeast,
  atMost,
  below,
  compare,
  inTurns,
  line,
  median,
  percentile,
  single,
  table,
  type Measurement,
  type Row,
} from './kit.ts'
import {
  childless,
  clientArgs,
  familyMemory_mb,
  openMaster,
  plainLogin,
  runClient,
  zeros,
  type Master,
} from './openssh.ts'
import { ask, freePort, startHawser, startProcess, type Running } from './programs.ts'
import { startRelay, type Passed, type Relay } from './relay.ts'
import type { SessionOrder } from './session-load.ts'
import type { Count, TunnelOrder } from './tunnel-load.ts'

const parts = ['transfer', 'versions', 'setup', 'rate', 'sessions', 'data', 'tunnels'] as const
/** The first is the one with an aim; the second is OpenSSH's default. */
const ciphers = ['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com']
const mib = 1024 * 1024
const day_s = 86_400
/** Concurrent logins. */
const clients = 8
/** One process each: more sessions show nothing more. */
const sshd_sessions = 20
/** For the processor time of a server with nothing but pings. */
const idle_s = 10
const longest_return_s = 200
const say = (text: string): void => void process.stderr.write(`${text}\n`)

export default async function access(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number => Math.max(1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`access: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const before = plainLogin(folder)
  if (before.length === 0)
    say('both sides start the shell of this user as it is: a private /etc/passwd cannot be had here')
  const settings: Settings = { folder, before, profiles: option('profile') }

  const rows: Row[] = []
  if (parts.some((part) => part !== 'tunnels' && wants(part))) {
    await using world = await buildWorld(settings)
    // From the beginning, because only time is needed for it.
    await using idle = wants('data') ? await startIdle(world) : undefined
    const agent = await world.startAgent('gantry')
    if (wants('setup')) rows.push(...(await setups(world, agent, number('setups', 40))))
    if (wants('transfer'))
      rows.push(...(await transfers(settings, world, agent, number('size', 256), number('rounds', 3))))
    if (wants('versions'))
      rows.push(...(await versions(settings, world, agent, number('size', 256), number('rounds', 3))))
    if (wants('rate')) rows.push(...(await rates(world, agent)))
    if (wants('sessions')) rows.push(...(await sessions(world, agent, number('sessions', 500))))
    if (idle) rows.push(...(await idle.rows(number('seconds', 75))))
  }
  if (wants('tunnels')) rows.push(...(await tunnels(settings, number('agents', 10_000))))
  table(rows)
}

/** From nothing to the end of `true` and of the connection. */
async function setups({ sshd, straight, server }: World, agent: Agent, count: number): Promise<Row[]> {
  say(`logging in ${count} times`)
  const cpu: Record<string, number[]> = { gateway: [], agent: [], sshd: [] }
  const sides = {
    ours: async (): Promise<number> => {
      const before = [server.cpu_s(), agent.family_cpu_s()] as const
      const took_ms = await runClient([...clientArgs(agent.through), 'true'])
      cpu.gateway!.push((server.cpu_s() - before[0]) * 1000)
      cpu.agent!.push((agent.family_cpu_s() - before[1]) * 1000)
      return took_ms
    },
    sshd: async (): Promise<number> => {
      const before = sshd.family_cpu_s()
      const took_ms = await runClient([...clientArgs(straight), 'true'])
      cpu.sshd!.push((sshd.family_cpu_s() - before) * 1000)
      return took_ms
    },
  }
  await inTurns(sides, 5)
  for (const times of Object.values(cpu)) times.length = 0
  const figures = await inTurns(sides, count)
  const compared = compare(figures.ours, figures.sshd)
  const p95 = (values: readonly number[]): number => percentile(Float64Array.from(values).toSorted(), 95)
  const mean = (values: readonly number[]): number[] => [
    values.reduce((sum, one) => sum + one, 0) / values.length,
  ]
  return [
    line('set-up, median', 'ms', compared, atMost(0.3, compared.ratio)),
    line('set-up, p95', 'ms', compare([p95(figures.ours)], [p95(figures.sshd)])),
    line('set-up: processor of the gateway, mean', 'ms', compare(mean(cpu.gateway!), mean(cpu.sshd!))),
    line(
      'set-up: processor of the agent and what it starts, mean',
      'ms',
      compare(mean(cpu.agent!), mean(cpu.sshd!)),
    ),
  ]
}

/** sshd's processor time is that of all its processes, the program included; the agent's is its own. */
async function transfers(
  { folder }: Settings,
  world: World,
  agent: Agent,
  size: number,
  rounds: number,
): Promise<Row[]> {
  const { sshd, server, straight } = world
  const rows: Row[] = []
  for (const cipher of ciphers) {
    const short = cipher.replace('@openssh.com', '')
    say(`transferring ${size} MiB with ${short}`)
    await using through = await openMaster(folder, agent.through, cipher)
    await using direct = await openMaster(folder, straight, cipher)
    for (const way of ['download', 'upload'] as const) {
      const cpu: Record<string, number[]> = { gateway: [], agent: [], sshd: [] }
      const run = (over: Master, mibs: number): Promise<number> =>
        way === 'download'
          ? over.run(`head -c ${mibs * mib} /dev/zero`)
          : over.run('cat > /dev/null', zeros(folder, mibs * mib))
      const per_mib = (seconds: number): number => (seconds * 1000) / size
      const sides = {
        ours: async (): Promise<number> => {
          const before = [server.cpu_s(), agent.cpu_s()] as const
          const took_ms = await run(through, size)
          cpu.gateway!.push(per_mib(server.cpu_s() - before[0]))
          cpu.agent!.push(per_mib(agent.cpu_s() - before[1]))
          return size / (took_ms / 1000)
        },
        sshd: async (): Promise<number> => {
          const before = sshd.family_cpu_s()
          const took_ms = await run(direct, size)
          cpu.sshd!.push(per_mib(sshd.family_cpu_s() - before))
          return size / (took_ms / 1000)
        },
      }
      // Warms up, so that code is compiled.
      for (const over of [through, direct]) await run(over, Math.ceil(size / 4))
      const figures = await inTurns(sides, rounds)
      const compared = compare(figures.ours, figures.sshd)
      rows.push(
        line(
          `${way}, ${short}`,
          'MiB/s',
          compared,
          cipher === ciphers[0] ? atLeast(0.5, compared.ratio) : undefined,
        ),
        line(`${way}, ${short}: processor of the gateway`, 'ms/MiB', compare(cpu.gateway!, cpu.sshd!)),
        line(`${way}, ${short}: processor of the agent`, 'ms/MiB', compare(cpu.agent!, cpu.sshd!)),
      )
    }
  }
  return rows
}

/** The gateway's costs of field agents, in both versions of the tunnel, against our own agent. */
async function versions(
  { folder }: Settings,
  world: World,
  agent: Agent,
  size: number,
  rounds: number,
): Promise<Row[]> {
  const { server } = world
  const cipher = ciphers[0]!
  say(`transferring ${size} MiB with agents of the field`)
  const agents = {
    ours: agent,
    'version 1': await world.startOldAgent('capstan', 1),
    'version 2': await world.startOldAgent('davit', 2),
  }
  type Name = keyof typeof agents
  const names = Object.keys(agents) as Name[]
  await using open = new AsyncDisposableStack()
  const masters = {} as Record<Name, Master>
  for (const name of names) masters[name] = open.use(await openMaster(folder, agents[name].through, cipher))
  const rows: Row[] = []
  for (const way of ['download', 'upload'] as const) {
    const cpu = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
    const run = (over: Master, mibs: number): Promise<number> =>
      way === 'download'
        ? over.run(`head -c ${mibs * mib} /dev/zero`)
        : over.run('cat > /dev/null', zeros(folder, mibs * mib))
    const side = (name: Name) => async (): Promise<number> => {
      const before = server.cpu_s()
      const took_ms = await run(masters[name], size)
      cpu[name].push(((server.cpu_s() - before) * 1000) / size)
      return size / (took_ms / 1000)
    }
    for (const name of names) await run(masters[name], Math.ceil(size / 4))
    const figures = await inTurns(
      { ours: side('ours'), 'version 1': side('version 1'), 'version 2': side('version 2') },
      rounds,
    )
    for (const name of ['version 1', 'version 2'] as const) {
      const compared = compare(cpu[name], cpu.ours)
      rows.push(
        line(`${way}, agents of ${name} : our agent`, 'MiB/s', compare(figures[name], figures.ours)),
        line(
          `${way}, agents of ${name} : our agent: processor of the gateway`,
          'ms/MiB',
          compared,
          atMost(1.2, compared.ratio),
        ),
      )
    }
  }
  return rows
}

const startSessionLoad = (): Running =>
  startProcess([process.execPath, 'bench/session-load.ts'], {}, { ipc: true })
const loginOf = ({ port, user, keys }: Agent['through']) => ({ port, user, keyFile: keys.file })

async function rates({ straight }: World, agent: Agent): Promise<Row[]> {
  say(`logging in with ${clients} clients at a time`)
  await using load = startSessionLoad()
  const side = (to: Agent['through'], p95s: number[]) => async () => {
    const measured = await ask<Measurement>(load, {
      do: 'measure',
      ...loginOf(to),
      seconds: 2,
      clients,
    } satisfies SessionOrder)
    p95s.push(measured.p95)
    return measured.perSecond
  }
  const p95s: Record<'ours' | 'sshd', number[]> = { ours: [], sshd: [] }
  const sides = { ours: side(agent.through, p95s.ours), sshd: side(straight, p95s.sshd) }
  await sides.ours()
  p95s.ours.length = 0
  const figures = await inTurns(sides, 3)
  return [
    line(`new sessions, ${clients} clients`, '/s', compare(figures.ours, figures.sshd)),
    line(`new sessions, ${clients} clients: one takes, p95`, 'ms', compare(p95s.ours, p95s.sshd)),
  ]
}

/** Sessions with `cat`, which waits: as many as one device takes, the rest on another. */
async function sessions(world: World, first: Agent, count: number): Promise<Row[]> {
  say(`holding ${count} sessions`)
  await using load = startSessionLoad()
  const open = (to: Agent['through'], wanted: number) =>
    ask<{ opened: number; refused?: string }>(load, {
      do: 'open',
      ...loginOf(to),
      count: wanted,
    } satisfies SessionOrder)
  const close = () => ask(load, { do: 'close' } satisfies SessionOrder)
  const second = await world.startAgent('winch')
  // Warms up: code is compiled and loaded with the first.
  await open(first.through, Math.min(50, count))
  await open(second.through, 1)
  await close()
  const used = async () => ({ gateway: await memoryOf(world.server), agent: await memoryOf(first) })
  const before = await used()
  const { opened, refused } = await open(first.through, count)
  if (refused !== undefined) say(`one device took ${opened} sessions: ${refused}`)
  const rest = opened < count ? (await open(second.through, count - opened)).opened : 0
  const after = await used()
  await close()
  await childless(world.sshd.pid)
  const sshdBefore_kb = familyMemory_mb(world.sshd.pid) * 1024
  const few = Math.min(count, sshd_sessions)
  await open(world.straight, few)
  const sshd_kb = (familyMemory_mb(world.sshd.pid) * 1024 - sshdBefore_kb) / few
  await close()
  const held = opened + rest
  return [
    single(`sessions at a time that one device took, of ${count}`, '', opened),
    ...(['gateway', 'agent'] as const).flatMap((name) => {
      const sharing = name === 'gateway' ? held : opened
      const each = (kind: keyof Memory): number[] => [(after[name][kind] - before[name].clean_kb) / sharing]
      return [
        line(
          `memory of the ${name}, a live session at ${sharing}`,
          'KB',
          compare(each('resident_kb'), [sshd_kb]),
        ),
        line('  of it not garbage', 'KB', compare(each('clean_kb'), [sshd_kb])),
      ]
    }),
  ]
}

interface Memory {
  /** Once it has settled. */
  readonly resident_kb: number
  /** After a collection of garbage. */
  readonly clean_kb: number
}

async function memoryOf(program: Running): Promise<Memory> {
  const resident_kb = await settled_kb(program)
  await collect(program)
  return { resident_kb, clean_kb: await settled_kb(program) }
}

async function settled_kb({ resident_mb }: Running): Promise<number> {
  const last: number[] = []
  for (let tries = 0; tries < 20; tries++) {
    last.push(resident_mb())
    const recent = last.slice(-4)
    if (recent.length === 4 && Math.max(...recent) - Math.min(...recent) < 0.5) break
    await wait(500)
  }
  return last.at(-1)! * 1024
}

interface Idle extends AsyncDisposable {
  rows(seconds: number): Promise<Row[]>
}

/** An idle agent behind a relay. */
async function startIdle(world: World): Promise<Idle> {
  await using starting = new AsyncDisposableStack()
  const watch = async (
    name: string,
    env: Record<string, string>,
  ): Promise<{ relay: Relay; before: Passed }> => {
    const relay = starting.use(await startRelay(world.server.port))
    await world.startAgent(name, { env, port: relay.port })
    // Until what belongs to the beginning is over.
    await wait(2000)
    return { relay, before: relay.passed() }
  }
  const watched = {
    usual: await watch('buoy', {}),
  }
  const started = performance.now()
  const ending = starting.move()
  return {
    async rows(seconds) {
      const left_ms = started + seconds * 1000 - performance.now()
      if (left_ms > 0) say(`watching an idle agent for another ${Math.round(left_ms / 1000)} s`)
      await wait(Math.max(0, left_ms))
      const days = (performance.now() - started) / 1000 / day_s
      return Object.entries(watched).flatMap(([name, { relay, before }]) => {
        const passed = relay.passed()
        const a_day = (key: keyof Passed): number => (passed[key] - before[key]) / days / 1e6
        const all = a_day('line_bytes')
        return [
          single(`idle agent, ${name}: bytes both ways`, 'MB/day', a_day('bytes')),
          single(`idle agent, ${name}: with the headers of TCP and IP`, 'MB/day', all, below(1, all, 'MB')),
        ]
      })
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
}

/** Many idle agents with tunnels, and their return after a restart of the server. */
async function tunnels({ folder, profiles }: Settings, count: number): Promise<Row[]> {
  say(`planting ${count} devices`)
  const { data, keyFile } = await plantAgents(folder, count)
  await using load = startProcess(
    [process.execPath, '--max-old-space-size=8192', 'bench/tunnel-load.ts'],
    {},
    { ipc: true },
  )
  const tell = <T>(order: TunnelOrder): Promise<T> => ask<T>(load, order)
  const port = await freePort()
  const rows: Row[] = []
  {
    const env = { HAWSER_TUNNEL_RATE_LIMIT: '0/1' }
    await using server = await startHawser(data, { port, profiles, env, flags: [collectable] })
    const some = Math.min(200, count)
    await tell({ do: 'enrol', port, keyFile, count: some })
    await tell({ do: 'hold', port, count: some })
    await tell({ do: 'leave' })
    const before = await memoryOf(server)
    say(`enrolling ${count} agents`)
    await tell({ do: 'enrol', port, keyFile, count })
    const enrolled = await memoryOf(server)
    say(`opening ${count} tunnels`)
    const cpu_s = server.cpu_s()
    const opening = performance.now()
    await tell({ do: 'hold', port, count })
    const opened_s = (performance.now() - opening) / 1000
    const opened_cpu_s = server.cpu_s() - cpu_s
    const resident_kb = await settled_kb(server)
    const pings = server.cpu_s()
    await wait(idle_s * 1000)
    const share = ((server.cpu_s() - pings) / idle_s) * 100
    const after = await memoryOf(server)
    const { up } = await tell<Count>({ do: 'count' })
    const each_kb = (resident_kb - before.clean_kb) / up
    rows.push(
      single('tunnels at a time', '', up, { text: count.toLocaleString('en'), met: up >= count }),
      single(`memory of the server, an idle tunnel at ${up}`, 'KB', each_kb, below(25, each_kb, 'KB')),
      single('  of it not garbage', 'KB', (after.clean_kb - before.clean_kb) / up),
      single(
        '  of it not garbage, before there was a tunnel: enrolled',
        'KB',
        (enrolled.clean_kb - before.clean_kb) / up,
      ),
      single(`server with ${up} idle tunnels`, 'MB', resident_kb / 1024),
      single(`server with ${up} idle tunnels: processor`, '% of one', share),
      single('opening a tunnel: processor', 'ms', (opened_cpu_s * 1000) / up),
      single('opening tunnels without a limit', '/s', up / opened_s),
    )
    say('stopping the server')
  }
  rows.push(...(await returns(data, port, count, tell)))
  await tell({ do: 'leave' })
  return rows
}

async function returns(
  data: string,
  port: number,
  count: number,
  tell: <T>(order: TunnelOrder) => Promise<T>,
): Promise<Row[]> {
  const started = performance.now()
  const before = await tell<Count>({ do: 'count' })
  await using server = await startHawser(data, { port })
  say(`starting it again: healthy after ${Math.round(server.healthy_ms)} ms`)
  const seconds = (): number => (performance.now() - started) / 1000
  const reached = new Map<number, number>()
  let now = before
  while (seconds() < longest_return_s && now.up < count) {
    await wait(250)
    now = await tell<Count>({ do: 'count' })
    for (const percent of [50, 90, 99, 100])
      if (now.up >= (count * percent) / 100 && !reached.has(percent)) reached.set(percent, seconds())
  }
  const rows = [...reached].map(([percent, after_s]) =>
    single(`return after a restart at 400/s: ${percent} % back after`, 's', after_s),
  )
  if (now.up < count)
    rows.push(single(`return after a restart: back after ${longest_return_s} s`, '', now.up))
  rows.push(single('return after a restart: refusals an agent', '', (now.refusals - before.refusals) / count))
  rows.push(
    single(
      'return after a restart: processor of the server an agent',
      'ms',
      median([(server.cpu_s() * 1000) / count]),
    ),
  )
  return rows
}
