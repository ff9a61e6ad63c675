// Accept rules of one namespace, in the order in which they are asked.
import type { Insertable, Selectable } from 'kysely'
import { isOne, pageOf, type NamespaceContext, type Slice } from './context.ts'
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
    remove: (id: number) => isOne(context.remove('accept_rules').where('id', '=', id)),
    list: (slice: Slice) => pageOf(mine(), slice, inOrder),
  }
}
