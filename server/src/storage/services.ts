// Services of one namespace, and by their address for whoever asks at it.
import type { Insertable, Selectable, Updateable } from 'kysely'
import { isOne, locked, pageOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type ServiceRow = Selectable<Tables['services']>

export function serviceStore(context: NamespaceContext) {
  const mine = () => context.select('services')
  return {
    find: (id: string): Promise<ServiceRow | undefined> =>
      locked(context, mine().selectAll().where('id', '=', id)).executeTakeFirst(),
    findByAddress: (address: string): Promise<ServiceRow | undefined> =>
      locked(context, mine().selectAll().where('address', '=', address)).executeTakeFirst(),
    publicUrlOf: (device_uid: string): Promise<ServiceRow | undefined> =>
      mine().selectAll().where('device_uid', '=', device_uid).where('public_url', '=', 1).executeTakeFirst(),
    list: (
      slice: Slice,
      only: { readonly device_uid?: string | undefined; readonly audience?: ServiceRow['audience'] },
    ) => {
      let query = mine()
      if (only.device_uid !== undefined) query = query.where('device_uid', '=', only.device_uid)
      if (only.audience !== undefined) query = query.where('audience', '=', only.audience)
      return pageOf(query, slice, (all) => all.selectAll().orderBy('name').orderBy('id'))
    },
    async count(): Promise<number> {
      const counted = mine().select((eb) => eb.fn.countAll<number>().as('n'))
      return (await counted.executeTakeFirst())?.n ?? 0
    },
    insert: (row: Omit<Insertable<Tables['services']>, 'tenant_id'>) =>
      context.insert('services', row).execute(),
    save: (id: string, change: Updateable<Tables['services']>) =>
      context.update('services').set(change).where('id', '=', id).execute(),
    /** Stores the first certificate of this target; another node may have been quicker. */
    pin: ({ id, host, port, scheme }: Pick<ServiceRow, 'id' | 'host' | 'port' | 'scheme'>, pinned: string) =>
      isOne(
        context
          .update('services')
          .set({ pinned })
          .where('id', '=', id)
          .where('pinned', '=', '')
          .where('host', '=', host)
          .where('port', '=', port)
          .where('scheme', '=', scheme),
      ),
    remove: (id: string) => isOne(context.remove('services').where('id', '=', id)),
    moveToDevice: (from: string, to: string) =>
      context.update('services').set({ device_uid: to }).where('device_uid', '=', from).execute(),
  }
}

export function presentedServiceStore({ db }: AllNamespaces) {
  return {
    find: (address: string): Promise<ServiceRow | undefined> =>
      db.selectFrom('services').selectAll().where('address', '=', address).executeTakeFirst(),
    /** The addresses of services that are not over, the oldest first. */
    addresses: (now: string, most: number): Promise<Pick<ServiceRow, 'address' | 'tenant_id'>[]> =>
      db
        .selectFrom('services')
        .select(['address', 'tenant_id'])
        .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
        .orderBy('created_at')
        .orderBy('id')
        .limit(most)
        .execute(),
  }
}
