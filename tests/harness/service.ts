// A whole server for a test: fresh storage, a free port, a clock that the test moves, a typed client for each
// person. `await using service = await startService()`; disposal stops it and removes its folder.
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Writable } from 'node:stream'
import PostalMime, { type Email } from 'postal-mime'
import { client, type Client, type ClientOptions } from '@hawser/contract/client'
import { consoleFolder } from '../../packages/served.ts'
import { readConfig } from '../../server/src/config.ts'
import type { Clock } from '../../server/src/kit/clock.ts'
import { openLog } from '../../server/src/kit/log.ts'
import { startServer } from '../../server/src/compose/server.ts'

/** Made once for the run; see global-setup.ts. */
const builtConsole = consoleFolder()

export interface Service extends AsyncDisposable {
  readonly url: string
  /** Where it listens with TLS, on 127.0.0.1; undefined without. */
  readonly tlsPort: number | undefined
  /** Where the gateway listens, on 127.0.0.1. */
  readonly sshPort: number
  readonly folder: string
  readonly rooms: Awaited<ReturnType<typeof startServer>>['rooms']
  readonly reach: Awaited<ReturnType<typeof startServer>>['reach']
  /** `METHOD /path` of every route. */
  readonly served: readonly string[]
  readonly clock: TestClock
  /** What was logged so far, one object a line. */
  log(): string
  api(options?: Omit<ClientOptions, 'url'>): Client
  /** The newest e-mail to this address; waits until there is one more than `after`. */
  newestEmail(to: string, after?: number): Promise<Email>
  emails(): Promise<Email[]>
}

export interface TestClock extends Clock {
  /** Moves the server's time forward. */
  forward(ms: number): void
  /** Stops the server's time until disposal. */
  stop(): Disposable
}

export interface ServiceOptions {
  /** Settings beside the ones every test service has. */
  env?: Record<string, string>
  /** Use this PostgreSQL database instead of a fresh SQLite file. */
  database?: string
  /** Start on this folder, as it is, and leave it there at the end. */
  folder?: string
  /** The folder of the agents that it offers to devices; it has none without. */
  agents?: string
}

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for what the tests of a run share. */
    shared: string
  }
}

/**
 * Where services of tests keep their files: in memory, if the machine has room there, because what most of
 * them wait for otherwise is the disk. What must survive a crash is tested on a disk, with the real program
 * (tests/failures).
 */
function spacious(): string {
  const [memory, enough_bytes] = ['/dev/shm', 4 * 1024 ** 3]
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= enough_bytes ? memory : os.tmpdir()
  } catch {
    return os.tmpdir()
  }
}

/**
 * A folder as a first start leaves it, to be copied: the tables, and keys that take longer to make than most
 * tests. All services of a run that keep their data in a file have these keys; one that needs its own starts
 * on a folder of the test.
 */
async function begun(): Promise<string> {
  // Not at the top: vitest can be imported in a test only.
  const { inject } = await import('vitest')
  const ready = path.join(inject('shared'), 'begun')
  if (existsSync(ready)) return ready
  const folder = mkdtempSync(path.join(inject('shared'), 'making-'))
  {
    await using service = await startService({ folder })
    await service.rooms.background.settled()
  }
  try {
    renameSync(folder, ready)
  } catch (error) {
    // Another test file was quicker.
    if (!existsSync(ready)) throw error
  }
  return ready
}

export async function startService({
  env = {},
  database = '',
  folder,
  agents,
}: ServiceOptions = {}): Promise<Service> {
  const data = folder ?? mkdtempSync(path.join(spacious(), 'hawser-test-'))
  if (folder === undefined && database === '') cpSync(await begun(), data, { recursive: true })
  const config = readConfig({
    HAWSER_HTTP: '127.0.0.1:0',
    HAWSER_SSH: '127.0.0.1:0',
    HAWSER_HTTPS: '127.0.0.1:0',
    HAWSER_SSH_PUBLIC_PORT: '2222',
    HAWSER_DRAIN: '0',
    HAWSER_DATA: data,
    HAWSER_DATABASE: database,
    HAWSER_LOG: 'debug',
    HAWSER_DISK_RESERVE: '1',
    HAWSER_RATE_LIMIT: '0/10',
    HAWSER_SSH_RATE_LIMIT: '0/10',
    HAWSER_DEVICE_RATE_LIMIT: '0/10',
    HAWSER_URL: 'http://hawser.test',
    ...env,
  })
  const lines: string[] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  let ahead = 0
  let stopped_at: number | undefined
  const clock: TestClock = {
    now: () => (stopped_at ?? Date.now()) + ahead,
    forward: (ms) => void (ahead += ms),
    stop() {
      stopped_at = Date.now()
      return { [Symbol.dispose]: () => void (stopped_at = undefined) }
    },
  }
  const log = openLog(config.HAWSER_LOG, sink)
  const server = await startServer({ config, log, clock, console: builtConsole, agents })
  const url = `http://127.0.0.1:${server.port}`
  const outbox = path.join(data, 'outbox')

  async function emails(): Promise<Email[]> {
    await server.rooms.background.settled()
    let files: string[] = []
    try {
      files = readdirSync(outbox)
        .filter((file) => file.endsWith('.eml'))
        .toSorted()
    } catch {
      // No e-mail was written yet, so there is no folder either.
    }
    return Promise.all(files.map((file) => PostalMime.parse(readFileSync(path.join(outbox, file)))))
  }

  return {
    url,
    tlsPort: server.tlsPort,
    sshPort: server.reach.port,
    folder: data,
    rooms: server.rooms,
    reach: server.reach,
    served: server.served,
    clock,
    log: () => lines.join(''),
    api: (options = {}) => client({ url, ...options }),
    emails,
    async newestEmail(to, after = 0) {
      const found = (await emails()).filter((email) => email.to?.some((address) => address.address === to))
      const newest = found.at(-1)
      if (found.length <= after || !newest)
        throw new Error(`no e-mail to ${to} after the first ${after}; there are ${found.length}`)
      return newest
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      if (folder === undefined) rmSync(data, { recursive: true, force: true })
    },
  }
}
