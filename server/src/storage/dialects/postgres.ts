// PostgreSQL through pg. Every statement text gets a name, so the server prepares it once per connection.
// Lists use connections with custom plans: a cached generic plan can be forty times slower on filters. An
// unreachable server becomes the failure `unavailable`, here and nowhere else; no wait is unbounded, and the
// pools reconnect by themselves.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '@hawser/contract/failures'
import { Kysely, PostgresDialect, type PostgresPool } from 'kysely'
import pg from 'pg'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Tables } from '../tables.ts'
import type { DurationHistogram } from '../../kit/counter.ts'
import { statementDurations, storable, type Opened } from './dialect.ts'

/** bigint columns hold numbers far below 2^53. */
const parsers: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (oid === 20 ? Number : pg.types.getTypeParser(oid, format)) as (text: string) => unknown,
}

/** An arbitrary number on which starting nodes take turns. */
const migration_lock = 727_469_001

/** After this silence a separate connection checks whether the server is there. */
const silence_ms = 5000
const connect_ms = 5000
const most_attempts = 10
const most_names = 1000

function pool(url: string, max: number, options: string): pg.Pool {
  const made = new pg.Pool({
    connectionString: url,
    max,
    options,
    types: parsers,
    connectionTimeoutMillis: connect_ms,
    idleTimeoutMillis: 60_000,
    application_name: 'hawser',
  })
  // An idle connection's error event, unhandled, would end the process.
  made.on('connect', (client) => void client.on('error', () => undefined))
  return made
}

/** Too many connections, no memory or disk, shutting down, starting up (appendix A of PostgreSQL's manual). */
const not_now = /^(08|53|57P)/
/** A newer node added a column, so prepared statements return the old ones. */
const outdated = '0A000'
/** Deadlocks and serialisation failures. */
const passing: readonly unknown[] = ['40P01', '40001', outdated]

const codeOf = (error: unknown): unknown => (error instanceof pg.DatabaseError ? error.code : undefined)

/** Errors that the server did not send come from the way to it: refused, cut, silent. */
function isAway(error: unknown): boolean {
  return error instanceof pg.DatabaseError ? not_now.test(error.code ?? '') : !(error instanceof TypeError)
}

function away(cause: unknown): Failure {
  return new Failure('unavailable', {
    message: 'The database cannot be reached at the moment; try again.',
    retryAfter: 5,
    cause,
  })
}

/** Retries passing failures after a random pause, so that two that collided do not collide again. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === most_attempts || !passing.includes(codeOf(error))) throw error
      await pause(Math.random() * 30 * attempt)
    }
  }
}

/** Names each query after its text, so that pg sends only the values from the second call on. */
function namer() {
  const names = new BoundedMap<string, string>(most_names)
  let generation = 0
  return {
    of(text: string): string {
      let name = names.get(text)
      if (name === undefined) {
        name = createHash('sha1').update(`${generation} ${text}`).digest('base64url')
        names.set(text, name)
      }
      return name
    },
    renew(): void {
      generation++
      names.clear()
    },
  }
}

/** Rejects when the server does not answer a new connection either. Concurrent callers share one check. */
function pulse(connectionString: string): () => Promise<void> {
  async function ask(): Promise<void> {
    const client = new pg.Client({
      connectionString,
      connectionTimeoutMillis: connect_ms,
      query_timeout: connect_ms,
    })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('select 1')
    } catch (error) {
      // A server that refuses is there.
      if (!(error instanceof pg.DatabaseError)) throw error
    } finally {
      void client.end().catch(() => undefined)
    }
  }
  let asking: Promise<void> | undefined
  return () => (asking ??= ask().finally(() => (asking = undefined)))
}

function guarded(source: pg.Pool, alive: () => Promise<void>, durations: DurationHistogram): PostgresPool {
  const names = namer()
  return {
    options: source.options,
    end: () => source.end(),
    async connect() {
      const client = await source.connect().catch((error: unknown) => {
        throw away(error)
      })
      let broken: unknown
      const onError = (error: Error): void => void (broken ??= error)
      client.on('error', onError)

      /** A network that drops everything gives no sign; only this timer notices. */
      const answer = (query: pg.QueryConfig) =>
        new Promise<pg.QueryResult>((resolve, reject) => {
          const watch = setInterval(() => void alive().catch(reject), silence_ms)
          void client
            .query(query)
            .then(resolve, reject)
            .finally(() => clearInterval(watch))
        })

      async function ask(text: string, values: unknown[] | undefined): Promise<pg.QueryResult> {
        // A connection that may still be busy with an abandoned query is not reused.
        if (broken !== undefined) throw away(broken)
        const started = performance.now()
        try {
          return await answer(
            values?.length ? { text, name: names.of(text), values: storable(values) as unknown[] } : { text },
          )
        } catch (error) {
          if (codeOf(error) === outdated) names.renew()
          if (!isAway(error)) throw error
          broken = error
          throw away(error)
        } finally {
          durations.add(performance.now() - started)
        }
      }

      return {
        query: ((text: string, values?: unknown[]) =>
          // Only a single statement is run again here; one inside a transaction fails with it, and that is
          // run again.
          client.getTransactionStatus() === 'I'
            ? again(() => ask(text, values))
            : ask(text, values)) as never,
        release(discard?: boolean) {
          client.off('error', onError)
          client.release(broken !== undefined || discard === true)
        },
      }
    },
  }
}

export function openPostgres(url: string, onError: (error: Error) => void): Opened {
  const writing = pool(url, 10, '-c timezone=UTC')
  const reading = pool(
    url,
    4,
    '-c timezone=UTC -c plan_cache_mode=force_custom_plan -c statement_timeout=30000',
  )
  // The server may close an idle connection; the pool opens another when needed.
  writing.on('error', onError)
  reading.on('error', onError)
  const alive = pulse(url)
  const [point, list] = [statementDurations(), statementDurations()]
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: guarded(writing, alive, point) }) })
  const reader = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: guarded(reading, alive, list) }) })
  return {
    name: 'postgres',
    figures: {
      point: { durations: point, waiting: () => writing.waitingCount },
      list: { durations: list, waiting: () => reading.waitingCount },
    },
    db,
    reader,
    async exclusively(work) {
      const client = await writing.connect()
      try {
        await client.query('select pg_advisory_lock($1)', [migration_lock])
        return await work()
      } finally {
        const unlocked = await client
          .query('select pg_advisory_unlock($1)', [migration_lock])
          .catch(() => undefined)
        // Closing the connection releases the lock.
        client.release(unlocked === undefined)
      }
    },
    again,
    isDuplicate: (error) => error instanceof Error && 'code' in error && error.code === '23505',
    async [Symbol.asyncDispose]() {
      await reader.destroy()
      await db.destroy()
    },
  }
}
