// Firewall rules of one namespace, in order of priority.
import type { Insertable, Selectable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { isOne, locked, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export type FirewallRow = Selectable<Tables['firewall_rules']>
export type FirewallChange = Omit<Insertable<Tables['firewall_rules']>, 'tenant_id' | 'id'>

export function firewallStore(context: NamespaceContext) {
  const mine = () => context.select('firewall_rules')
  return {
    find: (id: number): Promise<FirewallRow | undefined> =>
      locked(context, mine().selectAll().where('id', '=', id)).executeTakeFirst(),
    all: (): Promise<FirewallRow[]> => mine().selectAll().orderBy('priority').orderBy('id').execute(),
    active: (most: number): Promise<FirewallRow[]> =>
      mine().selectAll().where('active', '=', 1).orderBy('priority').orderBy('id').limit(most).execute(),
    async insert(row: FirewallChange): Promise<number> {
      const { id } = await context.insert('firewall_rules', row).returning('id').executeTakeFirstOrThrow()
      return id
    },
    save: (id: number, change: Partial<FirewallChange>) =>
      context.update('firewall_rules').set(change).where('id', '=', id).execute(),
    remove: (id: number) => isOne(context.remove('firewall_rules').where('id', '=', id)),
    list: (slice: Slice) => pageOf(mine(), slice, (all) => all.selectAll().orderBy('priority').orderBy('id')),
  }
}
