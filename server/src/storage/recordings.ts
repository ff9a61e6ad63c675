// The sealed key that signs recordings, which recordings have expired, which are to be removed, and which
// node has an unfinished one.
import { sql, type Selectable } from 'kysely'
import { insertNew, type AllNamespaces, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function recordingKeyStore({ db }: ServerContext) {
  return {
    list: () =>
      db.selectFrom('recording_keys').selectAll().orderBy('created_at', 'desc').orderBy('type').execute(),
    /** Another node's key is left as it is. */
    insert: (row: Selectable<Tables['recording_keys']>) =>
      insertNew(db.insertInto('recording_keys').values(row)),
  }
}

export function recordingStore({ db }: AllNamespaces) {
  async function reject(sessions: readonly { tenant_id: string; uid: string }[]): Promise<void> {
    if (sessions.length === 0) return
    await insertNew(
      db
        .insertInto('unwanted_recordings')
        .values(sessions.map(({ tenant_id, uid }) => ({ session_uid: uid, tenant_id }))),
    )
  }
  return {
    /**
     * Expires recorded sessions that ended before this moment, oldest first, and makes their recordings
     * unwanted. Of two nodes, one gets each. Needs a transaction.
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
     * Makes recordings unwanted in the transaction that hides them, so that a sweep removes them whatever
     * happens.
     */
    reject,
    /**
     * Recordings that nobody may see; `exists`: their session is back, with a recording. Live sessions wait,
     * because they may be recorded at any moment.
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

export function unfinishedRecordingStore({ db }: AllNamespaces) {
  const row = ({ tenant_id, session_uid, channel }: Name) =>
    sql`tenant_id = ${tenant_id} and session_uid = ${session_uid} and channel = ${channel}`
  return {
    /** Takes a recording that is nobody's (`new`), this node's, or a lost node's; else it is `theirs`. */
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
    /** False if the recording was no longer this node's. */
    async end(name: Name, node: string): Promise<boolean> {
      const { rows } =
        await sql`delete from unfinished_recordings where ${row(name)} and node = ${node} returning channel`.execute(
          db,
        )
      return rows.length > 0
    },
    /** The node that has the file may continue. */
    release: (name: Name, node: string) =>
      sql`update unfinished_recordings set node = '' where ${row(name)} and node = ${node}`.execute(db),
    /** Takes over some recordings of lost nodes; no other node gets them. */
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
