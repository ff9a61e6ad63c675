// What a store is made of: the connection to write on (a transaction, inside one), the one to read lists
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

/** A table whose rows belong to a namespace: it has a tenant_id. */
type Namespaced = { [T in keyof Tables]: 'tenant_id' extends keyof Tables[T] ? T : never }[keyof Tables]

interface Connections<DB> {
  readonly db: Kysely<DB>
  readonly reader: Kysely<DB>
  readonly dialect: Opened['name']
  /** Whether rows that are read are to be locked for their reader; see `locked`. */
  readonly locks: boolean
}

export type AllNamespaces = Connections<Tables>
export type ServerContext = Connections<Omit<Tables, Namespaced>>

/**
 * The rows of one namespace. A query knows a single table, so that a join cannot bring in rows of another
 * namespace; a subquery begins here like any query.
 */
export interface NamespaceContext extends Pick<AllNamespaces, 'dialect' | 'locks'> {
  select<T extends Namespaced>(table: T): Select<T>
  /** As `select`, on the connection for lists. */
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
  // The compiler cannot follow a table that is only known as one of several. It is `devices` to it here, and
  // the result is what the interface says.
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
 * For a row that is read in order to be changed. Inside a transaction nobody else may change it until the
 * end: SQLite has one writer at a time anyway, PostgreSQL must be told. Not for rows that are only looked at,
 * because others wait for a lock.
 */
export function locked<DB, TB extends keyof DB, O>(
  { locks }: Pick<AllNamespaces, 'locks'>,
  query: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return locks ? query.forNoKeyUpdate() : query
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

/** One page of what a query finds, in this order, and how many rows there are in all. */
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
