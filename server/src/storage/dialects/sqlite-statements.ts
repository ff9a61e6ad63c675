// Prepared statements and settings of a SQLite connection; separate, so that the reading worker loads nothing
// else.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { BoundedMap } from '../../kit/bounded-map.ts'

export interface Statements {
  run(sql: string, parameters: readonly unknown[]): { rows: unknown[]; changes: number }
}

const cached_statements = 500

/** Kysely builds the same text for the same query, so almost every call is a hit. */
export function statements(database: DatabaseSync): Statements {
  const cache = new BoundedMap<string, { statement: StatementSync; reads: boolean }>(cached_statements)
  return {
    run(sql, parameters) {
      let entry = cache.get(sql)
      if (!entry) {
        const statement = database.prepare(sql)
        entry = { statement, reads: statement.columns().length > 0 }
        cache.set(sql, entry)
      }
      const values = parameters as SQLInputValue[]
      if (entry.reads) return { rows: entry.statement.all(...values), changes: 0 }
      return { rows: [], changes: Number(entry.statement.run(...values).changes) }
    },
  }
}

export const pragmas =
  'pragma busy_timeout = 10000; pragma foreign_keys = on; pragma cache_size = -32768; pragma temp_store = memory;'
