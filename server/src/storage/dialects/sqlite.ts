// SQLite through node:sqlite: one writing connection on the main thread, one read-only connection in a
// worker. WAL and synchronous=FULL: what was committed survives kill -9 and power loss. node:sqlite is
// synchronous, so only point queries run here, lists and counts go to the worker, and SQLite's own busy wait
// is off: waiting is done between tries.
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Failure } from '@hawser/contract/failures'
import {
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'
import type { Tables } from '../tables.ts'
import type { DurationHistogram } from '../../kit/counter.ts'
import { statementDurations, storable, type Opened } from './dialect.ts'
import { pragmas, statements } from './sqlite-statements.ts'

/** How long others wait while another process holds the file. */
const patience_ms = 10_000
const retry_ms = 10
/** Two lock errors that are further apart belong to two locks. */
const gap_ms = 1000

/** The lower bits are the primary result code. */
const isCode = (error: unknown, code: number): boolean =>
  error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === code
const isBusy = (error: unknown): boolean => isCode(error, 5)

const isFull = (error: unknown): boolean => isCode(error, 13)

/** A full disk is no mistake in a request and passes, so it fails as an unreachable PostgreSQL does. */
const full = (cause: unknown): Failure =>
  new Failure('unavailable', { message: 'The disk of the server is full.', retryAfter: 60, cause })

type Mended = WeakSet<Failure>

type Patiently = <T>(work: () => T) => Promise<T>

/** A shared wait: when one has waited in vain, those behind it do not each wait as long again. */
function patience(
  database: DatabaseSync,
  { onFull, mended }: { onFull: () => boolean; mended: Mended },
  durations: DurationHistogram,
): Patiently {
  let since = 0
  let seen = -Infinity
  return async (work) => {
    const started = performance.now()
    for (let tries = 1; ; tries++) {
      const inTransaction = database.isTransaction
      try {
        const value = work()
        if (tries > 1) seen = -Infinity
        durations.add(performance.now() - started)
        return value
      } catch (error) {
        if (isFull(error)) {
          const hasRoom = onFull()
          if (hasRoom && !inTransaction) continue
          const failure = full(error)
          if (hasRoom) mended.add(failure)
          throw failure
        }
        if (!isBusy(error)) throw error
        const now = performance.now()
        if (now - seen > gap_ms) since = now
        seen = now
        if (now - since >= patience_ms) {
          durations.add(now - started)
          throw new Failure('unavailable', {
            message: 'The database is held by another program; try again.',
            retryAfter: 5,
            cause: error,
          })
        }
        await pause(retry_ms)
      }
    }
  }
}

type Execute = (sql: string, parameters: readonly unknown[]) => Promise<{ rows: unknown[]; changes: number }>

function dialect(
  execute: Execute,
  control: { begin(): Promise<void>; commit(): Promise<void>; rollback(): void } | null,
  onWait: (change: 1 | -1) => void = () => undefined,
): Dialect {
  // A transaction holds the connection from begin to commit, so that no other request's statement slips into
  // it.
  let free: Promise<void> = Promise.resolve()
  let release: () => void = () => undefined
  const connection: DatabaseConnection = {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      const { rows, changes } = await execute(query.sql, storable(query.parameters))
      return { rows: rows as R[], numAffectedRows: BigInt(changes) }
    },
    streamQuery() {
      throw new Error('streaming is not used: lists come in pages')
    },
  }
  const refuse = (): never => {
    throw new Error('the reading connection takes no transactions')
  }
  const driver: Driver = {
    init: async () => undefined,
    async acquireConnection() {
      if (!control) return connection
      const before = free
      const mine = Promise.withResolvers<void>()
      free = mine.promise
      onWait(1)
      await before
      onWait(-1)
      release = mine.resolve
      return connection
    },
    beginTransaction: async () => (control ? control.begin() : refuse()),
    commitTransaction: async () => (control ? control.commit() : refuse()),
    rollbackTransaction: async () => (control ? control.rollback() : refuse()),
    releaseConnection: async () => release(),
    destroy: async () => undefined,
  }
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** Sends queries to the worker and matches answers by number; a dead worker is replaced at the next query. */
function readerWorker(
  file: string,
  durations: DurationHistogram,
): { execute: Execute; waiting(): number; close(): Promise<void> } {
  interface Asked {
    readonly waiting: Map<number, PromiseWithResolvers<unknown[]>>
    readonly worker: Worker
  }
  let current: Asked | undefined
  let last = 0

  function start(): Asked {
    const worker = new Worker(new URL('./sqlite-reader.ts', import.meta.url), {
      workerData: { file },
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    })
    const waiting: Asked['waiting'] = new Map()
    const asked = { waiting, worker }
    const end = (error: Error): void => {
      if (current === asked) current = undefined
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }
    worker.on('message', (answer: { id: number; rows?: unknown[]; error?: string; errcode?: unknown }) => {
      const question = waiting.get(answer.id)
      waiting.delete(answer.id)
      if (waiting.size === 0) worker.unref()
      if (answer.error === undefined) question?.resolve(answer.rows ?? [])
      else question?.reject(Object.assign(new Error(answer.error), { errcode: answer.errcode }))
    })
    worker.on('error', end)
    worker.on('exit', () => end(new Error('the reading worker ended')))
    return asked
  }

  return {
    async execute(sql, parameters) {
      const { waiting, worker } = (current ??= start())
      const id = ++last
      const started = performance.now()
      const question = Promise.withResolvers<unknown[]>()
      waiting.set(id, question)
      // A pending list keeps the process alive; an idle worker does not.
      worker.ref()
      worker.postMessage({ id, sql, parameters })
      const rows = await question.promise.finally(() => durations.add(performance.now() - started))
      return { rows, changes: 0 }
    },
    waiting: () => current?.waiting.size ?? 0,
    close: async () => void (await current?.worker.terminate()),
  }
}

/** `onFull`: called when the disk is full; true if it has made room and a retry is worthwhile. */
export async function openSqlite(file: string, onFull: () => boolean = () => false): Promise<Opened> {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: true })
  // Two processes opening a new file would both switch it to WAL, for which SQLite does not wait.
  const [point, list] = [statementDurations(), statementDurations()]
  const mended: Mended = new WeakSet()
  const patiently = patience(database, { onFull, mended }, point)
  await patiently(() =>
    database.exec(
      `pragma journal_mode = wal; pragma synchronous = full; ${pragmas} pragma busy_timeout = 0;`,
    ),
  )
  const prepared = statements(database)
  let waiting = 0
  const db = new Kysely<Tables>({
    dialect: dialect(
      (sql, parameters) => patiently(() => prepared.run(sql, parameters)),
      {
        begin: () => patiently(() => database.exec('begin immediate')),
        commit: () => patiently(() => database.exec('commit')),
        // SQLite rolls back by itself on some errors, such as a full disk; the original error is then
        // reported.
        rollback: () => (database.isTransaction ? database.exec('rollback') : undefined),
      },
      (change) => void (waiting += change),
    ),
  })
  const worker = readerWorker(file, list)
  const reader = new Kysely<Tables>({ dialect: dialect(worker.execute, null) })
  return {
    name: 'sqlite',
    figures: {
      point: { durations: point, waiting: () => waiting },
      list: { durations: list, waiting: worker.waiting },
    },
    db,
    reader,
    // The migration's `begin immediate` is the lock.
    exclusively: (work) => work(),
    // Writers queue at `begin` and cannot conflict later; only a full disk that has room again justifies a
    // retry.
    again: (transaction) =>
      transaction().catch((error: unknown) => {
        if (error instanceof Failure && mended.has(error)) return transaction()
        throw error
      }),
    isDuplicate: (error) =>
      error instanceof Error && 'errcode' in error && (error.errcode === 2067 || error.errcode === 1555),
    async [Symbol.asyncDispose]() {
      await worker.close()
      await reader.destroy()
      await db.destroy()
      try {
        database.exec('pragma optimize')
      } catch (error) {
        if (!isBusy(error)) throw error
      }
      database.close()
    },
  }
}
