// What a store is made of: the connection to write on (a transaction, inside one), the one to read lists from, and
// which database it is.
import type { Kysely } from 'kysely'
import type { Opened } from './dialects/dialect.ts'
import type { Tables } from './tables.ts'

export interface Context {
  readonly db: Kysely<Tables>
  readonly reader: Kysely<Tables>
  readonly dialect: Opened['name']
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
