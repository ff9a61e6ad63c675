// What a web service of a device costs on its way through gateway, tunnel and agent, in comparison with nginx
// in front of the same program on this machine, and with the program itself. All of them are processes of
// their own and serve without TLS; a signed-in member asks. nginx keeps its connections to the program open,
// and writes no bodies to disk. "Added" is the time beyond that of the program itself in the same turn.
// Words choose a part of it:
//   npm run bench -- services websockets latency requests download upload    parts, all unless stated
//   … connections=32 seconds=3 count=2000 size=256 sockets=500 rounds=5      seconds and requests of a turn, MiB; a
//                                                                            member may have 512 sockets open
//   … profile=<path>                                                         write CPU profiles of server and agent there
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { client, type Client } from '@hawser/contract/client'
import type { Architecture } from '../packages/registry.ts'
import { writeAgent } from '../packages/tarball.ts'
import { isThere } from '../tests/harness/needs.ts'
import { signIn } from './access-world.ts'
import { collect, collectable } from './collect.ts'
import { plantFleet, tenant_id } from './fleet.ts'
import {
  atLeast,
  below,
  compare,
  inTurns,
  line,
  median,
  single,
  table,
  type Comparison,
  type Row,
} from './kit.ts'
import { familyMemory_mb } from './openssh.ts'
import {
  ask,
  freePort,
  profiling,
  startHawser,
  startProcess,
  type Program,
  type Running,
} from './programs.ts'
import type { EndsOrder, Latency, To } from './services-ends.ts'

const parts = ['websockets', 'latency', 'requests', 'download', 'upload'] as const
const domain = 'services.test'
const mib = 1024 * 1024
/** Opened and closed before memory is measured. */
const warmSockets = 100
const longest_settling_ms = 30_000
const still_kb = 256
const say = (text: string): void => void process.stderr.write(`${text}\n`)

interface World {
  readonly server: Program
  readonly agent: Running
  readonly nginx: Running
  /** Where the browsers' process finds each of them. */
  readonly ways: Readonly<Record<'ours' | 'nginx' | 'direct', To>>
  browsers<T>(order: EndsOrder): Promise<T>
}

export default async function services(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number => Math.max(1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`services: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)
  if (!isThere({ command: 'nginx' }))
    throw new Error('there is no nginx here (Debian package nginx-light): apt-get install nginx-light')

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  await using open = new AsyncDisposableStack()
  const world = await buildWorld(folder, option('profile'), open)

  const rounds = number('rounds', 5)
  const rows: Row[] = []
  // First: after a load the process has memory to spare.
  if (wants('websockets')) rows.push(...(await webSockets(world, number('sockets', 500))))
  if (wants('latency')) rows.push(...(await latencies(world, number('count', 2_000), rounds)))
  if (wants('requests'))
    rows.push(...(await requests(world, number('connections', 32), number('seconds', 3), rounds)))
  for (const way of ['download', 'upload'] as const)
    if (wants(way)) rows.push(...(await transfers(world, way, number('size', 256), rounds)))
  table(rows)
}

// ---- the figures

async function latencies({ ways, browsers }: World, count: number, rounds: number): Promise<Row[]> {
  say(`asking ${count} times, one after the other`)
  const p99s: Record<keyof typeof ways, number[]> = { ours: [], nginx: [], direct: [] }
  const side = (name: keyof typeof ways) => async (): Promise<number> => {
    const { p50, p99 } = await browsers<Latency>({ do: 'latency', ...ways[name], count })
    p99s[name].push(p99)
    return p50
  }
  const sides = { ours: side('ours'), nginx: side('nginx'), direct: side('direct') }
  for (const warm of Object.values(sides)) await warm()
  for (const times of Object.values(p99s)) times.length = 0
  const p50s = await inTurns(sides, rounds)
  return (
    [
      ['p50', p50s],
      ['p99', p99s],
    ] as const
  ).flatMap(([what, { ours, nginx, direct }]) => {
    const added = (times: readonly number[]): number[] => times.map((time, round) => time - direct[round]!)
    const ours_ms = median(added(ours))
    return [
      line(`one connection, ${what}, against nginx`, 'ms', compare(ours, nginx)),
      line(`one connection, ${what}, against the program itself`, 'ms', compare(ours, direct)),
      line(
        `one connection, ${what}: added, by us and by nginx`,
        'ms',
        compare(added(ours), added(nginx)),
        what === 'p50' ? below(1.5, ours_ms, 'ms') : undefined,
      ),
    ]
  })
}

async function requests(world: World, connections: number, seconds: number, rounds: number): Promise<Row[]> {
  say(`asking on ${connections} connections for ${seconds} s`)
  const { ways, browsers } = world
  const used = costs(world)
  const side = (name: keyof typeof ways) => async (): Promise<number> => {
    const end = used.begin()
    const order = { do: 'requests', ...ways[name], connections, seconds } as const
    const { count, perSecond } = await browsers<{ count: number; perSecond: number }>(order)
    // So that the figures are microseconds of a request.
    end(name, count / 1000)
    return perSecond
  }
  const sides = { ours: side('ours'), nginx: side('nginx'), direct: side('direct') }
  for (const warm of Object.values(sides)) await warm()
  used.forget()
  const figures = await inTurns(sides, rounds)
  return [
    line(`${connections} connections, against nginx`, '/s', compare(figures.ours, figures.nginx)),
    line('  nginx against the program itself', '/s', compare(figures.nginx, figures.direct)),
    line('  processor of the gateway for a request', 'µs', used.compared('gateway')),
    line('  processor of the agent for a request', 'µs', used.compared('agent')),
  ]
}

async function transfers(
  world: World,
  way: 'download' | 'upload',
  size: number,
  rounds: number,
): Promise<Row[]> {
  say(`${way} of ${size} MiB`)
  const { ways, browsers } = world
  const used = costs(world)
  const run = async (name: keyof typeof ways, mibs: number): Promise<number> => {
    const end = used.begin()
    const order = { do: way, ...ways[name], bytes: mibs * mib } as const
    const { took_ms } = await browsers<{ took_ms: number }>(order)
    end(name, mibs)
    return mibs / (took_ms / 1000)
  }
  const sides = {
    ours: async () => run('ours', size),
    nginx: async () => run('nginx', size),
    direct: async () => run('direct', size),
  }
  for (const name of ['ours', 'nginx', 'direct'] as const) await run(name, Math.ceil(size / 4))
  used.forget()
  const figures = await inTurns(sides, rounds)
  const compared = compare(figures.ours, figures.nginx)
  const ofGateway = used.compared('gateway')
  return [
    line(
      `${way} of ${size} MiB, against nginx`,
      'MiB/s',
      compared,
      way === 'download' ? atLeast(0.4, compared.ratio) : undefined,
    ),
    line('  nginx against the program itself', 'MiB/s', compare(figures.nginx, figures.direct)),
    line('  processor of the gateway', 'ms/MiB', ofGateway),
    line('  processor of the gateway', 's/GiB', scaled(ofGateway, 1.024)),
    line('  processor of the agent', 'ms/MiB', used.compared('agent')),
  ]
}

const scaled = ({ a, b, ...ratios }: Comparison, by: number): Comparison => ({
  a: a * by,
  b: b * by,
  ...ratios,
})

/** Processor time in milliseconds for each unit of work, that of nginx as the reference. */
function costs({ server, agent, nginx }: World) {
  const times: Record<'gateway' | 'agent' | 'nginx', number[]> = { gateway: [], agent: [], nginx: [] }
  const now = () => ({ gateway: server.cpu_s(), agent: agent.cpu_s(), nginx: nginx.family_cpu_s() })
  return {
    begin() {
      const before = now()
      return (side: 'ours' | 'nginx' | 'direct', units: number): void => {
        const after = now()
        for (const name of ['gateway', 'agent', 'nginx'] as const)
          if ((name === 'nginx') === (side === 'nginx') && side !== 'direct')
            times[name].push(((after[name] - before[name]) * 1000) / units)
      }
    },
    forget(): void {
      for (const each of Object.values(times)) each.length = 0
    },
    compared: (name: 'gateway' | 'agent'): Comparison => compare(times[name], times.nginx),
  }
}

/** nginx holds as many. */
async function webSockets({ server, agent, nginx, ways, browsers }: World, count: number): Promise<Row[]> {
  say(`holding ${count} WebSockets`)
  const open = async (name: keyof typeof ways, wanted: number): Promise<number> => {
    const order = { do: 'open', ...ways[name], count: wanted } as const
    const { opened, refused } = await browsers<{ opened: number; refused?: string }>(order)
    if (refused !== undefined) say(`${opened} of ${wanted} WebSockets were opened: ${refused}`)
    return opened
  }
  const close = async (): Promise<unknown> => browsers({ do: 'close' })
  const each = async (name: keyof typeof ways, program: Running): Promise<{ kb: number; opened: number }> => {
    const before_kb = await settled_kb(program)
    const opened = await open(name, count)
    const after_kb = await settled_kb(program)
    return { kb: (after_kb - before_kb) / opened, opened }
  }
  // Warms up: code is compiled and loaded with the first.
  for (const name of ['ours', 'nginx'] as const) await open(name, Math.min(warmSockets, count))
  await close()
  const ofNginx = await each('nginx', nginx)
  await close()

  const before = { gateway: await clean(server), agent: await clean(agent) }
  const opened = await open('ours', count)
  const live_kb = await settled_kb(server)
  const after = { gateway: await clean(server), agent: await clean(agent) }
  await close()
  const against = (kb: number) => compare([kb], [ofNginx.kb])
  const gateway_kb = (after.gateway.resident_kb - before.gateway.resident_kb) / opened
  const agent_kb = (after.agent.resident_kb - before.agent.resident_kb) / opened
  const held = (who: keyof typeof after): number => (after[who].heap_kb - before[who].heap_kb) / opened
  return [
    single(`WebSockets at a time that one member opened, of ${count}`, '', opened),
    line('  memory of the gateway for one, idle', 'KB', against(gateway_kb), below(60, gateway_kb, 'KB')),
    single('  before its garbage is collected', 'KB', (live_kb - before.gateway.resident_kb) / opened),
    single('  objects and buffers of the gateway', 'KB', held('gateway')),
    line('  memory of the agent for one, idle', 'KB', against(agent_kb)),
    single('  objects and buffers of the agent', 'KB', held('agent')),
  ]
}

interface Memory {
  readonly resident_kb: number
  /** Objects, and buffers outside of the heap. */
  readonly heap_kb: number
}

/** Collects garbage until that frees no more memory. */
async function clean(program: Running): Promise<Memory> {
  const until = performance.now() + longest_settling_ms
  for (let last_kb = Infinity; ;) {
    const heap_kb = (await collect(program)) * 1024
    const resident_kb = await settled_kb(program)
    if (last_kb - resident_kb < still_kb || performance.now() > until) return { resident_kb, heap_kb }
    last_kb = resident_kb
  }
}

/** The proportional set size of the program and its children, when it has stopped to move. */
async function settled_kb({ pid }: Running): Promise<number> {
  const until = performance.now() + longest_settling_ms
  for (let last = Number.NaN; ;) {
    const now = familyMemory_mb(pid) * 1024
    if (Math.abs(now - last) < still_kb || performance.now() > until) return now
    last = now
    await wait(1_000)
  }
}

// ---- the programs

async function buildWorld(
  folder: string,
  profiles: string | undefined,
  open: AsyncDisposableStack,
): Promise<World> {
  const data = path.join(folder, 'data')
  await plantFleet(data, 0, () => undefined)
  const server = open.use(
    await startHawser(data, {
      profiles,
      flags: [collectable],
      env: { HAWSER_SERVICES_DOMAIN: domain, HAWSER_TRUSTED_PROXIES: 'none' },
    }),
  )
  const url = `http://127.0.0.1:${server.port}`
  const api = client({ url, token: await signIn(server.port) })
  const { agent, device_uid } = await startAgent(folder, url, profiles, open)
  await api.devices.accept({ params: { uid: device_uid } })
  const helper = (): Running =>
    open.use(startProcess([process.execPath, 'bench/services-ends.ts'], {}, { ipc: true }))
  const program = helper()
  const { port } = await ask<{ port: number }>(program, { do: 'serve' } satisfies EndsOrder)
  const nginx = await startNginx(folder, port, open)
  const { body } = await api.services.create({ body: { device_uid, name: 'bench', port } })
  const host = `Host: ${body.address}.${domain}`
  const cookie = await openService(api, server.port, body.address)
  const browsers = helper()
  return {
    server,
    agent,
    nginx: nginx.running,
    ways: {
      ours: { port: server.port, headers: [host, `Cookie: ${cookie}`] },
      // The same bytes for all, of which only we need the cookie.
      nginx: { port: nginx.port, headers: [host, `Cookie: ${cookie}`] },
      direct: { port, headers: [host, `Cookie: ${cookie}`] },
    },
    browsers: async (order) => ask(browsers, order),
  }
}

async function startAgent(
  folder: string,
  url: string,
  profiles: string | undefined,
  open: AsyncDisposableStack,
): Promise<{ agent: Running; device_uid: string }> {
  const main = await writeAgent(path.join(folder, 'agent'), process.arch as Architecture)
  const isRoot = process.getuid?.() === 0
  const agent = open.use(
    startProcess([process.execPath, ...profiling(profiles), collectable, main], {
      HAWSER_SERVER_ADDRESS: url,
      HAWSER_TENANT_ID: tenant_id,
      HAWSER_PRIVATE_KEY: path.join(folder, 'device.key'),
      HAWSER_PREFERRED_HOSTNAME: 'gantry',
      ...(isRoot ? {} : { HAWSER_SINGLE_USER_PASSWORD: '$6$bench$no-password-fits-this' }),
    }),
  )
  const device_uid = await agent.printed(/"tunnel\.up","uid":"([0-9a-f]+)"/)
  return { agent, device_uid }
}

/** In the foreground, as the user of the bench, with all files in its folder. */
async function startNginx(
  folder: string,
  program: number,
  open: AsyncDisposableStack,
): Promise<{ running: Running; port: number }> {
  const port = await freePort()
  const isRoot = process.getuid?.() === 0
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `  ${kind}_temp_path ${path.join(folder, kind)};`,
  )
  const file = path.join(folder, 'nginx.conf')
  const settings = `
daemon off;
worker_processes 1;
${isRoot ? `user ${os.userInfo().username};` : ''}
pid ${path.join(folder, 'nginx.pid')};
error_log stderr warn;
events { worker_connections 4096; }
http {
${temporary.join('\n')}
  access_log off;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  proxy_request_buffering off;
  proxy_max_temp_file_size 0;
  map $http_upgrade $hop { default upgrade; '' ''; }
  upstream program {
    server 127.0.0.1:${program};
    keepalive 64;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://program;
      proxy_http_version 1.1;
      proxy_read_timeout 1h;
      proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $hop;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`
  writeFileSync(file, settings)
  // An ordinary user's path leaves the folders of administration out.
  const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`
  const running = open.use(startProcess(['nginx', '-e', 'stderr', '-p', folder, '-c', file], { PATH }))
  for (;;) {
    const status = await statusAt(port)
    if (status === 200) return { running, port }
    if (running.child.exitCode !== null) throw new Error(`nginx ended: ${await running.printed(/([^]*)/)}`)
    await wait(20)
  }
}

const statusAt = async (port: number): Promise<number | undefined> =>
  fetch(`http://127.0.0.1:${port}/`).then(
    ({ status }) => status,
    () => undefined,
  )

/** As a browser of a member does, by the console; returns the cookie of the service. */
async function openService(api: Client, port: number, address: string): Promise<string> {
  let cookie = ''
  const visit = async (at: string): Promise<string> => {
    const headers = {
      host: `${address}.${domain}`,
      accept: 'text/html',
      'sec-fetch-mode': 'navigate',
      ...(cookie === '' ? {} : { cookie }),
    }
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
    http.get({ host: '127.0.0.1', port, path: at, headers, agent: false }, resolve).once('error', reject)
    const { headers: answered, statusCode } = (await promise).resume()
    if (statusCode !== 302) throw new Error(`the service was not opened: ${statusCode} at ${at}`)
    cookie = answered['set-cookie']?.[0]?.split(';', 1)[0] ?? cookie
    return answered.location ?? ''
  }
  const console = new URL(await visit('/'))
  const state = console.searchParams.get('state') ?? ''
  const { body } = await api.services.open({ body: { address, state } })
  const { pathname, search } = new URL(body.url)
  await visit(`${pathname}${search}`)
  return cookie
}
