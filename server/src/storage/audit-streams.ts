// Audit streams of one namespace with their dead letters, and which streams of all namespaces are due. On
// PostgreSQL one node delivers a stream; when it stops or is lost, another takes over and the former one's
// writes are refused.
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import { isOne, offsetOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type AuditStreamRow = Selectable<Tables['audit_streams']>
export type DeadLetterRow = Selectable<Tables['audit_dead_letters']>
type NewLetter = Omit<Insertable<Tables['audit_dead_letters']>, 'tenant_id' | 'id'>

export function auditStreamStore(context: NamespaceContext) {
  const mine = () => context.select('audit_streams')
  const letters = (stream: string) => context.select('audit_dead_letters').where('stream', '=', stream)
  return {
    find: (uid: string): Promise<AuditStreamRow | undefined> =>
      mine().selectAll().where('uid', '=', uid).executeTakeFirst(),
    async count(): Promise<number> {
      const { n } = await mine()
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return n
    },
    list: (slice: Slice): Promise<AuditStreamRow[]> =>
      mine().selectAll().orderBy('name').limit(slice.per_page).offset(offsetOf(slice)).execute(),
    insert: (row: Omit<Insertable<Tables['audit_streams']>, 'tenant_id'>) =>
      context.insert('audit_streams', row).execute(),
    save: (uid: string, change: Updateable<Tables['audit_streams']>) =>
      context.update('audit_streams').set(change).where('uid', '=', uid).execute(),
    remove: (uid: string) => isOne(context.remove('audit_streams').where('uid', '=', uid)),
    /**
     * Saves the result of a delivery. False: another node has the stream, its receiver changed, or it is
     * gone.
     */
    saveAttempt: (
      { uid, node, receiver }: Pick<AuditStreamRow, 'uid' | 'node' | 'receiver'>,
      change: Updateable<Tables['audit_streams']>,
    ) =>
      isOne(
        context
          .update('audit_streams')
          .set(change)
          .where('uid', '=', uid)
          .where('node', '=', node)
          .where('receiver', '=', receiver),
      ),

    async letterCounts(streams: readonly string[]): Promise<Map<string, number>> {
      if (streams.length === 0) return new Map()
      const rows = await context
        .select('audit_dead_letters')
        .select((eb) => ['stream', eb.fn.countAll<number>().as('n')])
        .where('stream', 'in', streams)
        .groupBy('stream')
        .execute()
      return new Map(rows.map(({ stream, n }) => [stream, n]))
    },
    async letters(stream: string, slice: Slice): Promise<{ items: DeadLetterRow[]; total: number }> {
      const items = await letters(stream)
        .selectAll()
        .orderBy('id')
        .limit(slice.per_page)
        .offset(offsetOf(slice))
        .execute()
      const { n } = await letters(stream)
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return { items, total: n }
    },
    /** Queues this dead letter, or all that can be sent again. */
    async queueLetters(stream: string, id: number | undefined): Promise<DeadLetterRow[]> {
      const all = context
        .update('audit_dead_letters')
        .set({ queued: 1 })
        .where('stream', '=', stream)
        .where('reason', '=', 'unsent')
      return (id === undefined ? all : all.where('id', '=', id)).returningAll().execute()
    },
    queuedLetter: (stream: string): Promise<DeadLetterRow | undefined> =>
      letters(stream).selectAll().where('queued', '=', 1).orderBy('id').limit(1).executeTakeFirst(),
    newestLetter: (stream: string): Promise<DeadLetterRow | undefined> =>
      letters(stream).selectAll().orderBy('id', 'desc').limit(1).executeTakeFirst(),
    /** Adds a dead letter, and removes the oldest above the limit. */
    async addLetter(letter: NewLetter, most: number): Promise<void> {
      await context.insert('audit_dead_letters', letter).execute()
      const edge = await letters(letter.stream)
        .select('id')
        .orderBy('id', 'desc')
        .limit(1)
        .offset(most)
        .executeTakeFirst()
      if (edge)
        await context
          .remove('audit_dead_letters')
          .where('stream', '=', letter.stream)
          .where('id', '<=', edge.id)
          .execute()
    },
    saveLetter: (id: number, change: Updateable<Tables['audit_dead_letters']>) =>
      context.update('audit_dead_letters').set(change).where('id', '=', id).execute(),
    removeLetter: (id: number) => context.remove('audit_dead_letters').where('id', '=', id).execute(),
  }
}

/** Streams of all namespaces, for the node that delivers them. */
export function auditStreamQueue({ db, reader }: AllNamespaces) {
  return {
    /**
     * Enabled streams that have something to send, are due, and belong to no other node, longest waiting
     * first.
     */
    async due(node: string, now: string, busy: readonly string[], limit: number): Promise<string[]> {
      const query = reader
        .selectFrom('audit_streams')
        .leftJoin('audit_heads', 'audit_heads.tenant_id', 'audit_streams.tenant_id')
        .select('audit_streams.uid')
        .where('audit_streams.enable', '=', 1)
        .where('audit_streams.retry_at', '<=', now)
        .where((eb) =>
          eb.or([
            eb('audit_heads.seq', '>', eb.ref('audit_streams.sent_seq')),
            eb.exists(
              eb
                .selectFrom('audit_dead_letters')
                .select('audit_dead_letters.id')
                .whereRef('audit_dead_letters.stream', '=', 'audit_streams.uid')
                .where('audit_dead_letters.queued', '=', 1),
            ),
          ]),
        )
        .where(free(node))
        .orderBy('audit_streams.attempted_at')
        .orderBy('audit_streams.uid')
        .limit(limit)
      const rows = await (
        busy.length === 0 ? query : query.where('audit_streams.uid', 'not in', busy)
      ).execute()
      return rows.map(({ uid }) => uid)
    },
    /** Takes a stream for the node. Undefined: another node has it, or it is no longer due. */
    claim: (uid: string, node: string, now: string): Promise<AuditStreamRow | undefined> =>
      db
        .updateTable('audit_streams')
        .set({ node, attempted_at: now })
        .where('uid', '=', uid)
        .where('enable', '=', 1)
        .where('retry_at', '<=', now)
        .where(free(node))
        .returningAll()
        .executeTakeFirst(),
    release: (node: string) =>
      db.updateTable('audit_streams').set({ node: '' }).where('node', '=', node).execute(),
    async figures(): Promise<{ sending: number; failing: number }> {
      const rows = await reader
        .selectFrom('audit_streams')
        .select((eb) => [
          eb.fn.countAll<number>().as('all'),
          eb.fn.count<number>('uid').filterWhere('failures', '>', 0).as('failing'),
        ])
        .where('enable', '=', 1)
        .executeTakeFirstOrThrow()
      return { sending: rows.all - rows.failing, failing: rows.failing }
    },
  }
}

const free = (node: string) =>
  sql<boolean>`(audit_streams.node = '' or audit_streams.node = ${node}
    or not exists (select 1 from nodes where nodes.id = audit_streams.node))`
