// What the rest of storage needs to know about a database beyond Kysely's own face. The differences between
// SQLite and PostgreSQL live in this folder and in the migrations, nowhere else.
import type { Kysely } from 'kysely'
import { DurationHistogram } from '../../kit/counter.ts'
import type { Tables } from '../tables.ts'

/** Statements of the two connections: how long they took, and how many wait for their turn. */
export interface DatabaseMetrics {
  /** Writes, transactions and point reads. */
  readonly point: QueryMetrics
  readonly list: QueryMetrics
}

export interface QueryMetrics {
  readonly durations: DurationHistogram
  waiting(): number
}

/** Point reads of SQLite take microseconds, a commit waits for the disk, and a lock may take seconds. */
export const statementDurations = (): DurationHistogram =>
  new DurationHistogram([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5])

export interface Opened extends AsyncDisposable {
  readonly name: 'sqlite' | 'postgres'
  /** Writes, transactions and point reads. */
  readonly db: Kysely<Tables>
  /** Lists and counts: they may be slow, and must not stop the rest. */
  readonly reader: Kysely<Tables>
  /** What the metrics say about it. */
  readonly figures: DatabaseMetrics
  /** Runs `work` while no other node migrates. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  /** Runs a transaction, and runs it again when it met another one, or a full disk that has room now. */
  again<T>(transaction: () => Promise<T>): Promise<T>
  /** Whether an error says that a unique constraint was hit. */
  isDuplicate(error: unknown): boolean
}

/**
 * PostgreSQL cannot keep the character NUL in a text, and SQLite's search stops at it: both get the sign for
 * a lost one.
 */
export function storable(parameters: readonly unknown[]): readonly unknown[] {
  const hasNul = (value: unknown): value is string => typeof value === 'string' && value.includes('\0')
  return parameters.some(hasNul)
    ? parameters.map((value) => (hasNul(value) ? value.replaceAll('\0', '\ufffd') : value))
    : parameters
}
