// Programs under measurement run as processes of their own, as they do in earnest: started on a free port, awaited
// until healthy, asked for the memory and processor time they took (from /proc, so Linux only), stopped at the end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { openLoad, requestBytes } from './load.ts'

export interface Program extends AsyncDisposable {
  readonly port: number
  /** From the start of the process to the first good answer of /healthcheck. */
  readonly healthy_ms: number
  /** Resident memory at this moment. */
  resident_mb(): number
  /** Processor time of all its threads so far, in hundredths of a second at best. */
  cpu_s(): number
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Writes CPU profiles of its threads into this folder when it ends. */
  readonly profiles?: string | undefined
}

const root = path.join(import.meta.dirname, '..')
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

/** Our server on this data folder, without the limits that would be what we measure. */
export async function startHawser(folder: string, options: ProgramOptions = {}): Promise<Program> {
  const port = await freePort()
  return start(['hawser.ts', 'serve'], port, {
    ...options,
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

async function start(args: readonly string[], port: number, { env = {}, profiles }: ProgramOptions): Promise<Program> {
  const { PATH, HOME, TMPDIR, TZ } = process.env
  const inherited = Object.fromEntries(Object.entries({ PATH, HOME, TMPDIR, TZ }).filter(([, value]) => value !== undefined))
  const flags = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]
  const started = performance.now()
  const child = spawn(process.execPath, [...flags, ...args], {
    cwd: root,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (said = (said + chunk).slice(-4000)))
  // Whatever ends the bench, nothing it started is left behind; first, because what it writes to may be removed then.
  const kill = (): void => void child.kill('SIGKILL')
  process.prependOnceListener('exit', kill)
  const ended = once(child, 'exit').finally(() => process.off('exit', kill))
  const { pid } = child
  if (pid === undefined) throw new Error(`${args.join(' ')} could not be started`)

  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    const giveUp = setTimeout(() => child.kill('SIGKILL'), longest_stop_ms)
    await ended
    clearTimeout(giveUp)
  }

  while (!(await healthy(port))) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${args.join(' ')} ended: ${said}`)
    if (performance.now() - started > longest_start_ms) {
      await stop()
      throw new Error(`${args.join(' ')} did not become healthy: ${said}`)
    }
    await wait(poll_every_ms)
  }
  return {
    port,
    healthy_ms: performance.now() - started,
    resident_mb: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    cpu_s() {
      // Behind the name in parentheses: utime and stime are the 12th and 13th fields.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) / ticks_per_second
    },
    [Symbol.asyncDispose]: stop,
  }
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
