// Accept rules of one namespace, in the order in which they are asked.
import type { Insertable, Selectable } from 'kysely'
import { pageOf, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type AcceptRuleRow = Selectable<Tables['accept_rules']>

export function acceptRuleStore(context: NamespaceContext) {
  const mine = () => context.select('accept_rules')
  const inOrder = (rules = mine()) => rules.selectAll().orderBy('priority').orderBy('id')
  return {
    all: (): Promise<AcceptRuleRow[]> => inOrder().execute(),
    async insert(row: Omit<Insertable<Tables['accept_rules']>, 'tenant_id' | 'id'>): Promise<number> {
      return (await context.insert('accept_rules', row).returning('id').executeTakeFirstOrThrow()).id
    },
    saveTags: (id: number, tags: string) =>
      context.update('accept_rules').set({ tags }).where('id', '=', id).execute(),
    async remove(id: number): Promise<boolean> {
      return (
        (await context.remove('accept_rules').where('id', '=', id).executeTakeFirst()).numDeletedRows === 1n
      )
    },
    list: (slice: Slice) => pageOf(mine(), slice, inOrder),
  }
}

export type AcceptRuleStore = ReturnType<typeof acceptRuleStore>
