// PostgreSQL through pg. Every statement text gets a name, so the server prepares it once per connection. Lists use
// connections of their own with custom plans: a cached generic plan can be forty times slower on filters.
import { createHash } from 'node:crypto'
import { Kysely, PostgresDialect, type PostgresPool } from 'kysely'
import pg from 'pg'
import type { Tables } from '../tables.ts'
import type { Opened } from './dialect.ts'

/** bigint columns hold counts and numbers far below 2^53. */
const parsers: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (oid === 20 ? Number : pg.types.getTypeParser(oid, format)) as (text: string) => unknown,
}

/** Any number: two nodes that start together take turns on it. */
const migration_lock = 727_469_001

function pool(url: string, max: number, options: string): pg.Pool {
  return new pg.Pool({
    connectionString: url,
    max,
    options,
    types: parsers,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    application_name: 'hawser',
  })
}

/** Gives each query a name made from its text; pg then sends only the values from the second call on. */
function named(source: pg.Pool): PostgresPool {
  const names = new Map<string, string>()
  const nameOf = (text: string): string => {
    let name = names.get(text)
    if (name === undefined) {
      if (names.size >= 1000) names.clear()
      name = createHash('sha1').update(text).digest('base64url')
      names.set(text, name)
    }
    return name
  }
  return {
    options: source.options,
    end: () => source.end(),
    async connect() {
      const client = await source.connect()
      return {
        query: ((text: string, values: unknown[]) =>
          values?.length ? client.query({ name: nameOf(text), text, values }) : client.query(text)) as never,
        release: () => client.release(),
      }
    },
  }
}

export function openPostgres(url: string, onError: (error: Error) => void): Opened {
  const writing = pool(url, 10, '-c timezone=UTC')
  const reading = pool(url, 4, '-c timezone=UTC -c plan_cache_mode=force_custom_plan -c statement_timeout=30000')
  // An idle connection that the server closes must not end the process; the pool opens another when asked.
  writing.on('error', onError)
  reading.on('error', onError)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: named(writing) }) })
  const reader = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: named(reading) }) })
  return {
    name: 'postgres',
    db,
    reader,
    async exclusively(work) {
      const client = await writing.connect()
      try {
        await client.query('select pg_advisory_lock($1)', [migration_lock])
        return await work()
      } finally {
        await client.query('select pg_advisory_unlock($1)', [migration_lock]).catch(() => undefined)
        client.release()
      }
    },
    isDuplicate: (error) => error instanceof Error && 'code' in error && error.code === '23505',
    async [Symbol.asyncDispose]() {
      await reader.destroy()
      await db.destroy()
    },
  }
}
