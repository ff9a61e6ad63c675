// Presence of devices, written in batches of a thousand across namespaces: the uid, derived from the
// namespace among other things, identifies a device by itself.
import { sql } from 'kysely'
import type { AllNamespaces } from './context.ts'

export interface PresenceRow {
  readonly uid: string
  readonly last_seen: string
  readonly online: boolean
  /** A tunnel of this node; otherwise calls, which any node may get. */
  readonly tunnel?: boolean
  readonly number?: number
}

export function presenceStore({ db, dialect }: AllNamespaces) {
  return {
    /**
     * `node` writes. With several nodes a device belongs to the one with its newest tunnel, whose word counts
     * in whatever order writes arrive. The recorded node may also report it gone when a newer tunnel was
     * numbered but never written. Without a tunnel, a device is gone when nobody has seen it later, and back
     * when somebody sees it later.
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

    /** Whichever node has its tunnel. */
    markOffline: (uid: string, last_seen?: string) =>
      db
        .updateTable('devices')
        .set({ online: 0, node: '', ...(last_seen === undefined ? {} : { last_seen }) })
        .where('uid', '=', uid)
        .execute(),

    online: () =>
      db
        .selectFrom('devices')
        .select(['uid', 'last_seen'])
        .where('online', '=', 1)
        .orderBy('last_seen')
        .execute(),

    /** Marks devices offline that a crash, or a lost node, left online. */
    forgetOlderThan: (last_seen: string) =>
      db
        .updateTable('devices')
        .set({ online: 0, node: '' })
        .where('online', '=', 1)
        .where('last_seen', '<', last_seen)
        .execute(),
  }
}
