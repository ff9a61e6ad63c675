// Devices of one namespace. presence.ts writes last_seen and online in batches; device-list.ts plans lists.
import type { DeviceStatus } from '@hawser/contract/devices'
import { sql, type Insertable, type Updateable } from 'kysely'
import { isOne, locked, type AllNamespaces, type NamespaceContext } from './context.ts'
import { tagsInTallies } from './device-counts.ts'
import type { DeviceQuery } from './device-list.ts'
import type { DeviceRow, Tables } from './tables.ts'

export type { DeviceRow }

const mostAtOnce = 1_000

export function deviceStore(
  context: NamespaceContext,
  list: (query: DeviceQuery) => Promise<{ items: DeviceRow[]; total: number }>,
) {
  const mine = () => context.select('devices').selectAll()
  return {
    ...containerDevices(context),
    ...counted(context),
    find: (uid: string): Promise<DeviceRow | undefined> =>
      locked(context, mine().where('uid', '=', uid)).executeTakeFirst(),
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

    acceptedByNames: (names: readonly string[]): Promise<DeviceRow[]> =>
      names.length === 0
        ? Promise.resolve([])
        : mine().where('status', '=', 'accepted').where('name', 'in', names).execute(),

    insert: (row: Omit<Insertable<Tables['devices']>, 'tenant_id'>) =>
      context.insert('devices', row).execute(),
    save: (uid: string, change: Updateable<Tables['devices']>) =>
      context.update('devices').set(change).where('uid', '=', uid).execute(),
    /** The number of a new tunnel; undefined if the device is gone or rejected. */
    async claimTunnel(uid: string): Promise<number | undefined> {
      const row = await context
        .update('devices')
        .set((eb) => ({ tunnel: eb('tunnel', '+', 1) }))
        .where('uid', '=', uid)
        .where('status', '<>', 'rejected')
        .returning('tunnel')
        .executeTakeFirst()
      return row?.tunnel
    },
    remove: (uid: string) => isOne(context.remove('devices').where('uid', '=', uid)),

    /** Makes every other accepted device pending; returns their uids. */
    async keepAccepted(uids: readonly string[], now: string): Promise<string[]> {
      const rows = await context
        .update('devices')
        .set({ status: 'pending', status_update_at: now, decided: 1 })
        .where('status', '=', 'accepted')
        .$if(uids.length > 0, (query) => query.where('uid', 'not in', uids))
        .returning('uid')
        .execute()
      return rows.map((row) => row.uid)
    },

    list,

    async mostUsed(limit: number): Promise<DeviceRow[]> {
      const used = await context
        .read('sessions')
        .select('device_uid')
        .where('device_uid', 'in', context.read('devices').select('uid'))
        .groupBy('device_uid')
        .orderBy((eb) => eb.fn.countAll(), 'desc')
        .orderBy('device_uid')
        .limit(limit)
        .execute()
      const rows = await this.findMany(used.map((row) => row.device_uid))
      return used.flatMap(({ device_uid }) => rows.filter((row) => row.uid === device_uid))
    },
  }
}

export type DeviceStore = ReturnType<typeof deviceStore>

/**
 * Devices that are containers. Conditions on the status are literals, so that both databases use their index.
 */
function containerDevices(context: NamespaceContext) {
  const mine = () => context.select('devices').selectAll()
  return {
    ofConnector: (connector: string): Promise<DeviceRow[]> =>
      mine()
        .where('connector', '=', connector)
        .where(sql<boolean>`status <> 'removed'`)
        .execute(),
    /** Removed devices that were one of these containers or share a name with one, oldest first. */
    async goneOfConnector(
      connector: string,
      like?: readonly { readonly mac: string; readonly name: string }[],
    ): Promise<DeviceRow[]> {
      if (like?.length === 0) return []
      const rows = await mine()
        .where('connector', '=', connector)
        .where(sql<boolean>`status = 'removed'`)
        .$if(like !== undefined, (query) =>
          query.where((eb) =>
            eb.or([
              eb('mac', 'in', like?.map(({ mac }) => mac) ?? []),
              eb('container', 'in', like?.map(({ name }) => name) ?? []),
            ]),
          ),
        )
        .orderBy('status_update_at', 'desc')
        .limit(mostAtOnce)
        .execute()
      return rows.toReversed()
    },
    /** Accepted containers of a connector, or of agents (null), whose device names are to follow theirs. */
    toRename: (connector: string | null): Promise<DeviceRow[]> =>
      locked(
        context,
        mine()
          .where(sql<boolean>`container <> name and named = 0 and status = 'accepted'`)
          .where('container', '<>', '')
          .where('connector', connector === null ? 'is' : '=', connector)
          .orderBy('id')
          .limit(mostAtOnce),
      ).execute(),
    /**
     * Removes devices of gone containers that had no sessions, except the newest ones, in all and per
     * container name.
     */
    async forgetGone(connector: string, most: number): Promise<void> {
      const gone = await context
        .select('devices')
        .select(['uid', 'container'])
        .where('connector', '=', connector)
        .where(sql<boolean>`status = 'removed'`)
        .orderBy('status_update_at', 'desc')
        .orderBy('id', 'desc')
        .limit(3 * mostAtOnce)
        .execute()
      if (gone.length === 0) return
      const uids = gone.map(({ uid }) => uid)
      const sessions = await context
        .select('sessions')
        .select('device_uid')
        .distinct()
        .where('device_uid', 'in', uids)
        .execute()
      const used = new Set(sessions.map(({ device_uid }) => device_uid))
      const names = new Set<string | null>()
      const extra = gone
        .filter(({ uid }) => !used.has(uid))
        .filter(({ container }, at) => at >= most || names.size === names.add(container).size)
      if (extra.length > 0)
        await context
          .remove('devices')
          .where(
            'uid',
            'in',
            extra.map(({ uid }) => uid),
          )
          .execute()
    },
  }
}

function counted(context: NamespaceContext) {
  return {
    async tallies(): Promise<Map<string, number>> {
      const rows = await context
        .select('tallies')
        .select(['subject', 'n'])
        .where('subject', 'not like', 'tag.%')
        .execute()
      return new Map(rows.map((row) => [row.subject, row.n]))
    },

    tags: (): Promise<string[]> => tagsInTallies(context.select('tallies')),

    withTag: (tag: string): Promise<{ uid: string; tags: string }[]> =>
      locked(
        context,
        context
          .select('devices')
          .select(['uid', 'tags'])
          .where('id', 'in', context.select('device_tags').select('device_id').where('tag', '=', tag)),
      ).execute(),

    async countWithStatus(status: DeviceStatus): Promise<number> {
      const row = await context
        .select('tallies')
        .select('n')
        .where('subject', '=', `devices.${status}`)
        .executeTakeFirst()
      return row?.n ?? 0
    },
  }
}

export function goneDeviceStore({ db }: AllNamespaces) {
  return {
    /** Removes devices whose containers are gone for longer and that had no sessions. */
    sweep: (before: string) =>
      db
        .deleteFrom('devices')
        .where(sql<boolean>`status = 'removed'`)
        .where('status_update_at', '<', before)
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('sessions')
                .select('sessions.uid')
                .whereRef('sessions.tenant_id', '=', 'devices.tenant_id')
                .whereRef('sessions.device_uid', '=', 'devices.uid'),
            ),
          ),
        )
        .execute(),
  }
}
