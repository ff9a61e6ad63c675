// The facts about a database that storage needs beyond Kysely's interface. Differences between SQLite and
// PostgreSQL live in this folder and in the migrations, nowhere else.
import type { Kysely } from 'kysely'
import { DurationHistogram } from '../../kit/counter.ts'
import type { Tables } from '../tables.ts'

export interface DatabaseMetrics {
  readonly point: QueryMetrics
  readonly list: QueryMetrics
}

export interface QueryMetrics {
  readonly durations: DurationHistogram
  waiting(): number
}

/** Microseconds for a point read of SQLite, seconds for a lock. */
export const statementDurations = (): DurationHistogram =>
  new DurationHistogram([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5])

export interface Opened extends AsyncDisposable {
  readonly name: 'sqlite' | 'postgres'
  /** Writes, transactions and point reads. */
  readonly db: Kysely<Tables>
  /** Lists and counts: they may be slow, and must not stop the rest. */
  readonly reader: Kysely<Tables>
  readonly figures: DatabaseMetrics
  /** Runs `work` while no other node migrates. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  /** Runs a transaction, and again after a conflict with another one or once a full disk has room. */
  again<T>(transaction: () => Promise<T>): Promise<T>
  isDuplicate(error: unknown): boolean
}

/**
 * PostgreSQL cannot store NUL in a text, and SQLite's search stops at it: both get the replacement character.
 */
export function storable(parameters: readonly unknown[]): readonly unknown[] {
  const hasNul = (value: unknown): value is string => typeof value === 'string' && value.includes('\0')
  return parameters.some(hasNul)
    ? parameters.map((value) => (hasNul(value) ? value.replaceAll('\0', '\ufffd') : value))
    : parameters
}
