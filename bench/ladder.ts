// The cost of each layer of the gateway for a byte. A relay is built up one layer at a time. Each rung
// of this ladder moves the same bytes through its own layer and those of the rungs before it:
//   tcp         from one socket to another              websocket   the device's side is a WebSocket
//   yamux       … a stream of yamux on it               leg         … with SSH in it; the client's side is plain
//   legs        the client's side is SSH, too, and loops of read() and write() pass the bytes on
//   pipe        `pipe` passes them on                   taps        … watched as the gateway watches a session
//   recording   … and recorded: only output (down) is
// With "two" processes the relay counts alone, and both ends are in the other process. With "one" process all
// of them are in it, and count. For comparison, OpenSSH's client connects straight to an sshd. The processes of
// sshd count, the program that they run does not. The cipher is AES-128-GCM everywhere.
// All figures but the last are per MiB: processor time, memory allocated in KiB, system calls. They are
// medians over the rounds, but for "least": other work on the machine adds to processor time, so the least of
// all rounds is nearest to what a rung costs. "More" is that beyond the least of the rung before; where it is
// below zero, it is noise. "Calls" are all system calls, counted by `perf` in a short round of its own, where
// `perf` may do so. bench/ladder-part.ts says how the rest is counted, and what is an approximation. Words
// choose a part, in any order:
//   npm run bench -- ladder tcp legs pipe …      rungs, all unless stated
//   … down up one two                            ways and forms, all unless stated
//   … size=32 rounds=15                          MiB of a transfer, turns
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { compare, inTurns, median, table, type Row } from './kit.ts'
import type { Costs, LadderOrder } from './ladder-part.ts'
import { cipher, rungs, type RelayPorts, type Rung } from './ladder-relay.ts'
import { makeKey, openMaster, plainLogin, startSshd, user, zeros } from './openssh.ts'
import { ask, childrenOf, readsAndWritesOf, startProcess, type Running } from './programs.ts'

const ways = ['down', 'up'] as const
const forms = ['two', 'one'] as const
type Way = (typeof ways)[number]
type Form = (typeof forms)[number]
const mib = 1024 * 1024
const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** A path for bytes, and its measured processes. */
interface Path {
  readonly name: string
  readonly form: Form | undefined
  readonly pids: readonly number[]
  move(way: Way, mibs: number): Promise<void>
  begin(): Promise<void>
  count(): Promise<Partial<Costs> & Pick<Costs, 'cpu_ms'>>
}

export default async function ladder(...words: string[]): Promise<void> {
  const number = (name: string, usual: number): number => {
    const given = words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
    return Math.max(1, Number(given ?? usual) || usual)
  }
  const named = words.filter((word) => !word.includes('='))
  const known: readonly string[] = [...rungs, ...ways, ...forms]
  const unknown = named.find((word) => !known.includes(word))
  if (unknown !== undefined) throw new Error(`ladder: "${unknown}" is not a part (${known.join(', ')})`)
  const chosen = <T extends string>(all: readonly T[]): readonly T[] =>
    all.some((one) => named.includes(one)) ? all.filter((one) => named.includes(one)) : all

  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  // Every started process listens for the end of this one.
  process.setMaxListeners(100)
  await using cleanUp = new AsyncDisposableStack()
  const paths = [await sshdPath(folder, cleanUp)]
  const ends = cleanUp.use(startPart())
  for (const form of chosen(forms))
    for (const rung of chosen(rungs))
      paths.push(await rungPath(folder, rung, form === 'two' ? ends : undefined, cleanUp))
  table(await measured(paths, chosen(ways), number('size', 32), number('rounds', 15)))
}

/** With the flag of our server; see run.mjs. */
function startPart(): Running {
  return startProcess([process.execPath, '--single-threaded-gc', 'bench/ladder-part.ts'], {}, { ipc: true })
}

/** The ends are in the process given, or in that of the relay. */
export async function rungPath(
  folder: string,
  rung: Rung,
  apart: Running | undefined,
  cleanUp: AsyncDisposableStack,
): Promise<Path> {
  const relay = cleanUp.use(startPart())
  const ends = apart ?? relay
  const form = apart ? 'two' : 'one'
  const order = <T>(part: Running, given: LadderOrder): Promise<T> => ask<T>(part, given)
  const ports = await order<RelayPorts>(relay, { do: 'relay', rung, folder: path.join(folder, form) })
  await order(ends, { do: 'ends', rung, ports })
  return {
    name: rung,
    form,
    pids: [relay.pid],
    move: (way, mibs) => order(ends, { do: 'move', rung, way, mibs }),
    begin: () => order(relay, { do: 'begin' }),
    count: () => order<Costs>(relay, { do: 'count' }),
  }
}

/** Over one connection, so that its processes are the same before and after; programs come and go. */
async function sshdPath(folder: string, cleanUp: AsyncDisposableStack): Promise<Path> {
  const keys = makeKey(folder, 'client_key')
  const sshd = cleanUp.use(await startSshd(folder, plainLogin(folder), keys))
  const master = cleanUp.use(await openMaster(folder, { ...sshd, user, keys }, cipher))
  // With the first program, the process that has checked the key is gone.
  await master.run('true')
  const pids = family(sshd.pid)
  const used = () => {
    const all = pids.map((pid) => ({ cpu_ms: cpuOf_ms(pid), ...readsAndWritesOf(pid) }))
    const sum = (field: 'cpu_ms' | 'reads' | 'writes'): number => all.reduce((to, one) => to + one[field], 0)
    return { cpu_ms: sum('cpu_ms'), reads: sum('reads'), writes: sum('writes') }
  }
  let before = used()
  return {
    name: 'sshd',
    form: undefined,
    pids,
    async move(way, mibs) {
      if (way === 'down') await master.run(`head -c ${mibs * mib} /dev/zero`)
      else await master.run('cat > /dev/null', zeros(folder, mibs * mib))
    },
    async begin() {
      before = used()
    },
    async count() {
      const now = used()
      return {
        cpu_ms: now.cpu_ms - before.cpu_ms,
        reads: now.reads - before.reads,
        writes: now.writes - before.writes,
      }
    },
  }
}

const family = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(family)]

/** The processor time of a process with one thread, to the nanosecond. */
function cpuOf_ms(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

async function measured(
  paths: readonly Path[],
  chosen: readonly Way[],
  size: number,
  rounds: number,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const way of chosen) {
    const costs = paths.map((): Awaited<ReturnType<Path['count']>>[] => [])
    const side = (at: number, one: Path) => async (): Promise<number> => {
      await one.begin()
      await one.move(way, size)
      const counted = await one.count()
      costs[at]?.push(counted)
      return counted.cpu_ms / size
    }
    const sides = Object.fromEntries(paths.map((one, at) => [`${one.name} ${one.form}`, side(at, one)]))
    say(`moving ${size} MiB ${way}`)
    // Two rounds without counting, so that code is compiled.
    await inTurns(sides, 2)
    for (const one of costs) one.length = 0
    const figures = Object.values(await inTurns(sides, rounds))
    for (const [at, one] of paths.entries()) {
      const own = figures[at] ?? []
      const before = paths[at - 1]?.form === one.form ? figures[at - 1] : undefined
      const per = (field: keyof Costs, unit: number): number | '' => {
        const values = (costs[at] ?? []).flatMap((cost) => cost[field] ?? [])
        return values.length === 0 ? '' : median(values) / unit
      }
      rows.push({
        processes: one.form ?? '',
        way,
        rung: one.name,
        ms: median(own),
        least: Math.min(...own),
        more: before ? Math.min(...own) - Math.min(...before) : '',
        ': sshd': compare(own, figures[0] ?? []).ratio,
        'heap KiB': per('heap_bytes', size * 1024),
        'buffers KiB': per('external_bytes', size * 1024),
        reads: per('reads', size),
        writes: per('writes', size),
        calls: await systemCalls(one, way, Math.ceil(size / 2)),
        'delay p99 ms': per('delay_p99_ms', 1),
      })
    }
  }
  return rows
}

/** Counts all system calls, per MiB; empty where `perf` may not count them. */
async function systemCalls(one: Path, way: Way, mibs: number): Promise<number | ''> {
  const settings = ['stat', '-x', ',', '-I', '100', '-e', 'raw_syscalls:sys_enter']
  if (spawnSync('perf', [...settings, 'true']).status !== 0) return ''
  await using perf = startProcess(['perf', ...settings, '-p', one.pids.join(',')])
  // perf prints its counts every tenth of a second. The first line shows that it has begun.
  await perf.printed(/(raw_syscalls)/)
  await one.move(way, mibs)
  perf.child.kill('SIGINT')
  await once(perf.child, 'close')
  const counts = (await perf.printed(/([^]*)/)).split('\n').map((line) => Number(line.split(',')[1]) || 0)
  return counts.reduce((sum, count) => sum + count, 0) / mibs
}
