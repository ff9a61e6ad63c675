// The audit log of one namespace (or of the server itself, whose tenant_id is empty): entries, and the head
// of their chain. Entries are only ever added at the end and removed from the beginning.
import { entryColumns as columns } from '@hawser/contract/audit-chain'
import { CompiledQuery, sql, type Kysely, type Selectable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Select } from './context.ts'
import { locked } from './context.ts'
import type { Tables } from './tables.ts'

export type AuditRow = Omit<Selectable<Tables['audit_entries']>, 'tenant_id'>
export type AuditHeadRow = Omit<Selectable<Tables['audit_heads']>, 'tenant_id'>

export interface AuditQuery {
  /** A prefix of the action. */
  readonly action?: string | undefined
  /** An id or a name. */
  readonly actor?: string | undefined
  readonly target?: string | undefined
  readonly source?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Older entries than this one are about to be removed. */
  readonly oldest: number
  /** Entries before or after this number; `after` lists the oldest first. */
  readonly before?: number | undefined
  readonly after?: number | undefined
  readonly limit: number
  /** How many entries are examined. */
  readonly window: number
}

const insertColumns = sql.raw(`tenant_id, ${columns.join(', ')}`)
/** All but the first two. */
const textColumns = sql.raw(
  columns
    .slice(1)
    .map((column) => `entry.${column}`)
    .join(', '),
)
const mostRows = 1_000
const moveHead =
  'update audit_heads set seq = ?, hash = ?, at = ? where tenant_id = ? and seq = ? and hash = ?'
const insertEntry = `insert into audit_entries (tenant_id, ${columns.join(', ')})
  values (?${', ?'.repeat(columns.length)})`

/**
 * The number of the last entry before a moment, or one less than the first number. Found by bisection,
 * without an index that every change would pay for: numbers have no gaps and moments never go back.
 */
async function lastBefore(db: Kysely<Tables>, tenant_id: string, at: string): Promise<number> {
  const { rows } = await sql<{ low: number }>`with recursive span (low, high) as (
      select (select min(seq) from audit_entries where tenant_id = ${tenant_id}) - 1,
        (select max(seq) from audit_entries where tenant_id = ${tenant_id})
      union all
      select case when entry.at < ${at} then entry.seq else span.low end,
        case when entry.at < ${at} then span.high else entry.seq - 1 end
      from span join audit_entries as entry
        on entry.tenant_id = ${tenant_id} and entry.seq = (span.low + span.high + 1) / 2
      where span.low < span.high)
    select low from span where low >= high`.execute(db)
  return rows[0]?.low ?? 0
}

export function auditStore(
  context: NamespaceContext,
  { db, reader, dialect }: Pick<AllNamespaces, 'db' | 'reader' | 'dialect'>,
  tenant_id: string,
) {
  const head = (): Promise<AuditHeadRow | undefined> =>
    context.select('audit_heads').select(['seq', 'hash', 'at', 'first_seq', 'first_hash']).executeTakeFirst()

  const listed = (row: AuditRow) => [tenant_id, ...columns.map((column) => row[column])]

  return {
    head,
    /** Locks the head until the transaction ends. */
    holdHead: (): Promise<AuditHeadRow | undefined> =>
      locked(
        context,
        context.select('audit_heads').select(['seq', 'hash', 'at', 'first_seq', 'first_hash']),
      ).executeTakeFirst(),
    /** Another transaction's head is left as it is. */
    async begin(row: AuditHeadRow): Promise<void> {
      const { numInsertedOrUpdatedRows } = await context
        .insert('audit_heads', row)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirstOrThrow()
      // The sweep may have left entries of a removed namespace with the same id.
      if (numInsertedOrUpdatedRows === 1n) await context.remove('audit_entries').execute()
    },
    /**
     * Appends entries and moves the head; false if the head no longer precedes them. Written as SQL text,
     * because building the statements takes longer than running them.
     */
    async append(from: Pick<AuditHeadRow, 'seq' | 'hash'>, rows: readonly AuditRow[]): Promise<boolean> {
      if (rows.length > mostRows) {
        // A statement has at most 65,535 parameters. The first part shows whether the head was in place.
        const [some, rest] = [rows.slice(0, mostRows), rows.slice(mostRows)]
        return (await this.append(from, some)) && this.append(some.at(-1) ?? from, rest)
      }
      const last = rows.at(-1)
      if (!last) return true
      if (dialect === 'postgres') {
        const values = sql.join(rows.map((row) => sql`(${sql.join(listed(row))})`))
        const { numAffectedRows } = await sql`with moved as (update audit_heads
          set seq = ${last.seq}, hash = ${last.hash}, at = ${last.at}
          where tenant_id = ${tenant_id} and seq = ${from.seq} and hash = ${from.hash} returning seq)
          insert into audit_entries (${insertColumns}) select entry.tenant_id, entry.seq::bigint, ${textColumns}
          from moved, (values ${values}) as entry (${insertColumns})`.execute(db)
        return numAffectedRows === BigInt(rows.length)
      }
      const { numAffectedRows } = await db.executeQuery(
        CompiledQuery.raw(moveHead, [last.seq, last.hash, last.at, tenant_id, from.seq, from.hash]),
      )
      if (numAffectedRows === 0n) return false
      for (const row of rows) await db.executeQuery(CompiledQuery.raw(insertEntry, listed(row)))
      return true
    },
    saveHead: (change: Partial<AuditHeadRow>) => context.update('audit_heads').set(change).execute(),

    /**
     * One page. `next`: where the next call continues, because the work of a call is bounded and a page may
     * be empty before the end. Undefined: all entries were examined.
     */
    async list(query: AuditQuery): Promise<{ rows: AuditRow[]; next: number | undefined }> {
      const ascending = query.after !== undefined
      const low = Math.max(
        query.oldest - 1,
        query.after ?? 0,
        query.from === undefined ? 0 : await lastBefore(reader, tenant_id, query.from),
      )
      const high = Math.min(
        query.before === undefined ? Number.MAX_SAFE_INTEGER : query.before - 1,
        query.to === undefined ? Number.MAX_SAFE_INTEGER : await lastBefore(reader, tenant_id, query.to),
      )
      const looked = () =>
        context
          .read('audit_entries')
          .where('seq', '>', low)
          .where('seq', '<=', high)
          .orderBy('seq', ascending ? 'asc' : 'desc')
      const { action, actor, target, source } = query
      const edge =
        (action ?? actor ?? target ?? source) === undefined
          ? undefined
          : await looked()
              .select('seq')
              .limit(1)
              .offset(query.window - 1)
              .executeTakeFirst()
      const within = edge ? looked().where('seq', ascending ? '<=' : '>=', edge.seq) : looked()
      const rows = await fitting(within, query).select(columns).limit(query.limit).execute()
      const last = rows.at(-1)
      if (rows.length === query.limit && last) return { rows, next: last.seq }
      return { rows, next: edge?.seq }
    },
  }
}

function fitting(query: Select<'audit_entries'>, { action, actor, target, source }: AuditQuery) {
  let fits = query
  // `~` sorts after every character of an action.
  if (action !== undefined) fits = fits.where('action', '>=', action).where('action', '<', `${action}~`)
  if (actor !== undefined)
    fits = fits.where((eb) => eb.or([eb('actor_id', '=', actor), eb('actor_name', '=', actor)]))
  if (target !== undefined)
    fits = fits.where((eb) => eb.or([eb('target_id', '=', target), eb('target_name', '=', target)]))
  if (source !== undefined) fits = fits.where('source', '=', source)
  return fits
}

export function auditLogStore({ db, reader }: AllNamespaces) {
  return {
    /** Logs with entries and their retention in days; null: the server's own log. */
    retentions: () =>
      reader
        .selectFrom('audit_heads')
        .leftJoin('namespaces', 'namespaces.tenant_id', 'audit_heads.tenant_id')
        .select(['audit_heads.tenant_id', 'namespaces.audit_retention_days'])
        .orderBy('audit_heads.tenant_id')
        .execute(),
    lastBefore: async (tenant_id: string, at: string) =>
      reader
        .selectFrom('audit_entries')
        .select(['seq', 'hash'])
        .where('tenant_id', '=', tenant_id)
        .where('seq', '=', await lastBefore(reader, tenant_id, at))
        .executeTakeFirst(),
    /** Logs without a head: those of removed namespaces. Looks at one entry of each log. */
    async headless(): Promise<string[]> {
      const { rows } = await sql<{ tenant_id: string }>`with recursive logs (tenant_id) as (
          select (select min(tenant_id) from audit_entries)
          union all
          select (select min(tenant_id) from audit_entries where tenant_id > logs.tenant_id)
          from logs where logs.tenant_id is not null)
        select tenant_id from logs where tenant_id is not null
          and not exists (select 1 from audit_heads where audit_heads.tenant_id = logs.tenant_id)`.execute(
        reader,
      )
      return rows.map(({ tenant_id }) => tenant_id)
    },
    /**
     * Removes at most `step` entries that the head no longer includes (all, without a head). False: none are
     * left.
     */
    async removeOld(tenant_id: string, step: number): Promise<boolean> {
      const { rows } = await sql<{ oldest: number | null; first_seq: number | null }>`select
          (select min(seq) from audit_entries where tenant_id = ${tenant_id}) as oldest,
          (select first_seq from audit_heads where tenant_id = ${tenant_id}) as first_seq`.execute(reader)
      const { oldest = null, first_seq = null } = rows[0] ?? {}
      if (oldest === null) return false
      const end = Math.min(oldest + step, first_seq ?? Infinity)
      if (end <= oldest) return false
      await db
        .deleteFrom('audit_entries')
        .where('tenant_id', '=', tenant_id)
        .where('seq', '<', end)
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('audit_heads')
                .select('seq')
                .where('tenant_id', '=', tenant_id)
                .where('first_seq', '<', end),
            ),
          ),
        )
        .execute()
      return true
    },
  }
}
