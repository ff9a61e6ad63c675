// Session events, numbered for each session and written in batches of many namespaces. The namespace of a row
// is that of its session; events of a deleted session are dropped.
import { sql, type Selectable } from 'kysely'
import type { AllNamespaces, NamespaceContext } from './context.ts'
import type { Tables } from './tables.ts'

export type SessionEventRow = Selectable<Tables['session_events']>

export function sessionEventBatchStore({ db, dialect }: AllNamespaces) {
  return {
    /** Inserts events, or updates those that are there. */
    async save(events: readonly Omit<SessionEventRow, 'tenant_id'>[]): Promise<void> {
      const batch = JSON.stringify(
        events.map((event) => [
          event.session_uid,
          event.seq,
          event.at,
          event.kind,
          event.subject,
          event.target,
          event.outcome,
          event.received,
          event.sent,
          event.sha256,
          event.why,
        ]),
      )
      const rows =
        dialect === 'sqlite'
          ? sql`json_each(${batch}) as event`
          : sql`json_array_elements(${batch}::json) as event (value)`
      const number = (at: number) => sql`cast(event.value ->> ${sql.lit(at)} as bigint)`
      await sql`insert into session_events (tenant_id, session_uid, seq, at, kind, subject, target, outcome,
          received, sent, sha256, why)
        select sessions.tenant_id, sessions.uid, ${number(1)}, event.value ->> 2, event.value ->> 3,
          event.value ->> 4, event.value ->> 5, event.value ->> 6, ${number(7)}, ${number(8)},
          event.value ->> 9, event.value ->> 10
        from ${rows} join sessions on sessions.uid = event.value ->> 0 where true
        on conflict (session_uid, seq) do update set outcome = excluded.outcome, received = excluded.received,
          sent = excluded.sent, why = excluded.why`.execute(db)
    },
  }
}

export function sessionEventStore(context: NamespaceContext) {
  return {
    /** 0: there is none. */
    async last(session_uid: string): Promise<number> {
      const row = await context
        .read('session_events')
        .select('seq')
        .where('session_uid', '=', session_uid)
        .orderBy('seq', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row?.seq ?? 0
    },
    list: (session_uid: string, after: number, limit: number): Promise<SessionEventRow[]> =>
      context
        .read('session_events')
        .selectAll()
        .where('session_uid', '=', session_uid)
        .where('seq', '>', after)
        .orderBy('seq')
        .limit(limit)
        .execute(),
  }
}
