// SQLite through node:sqlite: one file, one writing connection on the main thread, one read-only connection in a
// worker. WAL and synchronous=FULL: what was committed survives kill -9 and power loss. node:sqlite is synchronous, so
// only point queries run here; lists and counts go to the worker (see sqlite-reader.ts). For the same reason SQLite does
// not wait by itself while another process writes: that would stop everything else; waiting is done between tries.
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
import { storable, type Opened } from './dialect.ts'
import { pragmas, statements } from './sqlite-statements.ts'

/** Whoever finds the file locked by another process tries until this long after asking. */
const patience_ms = 10_000
const retry_ms = 10

/** SQLITE_BUSY; the higher bits only say why. */
const isBusy = (error: unknown): boolean => error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5

async function patiently<T>(until: number, work: () => T): Promise<T> {
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() >= until)
        throw new Failure('unavailable', { message: 'The database is held by another program; try again.', retryAfter: 5, cause: error })
      await pause(retry_ms)
    }
  }
}

type Execute = (sql: string, parameters: readonly unknown[], until: number) => Promise<{ rows: unknown[]; changes: number }>

function dialect(execute: Execute, control: { begin(): void; commit(): void; rollback(): void } | null): Dialect {
  // One connection, handed from one user to the next: a transaction holds it from begin to commit, so no other
  // request's statement can slip into it.
  let free: Promise<void> = Promise.resolve()
  let release: () => void = () => undefined
  /** Counted from when its present user asked, not from its turn: those behind one that gave up do not all wait anew. */
  let until = 0
  const connection: DatabaseConnection = {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      const { rows, changes } = await execute(query.sql, storable(query.parameters), until)
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
      // The worker takes one question after the other by itself.
      if (!control) return connection
      const asked = performance.now()
      const before = free
      const mine = Promise.withResolvers<void>()
      free = mine.promise
      await before
      release = mine.resolve
      until = asked + patience_ms
      return connection
    },
    beginTransaction: () => (control ? patiently(until, control.begin) : refuse()),
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

/** Sends queries to the worker and matches its answers to them by number. A worker that died is replaced at the next. */
function readerWorker(file: string): { execute: Execute; close(): Promise<void> } {
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
    worker.on('message', (answer: { id: number; rows?: unknown[]; error?: string }) => {
      const question = waiting.get(answer.id)
      waiting.delete(answer.id)
      if (waiting.size === 0) worker.unref()
      if (answer.error === undefined) question?.resolve(answer.rows ?? [])
      else question?.reject(new Error(answer.error))
    })
    worker.on('error', end)
    worker.on('exit', () => end(new Error('the reading worker ended')))
    return asked
  }

  return {
    async execute(sql, parameters) {
      const { waiting, worker } = (current ??= start())
      const id = ++last
      const question = Promise.withResolvers<unknown[]>()
      waiting.set(id, question)
      // A pending list keeps the process alive until it is answered; an idle worker does not.
      worker.ref()
      worker.postMessage({ id, sql, parameters })
      return { rows: await question.promise, changes: 0 }
    },
    close: async () => void (await current?.worker.terminate()),
  }
}

export async function openSqlite(file: string): Promise<Opened> {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: true })
  // Of two that open a new file, one makes it a WAL file, and SQLite does not let the other wait for that.
  await patiently(performance.now() + patience_ms, () =>
    database.exec(`pragma journal_mode = wal; pragma synchronous = full; ${pragmas} pragma busy_timeout = 0;`),
  )
  const prepared = statements(database)
  const db = new Kysely<Tables>({
    dialect: dialect((sql, parameters, until) => patiently(until, () => prepared.run(sql, parameters)), {
      begin: () => database.exec('begin immediate'),
      commit: () => database.exec('commit'),
      // A full disk, for one, has SQLite roll back by itself; then its error is the one to tell.
      rollback: () => (database.isTransaction ? database.exec('rollback') : undefined),
    }),
  })
  const worker = readerWorker(file)
  const reader = new Kysely<Tables>({ dialect: dialect(worker.execute, null) })
  return {
    name: 'sqlite',
    db,
    reader,
    // `begin immediate` of the migration itself is the lock: another process waits for it.
    exclusively: (work) => work(),
    // Whoever wants to write waits for its turn at `begin`, so nobody meets anybody later.
    again: (transaction) => transaction(),
    isDuplicate: (error) => error instanceof Error && 'errcode' in error && (error.errcode === 2067 || error.errcode === 1555),
    async [Symbol.asyncDispose]() {
      await worker.close()
      await reader.destroy()
      await db.destroy()
      try {
        database.exec('pragma optimize')
      } catch (error) {
        // Another process is writing: it will do the same when it ends.
        if (!isBusy(error)) throw error
      }
      database.close()
    },
  }
}
