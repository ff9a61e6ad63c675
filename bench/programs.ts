// Programs under measurement run as processes of their own, as they do in earnest: started on a free port,
// awaited until healthy, asked for the memory and processor time they took (from /proc, so Linux only),
// stopped at the end.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ensureConsole } from '../packages/console.ts'
import { openLoad, requestBytes } from './load.ts'

export interface Running extends AsyncDisposable {
  readonly pid: number
  readonly child: ChildProcess
  /** Now. */
  resident_mb(): number
  /** The processor time of all threads so far, in hundredths of a second at best. */
  cpu_s(): number
  /** With all child processes. */
  family_cpu_s(): number
  /** Waits for the pattern in the output; returns its group. Rejects when the process ends without it. */
  printed(pattern: RegExp): Promise<string>
}

export interface Program extends Running {
  readonly port: number
  /** From the start of the process to the first good answer of /healthcheck. */
  readonly healthy_ms: number
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>
  /** A folder for CPU profiles of the threads. */
  readonly profiles?: string | undefined
  /** A free one unless stated. */
  readonly port?: number
  /** Additional flags of Node. */
  readonly flags?: readonly string[]
}

export const root = path.join(import.meta.dirname, '..')
const longest_start_ms = 120_000
const longest_stop_ms = 60_000
const poll_every_ms = 4
const ticks_per_second = 100

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** On this data folder, without the limits that would be what is measured. */
export async function startHawser(folder: string, options: ProgramOptions = {}): Promise<Program> {
  await ensureConsole()
  const port = options.port ?? (await freePort())
  return start(['hawser.ts', 'serve'], port, {
    ...options,
    // As run.mjs starts it.
    flags: ['--single-threaded-gc', ...(options.flags ?? [])],
    env: {
      HAWSER_DATA: folder,
      HAWSER_HTTP: `127.0.0.1:${port}`,
      HAWSER_SSH: `127.0.0.1:${await freePort()}`,
      HAWSER_RATE_LIMIT: '0/10',
      HAWSER_DEVICE_RATE_LIMIT: '0/10',
      HAWSER_LOG: 'warn',
      ...options.env,
    },
  })
}

export async function startBare(file: string, options: ProgramOptions = {}): Promise<Program> {
  const port = await freePort()
  return start(['bench/bare.ts', file, String(port)], port, options)
}

async function start(args: readonly string[], port: number, options: ProgramOptions): Promise<Program> {
  const started = performance.now()
  const running = startProcess(
    [process.execPath, ...profiling(options.profiles), ...(options.flags ?? []), ...args],
    options.env,
  )
  const { child } = running
  while (!(await healthy(port))) {
    const late = performance.now() - started > longest_start_ms
    if (late || child.exitCode !== null || child.signalCode !== null) {
      await running[Symbol.asyncDispose]()
      throw new Error(
        `${args.join(' ')} ${late ? 'did not become healthy' : 'ended'}: ${await running.printed(/([^]*)/)}`,
      )
    }
    await wait(poll_every_ms)
  }
  return { ...running, port, healthy_ms: performance.now() - started }
}

export function profiling(folder: string | undefined): string[] {
  return folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`]
}

export interface ProcessOptions {
  /** For a helper that takes orders; see `ask`. */
  readonly ipc?: boolean
}

/** In our folder, with a minimal environment; ends with the bench at the latest. */
export function startProcess(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { ipc = false }: ProcessOptions = {},
): Running {
  const { PATH, HOME, TMPDIR, TZ } = process.env
  const inherited = Object.fromEntries(
    Object.entries({ PATH, HOME, TMPDIR, TZ }).filter(([, value]) => value !== undefined),
  )
  const child = spawn(program, args, {
    cwd: root,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(ipc ? (['ipc'] as const) : [])],
  })
  let said = ''
  const looking = new Set<() => void>()
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-4000)
      for (const look of looking) look()
    })
  // Children end with the bench, however it ends; first, because their files may be removed then.
  const kill = (): void => void child.kill('SIGKILL')
  process.prependOnceListener('exit', kill)
  const ended = once(child, 'exit').finally(() => process.off('exit', kill))
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} could not be started`)
  ended.catch(() => undefined)

  return {
    pid,
    child,
    resident_mb: () => residentOf(pid),
    cpu_s: () => cpuOf(pid),
    family_cpu_s: () => familyCpuOf(pid),
    printed(pattern) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const look = (): void => {
        const found = pattern.exec(said)?.[1]
        if (found === undefined) return
        looking.delete(look)
        resolve(found)
      }
      looking.add(look)
      look()
      const tooLate = (): void => reject(new Error(`${[program, ...args].join(' ')} ended: ${said}`))
      ended.then(tooLate, tooLate)
      return promise
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      const giveUp = setTimeout(() => child.kill('SIGKILL'), longest_stop_ms)
      await ended
      clearTimeout(giveUp)
    },
  }
}

/** Gives a helper an order and waits for its answer; one at a time. */
export async function ask<T>({ child }: Running, order: object): Promise<T> {
  child.send(order)
  const gone = new AbortController()
  const { signal } = gone
  try {
    const [answer] = (await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }),
    ])) as [unknown]
    if (typeof answer !== 'object' || answer === null) throw new Error('a helper of the bench ended')
    if ('failed' in answer) throw new Error(`a helper of the bench failed: ${String(answer.failed)}`)
    return answer as T
  } finally {
    gone.abort()
  }
}

/** The other end of `ask`. */
export function takeOrders(carryOut: (order: never) => Promise<object>): void {
  process.on('message', (order) => {
    carryOut(order as never).then(
      (answer) => process.send!(answer),
      (error: unknown) => process.send!({ failed: error instanceof Error ? error.stack : String(error) }),
    )
  })
  // The bench is gone.
  process.once('disconnect', () => process.exit(0))
}

function residentOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/**
 * Behind the name in parentheses: utime and stime are the 12th and 13th fields, those of ended children
 * follow.
 */
function times(pid: number): number[] {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return fields.slice(11, 15).map((ticks) => Number(ticks) / ticks_per_second)
}

function cpuOf(pid: number): number {
  const [user = 0, system = 0] = times(pid)
  return user + system
}

function familyCpuOf(pid: number): number {
  try {
    const own = times(pid).reduce((sum, seconds) => sum + seconds, 0)
    return childrenOf(pid).reduce((sum, child) => sum + familyCpuOf(child), own)
  } catch {
    // The process has just ended: its parent has its times, now or in a moment.
    return 0
  }
}

/** Counts reads and writes of files and sockets, by all threads so far. */
export function readsAndWritesOf(pid: number): { reads: number; writes: number } {
  const text = readFileSync(`/proc/${pid}/io`, 'utf8')
  const field = (name: string): number => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)?.[1])
  return { reads: field('syscr'), writes: field('syscw') }
}

export function childrenOf(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return listed === '' ? [] : listed.split(' ').map(Number)
}

async function healthy(port: number): Promise<boolean> {
  try {
    using load = await openLoad(port, 1)
    await load.call(requestBytes('GET', '/healthcheck'))
    return true
  } catch {
    // Not listening yet, or not ready: ask again.
    return false
  }
}
