// SQLite through node:sqlite: one file, one writing connection on the main thread, one read-only connection in a
// worker. WAL and synchronous=FULL: what was committed survives kill -9 and power loss. node:sqlite is synchronous, so
// only point queries run here; lists and counts go to the worker (see sqlite-reader.ts).
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
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
import type { Opened } from './dialect.ts'

export interface Statements {
  run(sql: string, parameters: readonly unknown[]): { rows: unknown[]; changes: number }
}

/** How many prepared statements are kept; lists with filters make many shapes, the hot ones stay. */
const cached_statements = 500

/** Prepared statements by their text. Kysely builds the same text for the same query, so almost every call is a hit. */
export function statements(database: DatabaseSync): Statements {
  const cache = new Map<string, { statement: StatementSync; reads: boolean }>()
  return {
    run(sql, parameters) {
      let entry = cache.get(sql)
      if (!entry) {
        const statement = database.prepare(sql)
        entry = { statement, reads: statement.columns().length > 0 }
        if (cache.size >= cached_statements) cache.delete(cache.keys().next().value!)
        cache.set(sql, entry)
      }
      const values = parameters as SQLInputValue[]
      if (entry.reads) return { rows: entry.statement.all(...values), changes: 0 }
      return { rows: [], changes: Number(entry.statement.run(...values).changes) }
    },
  }
}

/** Settings of every connection to the file; a writer that waits longer than this for another process gives up. */
export const pragmas = 'pragma busy_timeout = 10000; pragma foreign_keys = on; pragma cache_size = -32768; pragma temp_store = memory;'

type Execute = (query: CompiledQuery) => Promise<{ rows: unknown[]; changes: number }>

function dialect(execute: Execute, control: { begin(): void; commit(): void; rollback(): void } | null): Dialect {
  // One connection, handed from one user to the next: a transaction holds it from begin to commit, so no other
  // request's statement can slip into it.
  let free: Promise<void> = Promise.resolve()
  let release: () => void = () => undefined
  const connection: DatabaseConnection = {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      const { rows, changes } = await execute(query)
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
      const before = free
      const mine = Promise.withResolvers<void>()
      free = mine.promise
      await before
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

/** Sends queries to the worker and matches its answers to them, in order of their numbers. */
function readerWorker(file: string): { execute: Execute; close(): Promise<void> } {
  const worker = new Worker(new URL('./sqlite-reader.ts', import.meta.url), { workerData: { file } })
  worker.unref()
  const waiting = new Map<number, PromiseWithResolvers<unknown[]>>()
  let last = 0
  worker.on('message', (answer: { id: number; rows?: unknown[]; error?: string }) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (waiting.size === 0) worker.unref()
    if (answer.error === undefined) asked?.resolve(answer.rows ?? [])
    else asked?.reject(new Error(answer.error))
  })
  worker.on('error', (error) => {
    for (const asked of waiting.values()) asked.reject(error)
    waiting.clear()
  })
  return {
    async execute(query) {
      const id = ++last
      const asked = Promise.withResolvers<unknown[]>()
      waiting.set(id, asked)
      // A pending list keeps the process alive until it is answered; an idle worker does not.
      worker.ref()
      worker.postMessage({ id, sql: query.sql, parameters: query.parameters })
      return { rows: await asked.promise, changes: 0 }
    },
    close: async () => void (await worker.terminate()),
  }
}

export function openSqlite(file: string): Opened {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: true })
  database.exec(`pragma journal_mode = wal; pragma synchronous = full; ${pragmas}`)
  const prepared = statements(database)
  const db = new Kysely<Tables>({
    dialect: dialect(async (query) => prepared.run(query.sql, query.parameters), {
      begin: () => database.exec('begin immediate'),
      commit: () => database.exec('commit'),
      rollback: () => database.exec('rollback'),
    }),
  })
  let worker: ReturnType<typeof readerWorker> | undefined
  const reader = new Kysely<Tables>({
    dialect: dialect((query) => (worker ??= readerWorker(file)).execute(query), null),
  })
  return {
    name: 'sqlite',
    db,
    reader,
    // `begin immediate` of the migration itself is the lock: another process waits for it.
    exclusively: (work) => work(),
    isDuplicate: (error) => error instanceof Error && 'errcode' in error && (error.errcode === 2067 || error.errcode === 1555),
    async [Symbol.asyncDispose]() {
      await worker?.close()
      await reader.destroy()
      await db.destroy()
      database.exec('pragma optimize')
      database.close()
    },
  }
}
