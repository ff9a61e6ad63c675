// What the rest of storage needs to know about a database beyond Kysely's own face. The differences between
// SQLite and PostgreSQL live in this folder and in the migrations, nowhere else.
import type { Kysely } from 'kysely'
import type { Tables } from '../tables.ts'

export interface Opened extends AsyncDisposable {
  readonly name: 'sqlite' | 'postgres'
  /** Writes, transactions and point reads. */
  readonly db: Kysely<Tables>
  /** Lists and counts: they may be slow, and must not stop the rest. */
  readonly reader: Kysely<Tables>
  /** Runs `work` while no other node migrates. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  /** Runs a transaction, and runs it again when the database ended it because it met another one. */
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
