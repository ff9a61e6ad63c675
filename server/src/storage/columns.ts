// Types of columns that all tables share.
import type { ColumnType } from 'kysely'

export type Flag = 0 | 1
/** The namespace of a row; no query can change it. */
export type TenantId = ColumnType<string, string, never>
