// The audit log of one namespace (or of the server itself, whose tenant_id is empty): entries, and the head
// of their chain. Entries are only ever added at the end and removed from the beginning.
import { CompiledQuery, sql, type Kysely, type Selectable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Select } from './context.ts'
import { locked } from './context.ts'
import type { Tables } from './tables.ts'

export type AuditRow = Omit<Selectable<Tables['audit_entries']>, 'tenant_id'>
export type AuditHeadRow = Omit<Selectable<Tables['audit_heads']>, 'tenant_id'>

export interface AuditQuery {
  /** The beginning of the action. */
  readonly action?: string | undefined
  /** An id or a name. */
  readonly actor?: string | undefined
  readonly target?: string | undefined
  readonly source?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Older entries than this one are about to be removed. */
  readonly oldest: number
  /** Entries before or after this one; `after` gives the oldest first. */
  readonly before?: number | undefined
  readonly after?: number | undefined
  readonly limit: number
  /** How many entries are looked at for those that fit. */
  readonly window: number
}

const columns = [
  'seq',
  'at',
  'action',
  'actor_kind',
  'actor_id',
  'actor_name',
  'source',
  'request_id',
  'target_kind',
  'target_id',
  'target_name',
  'detail',
  'hash',
] as const

const entryColumns = sql.raw(`tenant_id, ${columns.join(', ')}`)
/** All but the first two. */
const textColumns = sql.raw(
  columns
    .slice(1)
    .map((column) => `entry.${column}`)
    .join(', '),
)
/** Entries of one statement. */
const mostRows = 1_000
/** For SQLite. */
const moveHead =
  'update audit_heads set seq = ?, hash = ?, at = ? where tenant_id = ? and seq = ? and hash = ?'
const insertEntry = `insert into audit_entries (tenant_id, ${columns.join(', ')})
  values (?${', ?'.repeat(columns.length)})`

/**
 * The number of the last entry before a moment; one less than the first number or 0: there is none.
 * Numbers have no gaps and moments never go back, so it is found by halving, without an index that every
 * change would pay for.
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
    /** The head, which nobody else can move until the transaction ends. */
    holdHead: (): Promise<AuditHeadRow | undefined> =>
      locked(
        context,
        context.select('audit_heads').select(['seq', 'hash', 'at', 'first_seq', 'first_hash']),
      ).executeTakeFirst(),
    /** Keeps the head that is there already: another transaction may have been quicker. */
    async begin(row: AuditHeadRow): Promise<void> {
      const { numInsertedOrUpdatedRows } = await context
        .insert('audit_heads', row)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirstOrThrow()
      // Entries of a removed namespace with the same id, if the sweep has left any.
      if (numInsertedOrUpdatedRows === 1n) await context.remove('audit_entries').execute()
    },
    /**
     * Appends entries and moves the head, if that is still where the first of them continues; false: nothing
     * was done. Written out, because building the statements takes longer than running them.
     */
    async append(from: Pick<AuditHeadRow, 'seq' | 'hash'>, rows: readonly AuditRow[]): Promise<boolean> {
      if (rows.length > mostRows) {
        // A statement has no more than 65,535 parameters. Whether the head was there, the first part tells.
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
          insert into audit_entries (${entryColumns}) select entry.tenant_id, entry.seq::bigint, ${textColumns}
          from moved, (values ${values}) as entry (${entryColumns})`.execute(db)
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
     * One page. `next` is where to go on: the work of a call is bounded, so a page may be empty although
     * there are more entries. Undefined: everything was looked at.
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
      // Without a filter every entry fits, and `limit` bounds the work.
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
  // An action has no character that is after `~`.
  if (action !== undefined) fits = fits.where('action', '>=', action).where('action', '<', `${action}~`)
  if (actor !== undefined)
    fits = fits.where((eb) => eb.or([eb('actor_id', '=', actor), eb('actor_name', '=', actor)]))
  if (target !== undefined)
    fits = fits.where((eb) => eb.or([eb('target_id', '=', target), eb('target_name', '=', target)]))
  if (source !== undefined) fits = fits.where('source', '=', source)
  return fits
}

/** The logs of all namespaces, for the sweep. */
export function auditLogStore({ db, reader }: AllNamespaces) {
  return {
    /** Each log that has entries, and how many days it keeps them; null: it is the server's own. */
    retentions: () =>
      reader
        .selectFrom('audit_heads')
        .leftJoin('namespaces', 'namespaces.tenant_id', 'audit_heads.tenant_id')
        .select(['audit_heads.tenant_id', 'namespaces.audit_retention_days'])
        .orderBy('audit_heads.tenant_id')
        .execute(),
    /** The last entry of a log before a moment. */
    lastBefore: async (tenant_id: string, at: string) =>
      reader
        .selectFrom('audit_entries')
        .select(['seq', 'hash'])
        .where('tenant_id', '=', tenant_id)
        .where('seq', '=', await lastBefore(reader, tenant_id, at))
        .executeTakeFirst(),
    /** Logs that have entries and no head: those of removed namespaces. Looks at one entry of each log. */
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
     * Removes entries that the head no longer includes, at most `step` of them; without a head all go. False:
     * there are none left.
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
        // A namespace may have come back with this id.
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

export type AuditStore = ReturnType<typeof auditStore>
