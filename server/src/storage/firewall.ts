// Firewall rules of one namespace, in the order in which they are asked.
import type { Insertable, Selectable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { locked, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export type FirewallRow = Selectable<Tables['firewall_rules']>
export type FirewallChange = Omit<Insertable<Tables['firewall_rules']>, 'tenant_id' | 'id'>

export function firewallStore(context: NamespaceContext) {
  const mine = () => context.select('firewall_rules')
  return {
    find: (id: number): Promise<FirewallRow | undefined> =>
      locked(context, mine().selectAll().where('id', '=', id)).executeTakeFirst(),
    all: (): Promise<FirewallRow[]> => mine().selectAll().orderBy('priority').orderBy('id').execute(),
    /** Those that are asked when somebody connects, at most so many. */
    active: (most: number): Promise<FirewallRow[]> =>
      mine().selectAll().where('active', '=', 1).orderBy('priority').orderBy('id').limit(most).execute(),
    async insert(row: FirewallChange): Promise<number> {
      const { id } = await context.insert('firewall_rules', row).returning('id').executeTakeFirstOrThrow()
      return id
    },
    save: (id: number, change: Partial<FirewallChange>) =>
      context.update('firewall_rules').set(change).where('id', '=', id).execute(),
    async remove(id: number): Promise<boolean> {
      return (
        (await context.remove('firewall_rules').where('id', '=', id).executeTakeFirst()).numDeletedRows === 1n
      )
    },
    list: (slice: Slice) => pageOf(mine(), slice, (all) => all.selectAll().orderBy('priority').orderBy('id')),
  }
}

export type FirewallStore = ReturnType<typeof firewallStore>
