// What a store is made of: the connection to write on (a transaction, inside one), the one to read lists
// from, and which database it is.
import type { Kysely, SelectQueryBuilder } from 'kysely'
import type { Opened } from './dialects/dialect.ts'
import type { Tables } from './tables.ts'

export interface Context {
  readonly db: Kysely<Tables>
  readonly reader: Kysely<Tables>
  readonly dialect: Opened['name']
  /** Whether rows that are read are to be held for their reader; see `held`. */
  readonly holds: boolean
}

/**
 * For a row that is read in order to be changed. Inside a transaction nobody else may change it until the
 * end: SQLite has one writer at a time anyway, PostgreSQL must be told. Not for what is merely looked at:
 * whoever holds, makes wait.
 */
export function held<DB, TB extends keyof DB, O>(
  { holds }: Context,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return holds ? query.forNoKeyUpdate() : query
}

export function flag(value: boolean): 0 | 1 {
  return value ? 1 : 0
}

export interface Slice {
  readonly page: number
  readonly per_page: number
}

export function offsetOf(slice: Slice): number {
  return (slice.page - 1) * slice.per_page
}
