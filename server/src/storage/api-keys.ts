// API keys: of one namespace, and by their hash for the gate, which learns the namespace from the key.
import type { apiKeySorts } from '@hawser/contract/api-keys'
import type { Insertable, Updateable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { isOne, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export function apiKeyStore(context: NamespaceContext) {
  const mine = () => context.select('api_keys')
  return {
    find: (name: string) => mine().selectAll().where('name', '=', name).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['api_keys']>, 'tenant_id'>) =>
      context.insert('api_keys', row).execute(),
    save: (name: string, change: Updateable<Tables['api_keys']>) =>
      context.update('api_keys').set(change).where('name', '=', name).execute(),
    remove: (name: string) => isOne(context.remove('api_keys').where('name', '=', name)),
    /** A key dies with the membership of the one who made it. */
    removeOf: (user_id: string) => context.remove('api_keys').where('created_by', '=', user_id).execute(),
    list: (slice: Slice, sort: (typeof apiKeySorts)[number], order: 'asc' | 'desc') =>
      pageOf(mine(), slice, (all) => all.selectAll().orderBy(sort, order).orderBy('name', order)),
  }
}
