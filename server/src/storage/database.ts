// Opens the database that the settings name, migrates its schema, and offers the stores. All SQL of the
// server is here.
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { sql } from 'kysely'
import type { Opened } from './dialects/dialect.ts'
import { openSqlite } from './dialects/sqlite.ts'
import { migrate } from './migrations/index.ts'

export interface DatabaseOptions {
  readonly url: string
  readonly folder: string
  readonly now: () => string
  readonly onError: (error: Error) => void
  /** Called when SQLite's disk is full; true if it has made room. */
  readonly onFull?: () => boolean
}

const file = 'hawser.db'

export async function isInstalled({
  url,
  folder,
}: Pick<DatabaseOptions, 'url' | 'folder'>): Promise<boolean> {
  if (!url) return existsSync(path.join(folder, file))
  const { openPostgres } = await import('./dialects/postgres.ts')
  await using opened = openPostgres(url, () => undefined)
  return await opened.exclusively(async () => {
    const { rows } = await sql<{
      there: boolean
    }>`select to_regclass('schema_migrations') is not null as there`.execute(opened.db)
    return rows[0]?.there === true
  })
}

export async function openDatabase(options: DatabaseOptions): Promise<Opened & { migrated: string[] }> {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  // The unused database's driver is not loaded.
  const { openPostgres } = options.url ? await import('./dialects/postgres.ts') : { openPostgres: undefined }
  const opened = openPostgres
    ? openPostgres(options.url, options.onError)
    : await openSqlite(path.join(options.folder, file), options.onFull)
  try {
    return Object.assign(opened, { migrated: await migrate(opened, options.now) })
  } catch (error) {
    await opened[Symbol.asyncDispose]()
    throw error
  }
}
