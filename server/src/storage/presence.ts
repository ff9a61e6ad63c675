// Presence of devices, written in batches: one statement for a thousand devices, whatever their namespaces. The uid is
// derived from the namespace among other things, so it alone names one device of one namespace.
import { sql } from 'kysely'
import type { Context } from './context.ts'

export interface PresenceRow {
  readonly uid: string
  readonly last_seen: string
  readonly online: boolean
}

export function presenceStore({ db, dialect }: Context) {
  return {
    async write(rows: readonly PresenceRow[]): Promise<void> {
      const batch = JSON.stringify(rows.map((row) => [row.uid, row.last_seen, row.online ? 1 : 0]))
      if (dialect === 'sqlite')
        await sql`update devices set last_seen = seen.value ->> 1, online = seen.value ->> 2
          from json_each(${batch}) as seen where devices.uid = seen.value ->> 0`.execute(db)
      else
        await sql`update devices set last_seen = seen ->> 1, online = (seen ->> 2)::integer
          from json_array_elements(${batch}::json) as seen where devices.uid = seen ->> 0`.execute(db)
    },

    markOffline: (uid: string) => db.updateTable('devices').set({ online: 0 }).where('uid', '=', uid).execute(),

    /** Those marked as online, oldest sign first. */
    online: () => db.selectFrom('devices').select(['uid', 'last_seen']).where('online', '=', 1).orderBy('last_seen').execute(),

    /** Devices that a crash, or a node that is gone, left marked as online. */
    forgetOlderThan: (last_seen: string) =>
      db.updateTable('devices').set({ online: 0 }).where('online', '=', 1).where('last_seen', '<', last_seen).execute(),
  }
}

export type PresenceStore = ReturnType<typeof presenceStore>
