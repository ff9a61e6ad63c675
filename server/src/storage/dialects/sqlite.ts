// SQLite through node:sqlite: one file, one writing connection on the main thread, one read-only connection in a
// worker. WAL and synchronous=FULL: what was committed survives kill -9 and power loss. node:sqlite is synchronous, so
// only point queries run here; lists and counts go to the worker (see sqlite-reader.ts).
import { DatabaseSync } from 'node:sqlite'
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
import { pragmas, statements } from './sqlite-statements.ts'

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
      // The worker takes one question after the other by itself.
      if (!control) return connection
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
    async execute(query) {
      const { waiting, worker } = (current ??= start())
      const id = ++last
      const question = Promise.withResolvers<unknown[]>()
      waiting.set(id, question)
      // A pending list keeps the process alive until it is answered; an idle worker does not.
      worker.ref()
      worker.postMessage({ id, sql: query.sql, parameters: query.parameters })
      return { rows: await question.promise, changes: 0 }
    },
    close: async () => void (await current?.worker.terminate()),
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
  const worker = readerWorker(file)
  const reader = new Kysely<Tables>({ dialect: dialect(worker.execute, null) })
  return {
    name: 'sqlite',
    db,
    reader,
    // `begin immediate` of the migration itself is the lock: another process waits for it.
    exclusively: (work) => work(),
    isDuplicate: (error) => error instanceof Error && 'errcode' in error && (error.errcode === 2067 || error.errcode === 1555),
    async [Symbol.asyncDispose]() {
      await worker.close()
      await reader.destroy()
      await db.destroy()
      database.exec('pragma optimize')
      database.close()
    },
  }
}
