// Container-engine connectors of one namespace, and which of all namespaces are switched on.
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Slice } from './context.ts'
import { isOne, flag, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export type ConnectorRow = Selectable<Tables['connectors']>

export function connectorStore(context: NamespaceContext) {
  const mine = () => context.select('connectors')
  return {
    find: (uid: string): Promise<ConnectorRow | undefined> =>
      mine().selectAll().where('uid', '=', uid).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['connectors']>, 'tenant_id'>) =>
      context.insert('connectors', row).execute(),
    save: (uid: string, change: Updateable<Tables['connectors']>) =>
      context.update('connectors').set(change).where('uid', '=', uid).execute(),
    remove: (uid: string) => isOne(context.remove('connectors').where('uid', '=', uid)),
    /** Saves what its supervisor found, unless the connector was switched off. */
    saveState: (uid: string, state: string, message: string) =>
      context
        .update('connectors')
        .set({ state, message })
        .where('uid', '=', uid)
        .where('enable', '=', 1)
        .execute(),
    /** Another node's identity is left as it is. */
    keepIdentity: (uid: string, identity: string) =>
      context
        .update('connectors')
        .set({ identity })
        .where('uid', '=', uid)
        .where('identity', 'is', null)
        .execute(),
    async list(slice: Slice, enable: boolean | undefined) {
      const query = enable === undefined ? mine() : mine().where('enable', '=', flag(enable))
      return pageOf(query, slice, (all) => all.selectAll().orderBy('created_at').orderBy('uid'))
    },
  }
}

export function enabledConnectorStore({ db }: AllNamespaces) {
  return {
    list: (): Promise<{ uid: string; tenant_id: string }[]> =>
      db
        .selectFrom('connectors')
        .select(['uid', 'tenant_id'])
        .where('enable', '=', 1)
        .orderBy('uid')
        .execute(),
  }
}
