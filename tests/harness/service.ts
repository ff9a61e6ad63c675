// A whole server for a test: fresh storage, a free port, a clock that the test moves, a typed client for each
// person. `await using service = await startService()`; disposal stops it and removes its folder.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import PostalMime, { type Email } from 'postal-mime'
import { client, type Client, type ClientOptions } from '@hawser/contract/client'
import { consoleFolder } from '../../packages/served.ts'
import { readConfig } from '../../server/src/config.ts'
import type { Clock } from '../../server/src/kit/clock.ts'
import { openLog } from '../../server/src/kit/log.ts'
import { startServer } from '../../server/src/compose/server.ts'
import { startMailServer } from './mail-server.ts'
import { copyOf, migratedDatabase } from './postgres.ts'
import { madeOnce, spacious } from './shared.ts'

/** Made once for the run; see global-setup.ts. */
const builtConsole = consoleFolder()

export interface Service extends AsyncDisposable {
  readonly url: string
  /** On 127.0.0.1; undefined: without TLS. */
  readonly tlsPort: number | undefined
  /** On 127.0.0.1. */
  readonly sshPort: number
  readonly folder: string
  readonly rooms: Awaited<ReturnType<typeof startServer>>['rooms']
  readonly reach: Awaited<ReturnType<typeof startServer>>['reach']
  /** `METHOD /path` of every route. */
  readonly served: readonly string[]
  readonly clock: TestClock
  /** The log so far, one object a line. */
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
  /** In addition to those of every test service. */
  env?: Record<string, string>
  /** A PostgreSQL database; else a fresh SQLite file. */
  database?: string
  /** Start on this folder, and leave it there at the end. */
  folder?: string
  /** The agents for devices; absent: none. */
  agents?: string
  /** Sends e-mails through a mail server; without, they are stored in its outbox. */
  mailServer?: boolean
}

/**
 * A folder after a first start, to be copied: the tables, and keys that take longer to make than most tests.
 * All services of a run with a SQLite file share these keys; one that needs its own starts on a folder of the
 * test.
 */
const begun = (): Promise<string> =>
  madeOnce('begun', async (folder) => {
    await using service = await startService({ folder })
    await service.rooms.background.settled()
  })

/** Seals secrets of the services of a run in PostgreSQL, so that they can share a template. */
const masterKey = 'b0'.repeat(32)

/** `begun` for PostgreSQL: the url of a copy of the database after a first start. */
export async function begunDatabase(): Promise<string> {
  const ready = await madeOnce('begun-postgres', async (folder) => {
    const database = await migratedDatabase()
    {
      await using service = await startService({ folder, database })
      await service.rooms.background.settled()
    }
    writeFileSync(path.join(folder, 'url'), database)
  })
  return copyOf(readFileSync(path.join(ready, 'url'), 'utf8'))
}

export async function startService({
  env = {},
  database = '',
  folder,
  agents,
  mailServer = false,
}: ServiceOptions = {}): Promise<Service> {
  const mail = mailServer ? await startMailServer() : undefined
  const data = folder ?? mkdtempSync(path.join(spacious(), 'hawser-test-'))
  if (folder === undefined && database === '') cpSync(await begun(), data, { recursive: true })
  const keyFile = path.join(data, 'master.key')
  if (database !== '' && !existsSync(keyFile)) writeFileSync(keyFile, masterKey, { mode: 0o600 })
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
    HAWSER_SMTP: mail?.url ?? '',
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
    const stored = files.map((file) => readFileSync(path.join(outbox, file)))
    return Promise.all([...(mail?.taken ?? []), ...stored].map((email) => PostalMime.parse(email)))
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
      await mail?.[Symbol.asyncDispose]()
      if (folder === undefined) rmSync(data, { recursive: true, force: true })
    },
  }
}
