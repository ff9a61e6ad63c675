// Presence of devices, written in batches: one statement for a thousand devices, whatever their namespaces.
// The uid is derived from the namespace among other things, so it alone names one device of one namespace.
import { sql } from 'kysely'
import type { AllNamespaces } from './context.ts'

export interface PresenceRow {
  readonly uid: string
  readonly last_seen: string
  readonly online: boolean
  /** By a tunnel of this node's; otherwise by calls, which any node may get. */
  readonly tunnel?: boolean
  /** Which of the device's tunnels, where that is counted. */
  readonly number?: number
}

export function presenceStore({ db, dialect }: AllNamespaces) {
  return {
    /**
     * `node` is who writes: with several nodes a device belongs to the one that has its newest tunnel, whose
     * word counts, however late or early it comes. The node that a device is written to be on may say that it
     * is gone, also when a newer tunnel was numbered but never written. A device without a tunnel is gone
     * when nobody has seen it later than the one who misses it, and back when somebody sees it later.
     */
    async write(rows: readonly PresenceRow[], node = ''): Promise<void> {
      const batch = JSON.stringify(
        rows.map((row) => [row.uid, row.last_seen, row.online ? 1 : 0, row.tunnel ? 1 : 0, row.number ?? 0]),
      )
      if (dialect === 'sqlite')
        await sql`update devices set last_seen = seen.value ->> 1, online = seen.value ->> 2
          from json_each(${batch}) as seen where devices.uid = seen.value ->> 0`.execute(db)
      else
        await sql`update devices set online = (seen ->> 2)::integer,
            last_seen = case when seen ->> 3 = '1' then seen ->> 1
              else greatest(devices.last_seen, seen ->> 1) end,
            node = case when seen ->> 2 = '0' then '' when seen ->> 3 = '1' then ${node} else devices.node end
          from json_array_elements(${batch}::json) as seen
          where devices.uid = seen ->> 0 and case
            when seen ->> 3 = '1' and seen ->> 4 <> '0' then devices.tunnel = (seen ->> 4)::bigint
              or (seen ->> 2 = '0' and devices.node = ${node})
            when seen ->> 2 = '1'
              then seen ->> 3 = '1' or devices.online = 1 or devices.last_seen <= seen ->> 1
            when seen ->> 3 = '1' then devices.node = ${node}
            else devices.node = '' and devices.last_seen <= seen ->> 1 end`.execute(db)
    },

    /** Whoever has its tunnel. */
    markOffline: (uid: string, last_seen?: string) =>
      db
        .updateTable('devices')
        .set({ online: 0, node: '', ...(last_seen === undefined ? {} : { last_seen }) })
        .where('uid', '=', uid)
        .execute(),

    /** Those marked as online, oldest sign first. */
    online: () =>
      db
        .selectFrom('devices')
        .select(['uid', 'last_seen'])
        .where('online', '=', 1)
        .orderBy('last_seen')
        .execute(),

    /** Devices that a crash, or a node that is gone, left marked as online. */
    forgetOlderThan: (last_seen: string) =>
      db
        .updateTable('devices')
        .set({ online: 0, node: '' })
        .where('online', '=', 1)
        .where('last_seen', '<', last_seen)
        .execute(),
  }
}

export type PresenceStore = ReturnType<typeof presenceStore>
