// Opens the database that the settings name, brings its schema up to date, and offers the stores. This room holds all
// the SQL of the server.
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { Opened } from './dialects/dialect.ts'
import { openSqlite } from './dialects/sqlite.ts'
import { migrate } from './migrations/index.ts'

export interface DatabaseOptions {
  /** Empty: SQLite in `folder`. */
  readonly url: string
  readonly folder: string
  readonly now: () => string
  readonly onError: (error: Error) => void
}

export async function openDatabase(options: DatabaseOptions): Promise<Opened & { migrated: string[] }> {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  // The driver of the database that is not used is not even loaded.
  const { openPostgres } = options.url ? await import('./dialects/postgres.ts') : { openPostgres: undefined }
  const opened = openPostgres ? openPostgres(options.url, options.onError) : await openSqlite(path.join(options.folder, 'hawser.db'))
  try {
    return Object.assign(opened, { migrated: await migrate(opened, options.now) })
  } catch (error) {
    // Open connections would keep the process from ending.
    await opened[Symbol.asyncDispose]()
    throw error
  }
}
