// How quick and how small the SSH package is, over one hop: against OpenSSH's sshd and npm's `ssh2` as
// servers. The load is OpenSSH's client, for all of them in turns, unless a row says "our client". Our server
// and ssh2's run nothing (bench/ssh-server.ts); sshd starts a shell and a program for each session, and their
// processor time counts with its own: it is made for that, so the comparison is with what it replaces and not
// with its cipher. Transfers go over a connection that stands already. Words choose a part of it, in any
// order:
//   npm run bench -- ssh transfer setup memory     parts, all unless stated
//   … size=64 rounds=3 setups=50 clients=100       MiB of a transfer, turns, logins, connections at a time
//   … profile=<path>                               write CPU profiles of our server there
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { clientAlgorithms, connect, startSession, type Connection } from '../ssh/src/index.ts'
import { atMost, below, compare, inTurns, line, percentile, table, type Aim, type Row } from './kit.ts'
import {
  childless,
  clientArgs,
  familyMemory_mb,
  kex,
  makeKey,
  openMaster,
  plainLogin,
  runClient,
  startSshd,
  user,
  zeros,
  type Keys,
} from './openssh.ts'
import { profiling, root, startProcess, type Running } from './programs.ts'

const parts = ['transfer', 'setup', 'memory'] as const
const ciphers = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'chacha20-poly1305@openssh.com']
const mlkem = 'mlkem768x25519-sha256'
const mib = 1024 * 1024
/** One process each: more of them show nothing more. */
const sshd_clients = 20
const say = (text: string): void => void process.stderr.write(`${text}\n`)

const kinds = ['ours', 'sshd', 'ssh2', 'ssh2 with its addon'] as const
type Kind = (typeof kinds)[number]

interface Server extends Running {
  readonly kind: Kind
  readonly port: number
}

interface Bench {
  readonly folder: string
  readonly keys: Keys
  readonly before: readonly string[]
  readonly kinds: readonly Kind[]
  readonly profiles: string | undefined
}

export default async function ssh(...words: string[]): Promise<void> {
  const option = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  const number = (name: string, usual: number): number => Math.max(1, Number(option(name) ?? usual) || usual)
  const named = words.filter((word) => !word.includes('='))
  const unknown = named.find((word) => !(parts as readonly string[]).includes(word))
  if (unknown !== undefined) throw new Error(`ssh: "${unknown}" is not a part (${parts.join(', ')})`)
  const wants = (part: (typeof parts)[number]): boolean => named.length === 0 || named.includes(part)

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const before = plainLogin(folder)
  if (before.length === 0)
    say('sshd starts the shell of this user as it is: a private /etc/passwd cannot be had here')
  installSsh2()
  const bench: Bench = {
    folder,
    keys: makeKey(folder, 'client_key'),
    before,
    kinds: hasAddon() ? kinds : kinds.filter((kind) => kind !== 'ssh2 with its addon'),
    profiles: option('profile'),
  }
  makeKey(folder, 'host_key')

  const rows: Row[] = []
  if (wants('transfer')) rows.push(...(await transfers(bench, number('size', 256), number('rounds', 5))))
  if (wants('setup')) rows.push(...(await setups(bench, number('setups', 60))))
  if (wants('memory')) rows.push(...(await memory(bench, number('clients', 500))))
  table(rows)
}

const ssh2Folder = path.join(import.meta.dirname, 'node_modules/ssh2')
const addonFolder = path.join(ssh2Folder, 'lib/protocol/crypto/build/Release')
const hasAddon = (): boolean => existsSync(path.join(addonFolder, 'sshcrypto.node'))

function installSsh2(): void {
  if (!existsSync(ssh2Folder)) {
    say('installing ssh2 for the comparison (once)')
    const done = spawnSync(
      'npm',
      [
        'ci',
        '--prefix',
        import.meta.dirname,
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
      ],
      {
        cwd: root,
        stdio: ['ignore', 2, 2],
      },
    )
    if (done.status !== 0) throw new Error('`npm ci --prefix bench` failed; it needs the npm registry once')
  }
  if (!hasAddon() && !buildAddon()) say('the addon of ssh2 cannot be built here and is left out')
}

/** As its own script would, but with a replacement for one call that V8 has removed; see decision 14. */
function buildAddon(): boolean {
  const headers = path.join(path.dirname(process.execPath), '../include/node')
  const source = path.join(ssh2Folder, 'lib/protocol/crypto/src/binding.cc')
  if (!existsSync(path.join(headers, 'node.h'))) return false
  mkdirSync(addonFolder, { recursive: true })
  const patched = path.join(addonFolder, 'binding.cc')
  writeFileSync(
    patched,
    readFileSync(source, 'utf8').replaceAll('context->GetIsolate()', 'v8::Isolate::GetCurrent()'),
  )
  const defines = [
    'NODE_GYP_MODULE_NAME=sshcrypto',
    'BUILDING_NODE_EXTENSION',
    'REAL_OPENSSL_MAJOR=3',
    'OPENSSL_API_COMPAT=0x10100000L',
  ]
  const folders = [headers, path.join(import.meta.dirname, 'node_modules/nan')]
  const flags = [
    '-O3',
    '-shared',
    '-fPIC',
    '-std=gnu++20',
    '-w',
    ...folders.map((one) => `-I${one}`),
    ...defines.map((one) => `-D${one}`),
  ]
  const draft = path.join(addonFolder, 'draft.node')
  if (spawnSync('g++', [...flags, patched, '-o', draft]).status !== 0) return false
  renameSync(draft, path.join(addonFolder, 'sshcrypto.node'))
  return true
}

async function startServer({ folder, keys, before, profiles }: Bench, kind: Kind): Promise<Server> {
  if (kind === 'sshd') return { ...(await startSshd(folder, before, keys)), kind }
  const flags = [
    '--expose-gc',
    ...(kind === 'ssh2' ? ['--no-addons'] : []),
    ...(kind === 'ours' ? profiling(profiles) : []),
  ]
  const program = [
    'bench/ssh-server.ts',
    kind === 'ours' ? 'ours' : 'ssh2',
    path.join(folder, 'host_key'),
    keys.key.blob.toString('base64'),
  ]
  const running = startProcess([process.execPath, ...flags, ...program])
  return { ...running, kind, port: Number(await running.printed(/listening on (\d+)/)) }
}

async function startAll(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Server[]> {
  const servers: Server[] = []
  for (const kind of bench.kinds) servers.push(cleanUp.use(await startServer(bench, kind)))
  return servers
}

/** Rows of our figure against each other one. */
function against(
  what: string,
  unit: string,
  figures: Readonly<Record<string, number[]>>,
  aim?: (ours: number) => Aim,
): Row[] {
  const others = Object.keys(figures).filter((kind) => kind !== 'ours')
  return others.map((kind, index) => {
    const compared = compare(figures.ours!, figures[kind]!)
    return line(`${what}, against ${kind}`, unit, compared, index === 0 ? aim?.(compared.a) : undefined)
  })
}

async function transfers(bench: Bench, size: number, rounds: number): Promise<Row[]> {
  await using cleanUp = new AsyncDisposableStack()
  const servers = await startAll(bench, cleanUp)
  const rows: Row[] = []
  for (const cipher of ciphers) {
    await using standing = new AsyncDisposableStack()
    const short = cipher.replace('@openssh.com', '')
    const aim = cipher.startsWith('aes') ? (ours: number): Aim => below(2, ours, 'ms') : undefined
    const cpu = { down: {} as Record<string, number[]>, up: {} as Record<string, number[]> }
    const sides: Record<string, () => Promise<number>> = {}
    for (const server of servers) {
      const master = standing.use(
        await openMaster(bench.folder, { ...server, user, keys: bench.keys }, cipher),
      )
      const run = (way: 'down' | 'up', mibs: number): Promise<number> => {
        const isSshd = server.kind === 'sshd'
        if (way === 'up')
          return master.run(isSshd ? 'cat > /dev/null' : 'up', zeros(bench.folder, mibs * mib))
        return master.run(isSshd ? `head -c ${mibs * mib} /dev/zero` : `down ${mibs * mib}`)
      }
      for (const way of ['down', 'up'] as const) {
        const times: number[] = (cpu[way][server.kind] = [])
        sides[`${way} ${server.kind}`] = async () => {
          const before = server.family_cpu_s()
          const took_ms = await run(way, size)
          times.push(((server.family_cpu_s() - before) * 1000) / size)
          return size / (took_ms / 1000)
        }
        // Warms up, so that code is compiled.
        await run(way, Math.ceil(size / 4))
      }
    }
    say(`transferring ${size} MiB with ${short}`)
    const figures = await inTurns(sides, rounds)
    for (const [way, name] of [
      ['down', 'download'],
      ['up', 'upload'],
    ] as const) {
      const speeds = Object.fromEntries(bench.kinds.map((kind) => [kind, figures[`${way} ${kind}`]!]))
      rows.push(
        ...against(`${name}, ${short}`, 'MiB/s', speeds),
        ...against(`${name}, ${short}: processor`, 'ms/MiB', cpu[way], aim),
      )
    }
  }
  return rows
}

/** From nothing to the end of `true` and of the connection. */
async function setups(bench: Bench, count: number): Promise<Row[]> {
  await using cleanUp = new AsyncDisposableStack()
  const servers = await startAll(bench, cleanUp)
  const cpu: Record<string, number[]> = {}
  const sides: Record<string, () => Promise<number>> = {}
  for (const server of servers) {
    const args = [...clientArgs({ ...server, user, keys: bench.keys }), 'true']
    sides[server.kind] = async () => {
      const before = server.family_cpu_s()
      const took_ms = await runClient(args)
      if (server.kind === 'sshd') await childless(server.pid)
      const times = (cpu[server.kind] ??= [])
      times.push((server.family_cpu_s() - before) * 1000)
      return took_ms
    }
    if (server.kind !== 'ours' && server.kind !== 'sshd') continue
    for (const method of server.kind === 'ours' ? [kex, mlkem] : [kex])
      sides[`${server.kind}, our client, ${method}`] = async () => {
        const started = performance.now()
        await logIn(server.port, bench.keys, method)
        return performance.now() - started
      }
  }
  say(`logging in ${count} times`)
  await inTurns(sides, 5)
  for (const kind of bench.kinds) cpu[kind] = []
  const figures = await inTurns(sides, count)
  const p95 = (values: readonly number[]): number => percentile(Float64Array.from(values).toSorted(), 95)
  const rows: Row[] = []
  const row = (what: string, ours: number[], theirs: number[], aim?: number): void => {
    const compared = compare(ours, theirs)
    rows.push(
      line(`${what}, median`, 'ms', compared, aim === undefined ? undefined : atMost(aim, compared.ratio)),
    )
    const [a, b] = [p95(ours), p95(theirs)]
    rows.push({
      what: `${what}, p95`,
      unit: 'ms',
      ours: a,
      reference: b,
      ratio: a / b,
      range: '',
      aim: '',
      verdict: '',
    })
  }
  for (const kind of bench.kinds)
    if (kind !== 'ours')
      row(
        `set-up, ${kex}, against ${kind}`,
        figures.ours!,
        figures[kind]!,
        kind === 'sshd' ? 0.25 : undefined,
      )
  const mean = (values: readonly number[]): number[] => [
    values.reduce((sum, one) => sum + one, 0) / values.length,
  ]
  rows.push(
    ...against(
      'set-up: processor, mean',
      'ms',
      Object.fromEntries(Object.entries(cpu).map(([kind, all]) => [kind, mean(all)])),
    ),
  )
  row(
    'set-up, our client, against sshd',
    figures[`ours, our client, ${kex}`]!,
    figures[`sshd, our client, ${kex}`]!,
  )
  row(
    'set-up, our client, ML-KEM against curve25519',
    figures[`ours, our client, ${mlkem}`]!,
    figures[`ours, our client, ${kex}`]!,
  )
  return rows
}

function open(port: number, { key }: Keys, method: string): Promise<Connection> {
  return connect(net.connect({ port, host: '127.0.0.1' }), {
    user,
    proofs: [{ method: 'publickey', key }],
    checkHostKey: () => true,
    algorithms: { ...clientAlgorithms, kex: [method] },
  })
}

async function logIn(port: number, keys: Keys, method: string): Promise<void> {
  await using connection = await open(port, keys, method)
  const session = await startSession(connection, { program: { type: 'exec', command: 'true' } })
  while (await session.channel.read());
  const exit = await session.exit
  if (exit?.type !== 'exit-status' || exit.status !== 0)
    throw new Error('the server did not say that all is well')
}

/**
 * The server's memory for each idle connection, and then for each with a session, after a collection of
 * garbage.
 */
async function memory(bench: Bench, clients: number): Promise<Row[]> {
  say(`holding ${clients} connections`)
  const idle: Record<string, number[]> = {}
  const live: Record<string, number[]> = {}
  const rounds = 3
  for (let round = 0; round < rounds; round++)
    for (const kind of bench.kinds) {
      const held = await holding(bench, kind, kind === 'sshd' ? Math.min(clients, sshd_clients) : clients)
      const [idles, lives] = [(idle[kind] ??= []), (live[kind] ??= [])]
      idles.push(held.idle_kb)
      lives.push(held.live_kb)
    }
  return [
    ...against(`memory, idle connection at ${clients}`, 'KB', idle, (ours) => below(45, ours, 'KB')),
    ...against(`memory, connection with a session at ${clients}`, 'KB', live),
  ]
}

async function holding(
  bench: Bench,
  kind: Kind,
  count: number,
): Promise<{ idle_kb: number; live_kb: number }> {
  await using server = await startServer(bench, kind)
  const opened: Connection[] = []
  const fill = async (upTo: number): Promise<void> => {
    while (opened.length < upTo)
      opened.push(
        ...(await Promise.all(
          Array.from({ length: Math.min(10, upTo - opened.length) }, () =>
            open(server.port, bench.keys, kex),
          ),
        )),
      )
  }
  const used_kb = async (): Promise<number> => {
    if (kind === 'sshd') return familyMemory_mb(server.pid) * 1024
    // Twice: a second collection frees what a first one releases.
    for (let times = 0; times < 2; times++) {
      const collected = new Promise<void>(
        (resolve) => void server.child.stdout!.once('data', () => resolve()),
      )
      server.child.kill('SIGUSR2')
      await collected
      await wait(200)
    }
    return server.resident_mb() * 1024
  }
  // A few before counting, so that code is compiled; not all, because memory is not always given back.
  await fill(Math.min(count, 50))
  await Promise.all(opened.splice(0).map((connection) => connection.end()))
  if (kind === 'sshd') await childless(server.pid)
  const before = await used_kb()
  await fill(count)
  const idle_kb = ((await used_kb()) - before) / count
  await Promise.all(
    opened.map((connection) =>
      startSession(connection, { program: { type: 'exec', command: kind === 'sshd' ? 'cat' : 'hold' } }),
    ),
  )
  const live_kb = ((await used_kb()) - before) / count
  await Promise.all(opened.map((connection) => connection.end()))
  return { idle_kb, live_kb }
}
