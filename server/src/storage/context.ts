// The parts of a store: the connection to write on (a transaction, inside one), the one to read lists
// from, and which database it is. There are three kinds of context, by what a store may see, and the compiler
// knows no other tables than those:
//   ServerContext      tables without a namespace: users, nodes, keys of the server
//   NamespaceContext   the rows of one namespace; every query begins with its tenant_id
//   AllNamespaces      everything; stores.ts lists who has it, and why
import {
  sql,
  type DeleteQueryBuilder,
  type DeleteResult,
  type Insertable,
  type InsertQueryBuilder,
  type InsertResult,
  type Kysely,
  type SelectQueryBuilder,
  type UpdateQueryBuilder,
  type UpdateResult,
} from 'kysely'
import type { Opened } from './dialects/dialect.ts'
import type { Tables } from './tables.ts'

type Namespaced = { [T in keyof Tables]: 'tenant_id' extends keyof Tables[T] ? T : never }[keyof Tables]

interface Connections<DB> {
  readonly db: Kysely<DB>
  readonly reader: Kysely<DB>
  readonly dialect: Opened['name']
  /** Whether rows are locked when read; see `locked`. */
  readonly locks: boolean
}

export type AllNamespaces = Connections<Tables>
export type ServerContext = Connections<Omit<Tables, Namespaced>>

/**
 * The rows of one namespace. A query knows a single table, so that no join reaches another namespace; a
 * subquery begins here like any query.
 */
export interface NamespaceContext extends Pick<AllNamespaces, 'dialect' | 'locks'> {
  select<T extends Namespaced>(table: T): Select<T>
  read<T extends Namespaced>(table: T): Select<T>
  insert<T extends Namespaced>(
    table: T,
    row: Omit<Insertable<Tables[T]>, 'tenant_id'>,
  ): InsertQueryBuilder<Pick<Tables, T>, T, InsertResult>
  update<T extends Namespaced>(table: T): UpdateQueryBuilder<Pick<Tables, T>, T, T, UpdateResult>
  remove<T extends Namespaced>(table: T): DeleteQueryBuilder<Pick<Tables, T>, T, DeleteResult>
}

export type Select<T extends Namespaced> = SelectQueryBuilder<Pick<Tables, T>, T, object>

export function inNamespace(context: AllNamespaces, tenant_id: string): NamespaceContext {
  const { db, reader, dialect, locks } = context
  // The compiler cannot follow a table that is one of several: it is `devices` here, and the interface states
  // the result.
  const own = (table: Namespaced) => [sql.ref<string>(`${table}.tenant_id`), '=', tenant_id] as const
  const as = (table: Namespaced) => table as 'devices'
  return {
    dialect,
    locks,
    select: <T extends Namespaced>(table: T) =>
      db.selectFrom(as(table)).where(...own(table)) as unknown as Select<T>,
    read: <T extends Namespaced>(table: T) =>
      reader.selectFrom(as(table)).where(...own(table)) as unknown as Select<T>,
    insert: (table, row) =>
      db
        .insertInto(as(table))
        .values({ ...row, tenant_id } as unknown as Insertable<Tables['devices']>) as never,
    update: (table) => db.updateTable(as(table)).where(...own(table)) as never,
    remove: (table) => db.deleteFrom(as(table)).where(...own(table)) as never,
  }
}

/**
 * Locks a row that is read in order to be changed until the transaction ends. SQLite has one writer anyway;
 * PostgreSQL needs the lock. Rows that are only looked at stay unlocked, because others would wait.
 */
export function locked<DB, TB extends keyof DB, O>(
  { locks }: Pick<AllNamespaces, 'locks'>,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return locks ? query.forNoKeyUpdate() : query
}

/** Inserts rows and keeps those that are there already: another call, or another node, may have been quicker. */
export const insertNew = <DB, T extends keyof DB>(query: InsertQueryBuilder<DB, T, InsertResult>) =>
  query.onConflict((conflict) => conflict.doNothing()).execute()

/** Runs an update or a removal; whether it met exactly one row. */
export async function isOne(query: {
  executeTakeFirst(): Promise<UpdateResult | DeleteResult>
}): Promise<boolean> {
  const result = await query.executeTakeFirst()
  return ('numUpdatedRows' in result ? result.numUpdatedRows : result.numDeletedRows) === 1n
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

export async function pageOf<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, object>,
  slice: Slice,
  inOrder: (query: SelectQueryBuilder<DB, TB, object>) => SelectQueryBuilder<DB, TB, Row>,
) {
  const items = await inOrder(query).limit(slice.per_page).offset(offsetOf(slice)).execute()
  const { n } = await query
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .$castTo<{ n: number }>()
    .executeTakeFirstOrThrow()
  return { items, total: n }
}
