// Devices of one namespace. Presence (last_seen, online) is written in batches by presence.ts in this room;
// lists are planned in device-list.ts.
import type { DeviceStatus } from '@hawser/contract/devices'
import type { Insertable, Updateable } from 'kysely'
import { held, type Context } from './context.ts'
import { listDevices, tagsInTallies, type DeviceQuery } from './device-list.ts'
import type { DeviceRow, Tables } from './tables.ts'

export type { DeviceRow }

export function deviceStore(context: Context, tenant_id: string) {
  const { db, reader } = context
  const mine = () => db.selectFrom('devices').selectAll().where('tenant_id', '=', tenant_id)
  return {
    find: (uid: string): Promise<DeviceRow | undefined> =>
      held(context, mine().where('uid', '=', uid)).executeTakeFirst(),
    findMany: (uids: readonly string[]): Promise<DeviceRow[]> =>
      uids.length === 0 ? Promise.resolve([]) : mine().where('uid', 'in', uids).execute(),
    findAcceptedByName: (name: string): Promise<DeviceRow | undefined> =>
      mine().where('status', '=', 'accepted').where('name', '=', name).executeTakeFirst(),
    findAcceptedByMac: (mac: string): Promise<DeviceRow | undefined> =>
      mine().where('status', '=', 'accepted').where('mac', '=', mac).executeTakeFirst(),
    acceptedByMacs: (macs: readonly string[]): Promise<DeviceRow[]> =>
      macs.length === 0
        ? Promise.resolve([])
        : mine().where('status', '=', 'accepted').where('mac', 'in', macs).execute(),

    /** The containers of a connector. */
    ofConnector: (connector: string): Promise<DeviceRow[]> =>
      mine().where('connector', '=', connector).execute(),

    insert: (row: Omit<Insertable<Tables['devices']>, 'tenant_id'>) =>
      db
        .insertInto('devices')
        .values({ ...row, tenant_id })
        .execute(),
    save: (uid: string, change: Updateable<Tables['devices']>) =>
      db
        .updateTable('devices')
        .set(change)
        .where('tenant_id', '=', tenant_id)
        .where('uid', '=', uid)
        .execute(),
    /** The number of a new tunnel. */
    async claimTunnel(uid: string): Promise<number | undefined> {
      const row = await db
        .updateTable('devices')
        .set((eb) => ({ tunnel: eb('tunnel', '+', 1) }))
        .where('tenant_id', '=', tenant_id)
        .where('uid', '=', uid)
        .returning('tunnel')
        .executeTakeFirst()
      return row?.tunnel
    },
    async remove(uid: string): Promise<boolean> {
      return (
        (
          await db
            .deleteFrom('devices')
            .where('tenant_id', '=', tenant_id)
            .where('uid', '=', uid)
            .executeTakeFirst()
        ).numDeletedRows === 1n
      )
    },

    /** Every accepted device but these becomes pending; gives the uids of those that did. */
    async keepAccepted(uids: readonly string[], now: string): Promise<string[]> {
      const rows = await db
        .updateTable('devices')
        .set({ status: 'pending', status_update_at: now })
        .where('tenant_id', '=', tenant_id)
        .where('status', '=', 'accepted')
        .$if(uids.length > 0, (query) => query.where('uid', 'not in', uids))
        .returning('uid')
        .execute()
      return rows.map((row) => row.uid)
    },

    list: (query: DeviceQuery) => listDevices(context, tenant_id, query),

    /** The devices with the most sessions. */
    async mostUsed(limit: number): Promise<DeviceRow[]> {
      const used = await reader
        .selectFrom('sessions')
        .innerJoin('devices', 'devices.uid', 'sessions.device_uid')
        .select('sessions.device_uid')
        .where('sessions.tenant_id', '=', tenant_id)
        .where('devices.tenant_id', '=', tenant_id)
        .groupBy('sessions.device_uid')
        .orderBy((eb) => eb.fn.countAll(), 'desc')
        .orderBy('sessions.device_uid')
        .limit(limit)
        .execute()
      const rows = await this.findMany(used.map((row) => row.device_uid))
      return used.flatMap(({ device_uid }) => rows.filter((row) => row.uid === device_uid))
    },

    /** Counters by subject; see `tallies`. */
    async tallies(): Promise<Map<string, number>> {
      const rows = await db
        .selectFrom('tallies')
        .select(['subject', 'n'])
        .where('tenant_id', '=', tenant_id)
        .where('subject', 'not like', 'tag.%')
        .execute()
      return new Map(rows.map((row) => [row.subject, row.n]))
    },

    /** Tags that devices carry. */
    tags: (): Promise<string[]> => tagsInTallies(db, tenant_id),

    /** The devices that carry a tag; a namespace's own rename or removal of it walks over them. */
    withTag: (tag: string): Promise<{ uid: string; tags: string }[]> =>
      db
        .selectFrom('device_tags')
        .innerJoin('devices', 'devices.id', 'device_tags.device_id')
        .select(['devices.uid', 'devices.tags'])
        .where('device_tags.tenant_id', '=', tenant_id)
        .where('tag', '=', tag)
        .$if(context.holds, (query) => query.forNoKeyUpdate('devices'))
        .execute(),

    async countWithStatus(status: DeviceStatus): Promise<number> {
      const row = await db
        .selectFrom('tallies')
        .select('n')
        .where('tenant_id', '=', tenant_id)
        .where('subject', '=', `devices.${status}`)
        .executeTakeFirst()
      return row?.n ?? 0
    },
  }
}

export type DeviceStore = ReturnType<typeof deviceStore>
