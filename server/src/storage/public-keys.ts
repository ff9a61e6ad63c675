// Public keys of one namespace.
import type { Group } from '@hawser/contract/filters'
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { isOne, locked, pageOf } from './context.ts'
import { jsonField, whereGroups, type Columns } from './filter-sql.ts'
import type { Tables } from './tables.ts'

export type PublicKeyRow = Selectable<Tables['public_keys']>

const text = (column: string) => ({ sql: sql.ref(`public_keys.${column}`), kind: 'text' }) as const
const columnsOf = (dialect: NamespaceContext['dialect']): Columns => ({
  name: text('name'),
  fingerprint: text('fingerprint'),
  username: text('username'),
  data: text('data'),
  tenant_id: text('tenant_id'),
  created_at: text('created_at'),
  owner: text('owner'),
  'filter.hostname': { sql: jsonField(dialect, 'public_keys.filter', 'hostname', 'text'), kind: 'text' },
})

export function publicKeyStore(context: NamespaceContext) {
  const mine = () => context.select('public_keys')
  return {
    find: (fingerprint: string): Promise<PublicKeyRow | undefined> =>
      locked(context, mine().selectAll().where('fingerprint', '=', fingerprint)).executeTakeFirst(),
    all: (): Promise<PublicKeyRow[]> => mine().selectAll().execute(),
    insert: (row: Omit<Insertable<Tables['public_keys']>, 'tenant_id'>) =>
      context.insert('public_keys', row).execute(),
    save: (fingerprint: string, change: Updateable<Tables['public_keys']>) =>
      context.update('public_keys').set(change).where('fingerprint', '=', fingerprint).execute(),
    removeOf: (owner: string) => context.remove('public_keys').where('owner', '=', owner).execute(),
    remove: (fingerprint: string) =>
      isOne(context.remove('public_keys').where('fingerprint', '=', fingerprint)),
    async list(groups: readonly Group[], slice: Slice) {
      const query = whereGroups(mine(), groups, columnsOf(context.dialect), context.dialect)
      return pageOf(query, slice, (all) => all.selectAll().orderBy('created_at').orderBy('fingerprint'))
    },
  }
}
