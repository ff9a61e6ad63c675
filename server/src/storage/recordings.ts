// What the database knows of recordings: the sealed key that signs them, which have run out, and which are to
// be removed because their session is gone or they have run out. And of several nodes, which of them has one
// that is not finished.
import { sql, type Selectable } from 'kysely'
import type { AllNamespaces, ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function recordingKeyStore({ db }: ServerContext) {
  return {
    list: () =>
      db.selectFrom('recording_keys').selectAll().orderBy('created_at', 'desc').orderBy('type').execute(),
    /** Keeps the one that is there already: another node may have been quicker. */
    insert: (row: Selectable<Tables['recording_keys']>) =>
      db
        .insertInto('recording_keys')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
  }
}

/** Of all namespaces. */
export function recordingStore({ db }: AllNamespaces) {
  async function reject(sessions: readonly { tenant_id: string; uid: string }[]): Promise<void> {
    if (sessions.length === 0) return
    await db
      .insertInto('unwanted_recordings')
      .values(sessions.map(({ tenant_id, uid }) => ({ session_uid: uid, tenant_id })))
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
  return {
    /**
     * Recorded sessions that ended before this moment, the oldest first: from now on they have no
     * recording, and the one that they had is unwanted. Of two nodes, one gets each. In a transaction.
     */
    async expire(last_seen: string, limit: number): Promise<{ tenant_id: string; uid: string }[]> {
      const old = db
        .selectFrom('sessions')
        .select('uid')
        .where('recorded', '=', 1)
        .where('active', '=', 0)
        .where('last_seen', '<', last_seen)
        .orderBy('last_seen')
        .limit(limit)
      const expired = await db
        .updateTable('sessions')
        .set({ recorded: 0, index_at: null })
        .where('uid', 'in', old)
        .where('recorded', '=', 1)
        .returning(['tenant_id', 'uid'])
        .execute()
      await reject(expired)
      return expired
    },
    /**
     * Makes recordings unwanted, in the transaction that takes them from people: whatever happens then, a
     * sweep removes them.
     */
    reject,
    /**
     * Recordings that nobody may see; `exists`: their session is there again, with a recording. Those of
     * sessions that go on wait, because such a session may be recorded at any moment.
     */
    unwanted: (limit: number) =>
      db
        .selectFrom('unwanted_recordings')
        .leftJoin('sessions', (join) =>
          join
            .onRef('sessions.uid', '=', 'unwanted_recordings.session_uid')
            .on((on) => on.or([on('sessions.recorded', '=', 1), on('sessions.active', '=', 1)])),
        )
        .where((where) => where.or([where('sessions.uid', 'is', null), where('sessions.recorded', '=', 1)]))
        .select([
          'unwanted_recordings.tenant_id',
          'unwanted_recordings.session_uid',
          'sessions.uid as exists',
        ])
        .orderBy('unwanted_recordings.session_uid')
        .limit(limit)
        .execute(),
    forget: (session_uid: string) =>
      db.deleteFrom('unwanted_recordings').where('session_uid', '=', session_uid).execute(),
  }
}

interface Name {
  readonly tenant_id: string
  readonly session_uid: string
  readonly channel: number
}

/** Of several nodes on PostgreSQL: a recording that is not finished has one node that may finish it. */
export function unfinishedRecordingStore({ db }: AllNamespaces) {
  const row = ({ tenant_id, session_uid, channel }: Name) =>
    sql`tenant_id = ${tenant_id} and session_uid = ${session_uid} and channel = ${channel}`
  return {
    /**
     * It is this node's from now on: it was nobody's (`new`), its own, or of a node that is gone. Else it is
     * `theirs`.
     */
    async take({ tenant_id, session_uid, channel }: Name, node: string): Promise<'new' | 'ours' | 'theirs'> {
      const { rows } = await sql<{
        known: boolean
      }>`insert into unfinished_recordings as old (tenant_id, session_uid, channel, node)
        values (${tenant_id}, ${session_uid}, ${channel}, ${node})
        on conflict (session_uid, channel) do update set node = excluded.node
        where old.tenant_id = excluded.tenant_id
          and (old.node in (${node}, '') or not exists (select from nodes where nodes.id = old.node))
        returning xmax <> 0 as known`.execute(db)
      return rows[0] ? (rows[0].known ? 'ours' : 'new') : 'theirs'
    },
    /** It is finished; false if it was not this node's any more. */
    async end(name: Name, node: string): Promise<boolean> {
      const { rows } =
        await sql`delete from unfinished_recordings where ${row(name)} and node = ${node} returning channel`.execute(
          db,
        )
      return rows.length > 0
    },
    /** Nothing of it can be read here: whoever has its file may go on. */
    release: (name: Name, node: string) =>
      sql`update unfinished_recordings set node = '' where ${row(name)} and node = ${node}`.execute(db),
    /**
     * Some of those whose node is gone; they are this node's from now on, and nobody else is told of them.
     */
    async inherit(node: string, limit: number): Promise<Name[]> {
      const { rows } =
        await sql<Name>`update unfinished_recordings set node = ${node} where (session_uid, channel) in (
          select session_uid, channel from unfinished_recordings
          where node <> '' and not exists (select from nodes where nodes.id = unfinished_recordings.node)
          limit ${limit} for update skip locked)
        returning tenant_id, session_uid, channel`.execute(db)
      return rows
    },
    forget: (tenant_id: string, session_uid: string) =>
      db
        .deleteFrom('unfinished_recordings')
        .where('tenant_id', '=', tenant_id)
        .where('session_uid', '=', session_uid)
        .execute(),
  }
}

export type RecordingStore = ReturnType<typeof recordingStore>
