// What the database knows of recordings: the sealed key that signs them, which have run out, and which are to be removed
// because their session is gone.
import type { Selectable } from 'kysely'
import type { Context } from './context.ts'
import type { Tables } from './tables.ts'

export function recordingKeyStore({ db }: Context) {
  return {
    list: () => db.selectFrom('recording_keys').selectAll().orderBy('created_at', 'desc').orderBy('type').execute(),
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
export function recordingStore({ db }: Context) {
  return {
    /** Recorded sessions that ended before this moment, the oldest first. */
    endedBefore: (last_seen: string, limit: number) =>
      db
        .selectFrom('sessions')
        .select(['tenant_id', 'uid'])
        .where('recorded', '=', 1)
        .where('active', '=', 0)
        .where('last_seen', '<', last_seen)
        .orderBy('last_seen')
        .limit(limit)
        .execute(),
    /** Sessions that are gone; `exists`: it is there all the same. */
    unwanted: (limit: number) =>
      db
        .selectFrom('unwanted_recordings')
        .leftJoin('sessions', 'sessions.uid', 'unwanted_recordings.session_uid')
        .select(['unwanted_recordings.tenant_id', 'unwanted_recordings.session_uid', 'sessions.uid as exists'])
        .orderBy('unwanted_recordings.session_uid')
        .limit(limit)
        .execute(),
    forget: (session_uid: string) => db.deleteFrom('unwanted_recordings').where('session_uid', '=', session_uid).execute(),
  }
}

export type RecordingStore = ReturnType<typeof recordingStore>
