// API keys: of one namespace, and by their hash for the gate, which learns the namespace from the key.
import type { apiKeySorts } from '@hawser/contract/api-keys'
import type { Insertable, Updateable } from 'kysely'
import type { Context, Slice } from './context.ts'
import { offsetOf } from './context.ts'
import type { Tables } from './tables.ts'

export function apiKeyStore({ db }: Context, tenant_id: string) {
  const mine = () => db.selectFrom('api_keys').where('tenant_id', '=', tenant_id)
  return {
    find: (name: string) => mine().selectAll().where('name', '=', name).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['api_keys']>, 'tenant_id'>) =>
      db
        .insertInto('api_keys')
        .values({ ...row, tenant_id })
        .execute(),
    save: (name: string, change: Updateable<Tables['api_keys']>) =>
      db
        .updateTable('api_keys')
        .set(change)
        .where('tenant_id', '=', tenant_id)
        .where('name', '=', name)
        .execute(),
    async remove(name: string): Promise<boolean> {
      return (
        (
          await db
            .deleteFrom('api_keys')
            .where('tenant_id', '=', tenant_id)
            .where('name', '=', name)
            .executeTakeFirst()
        ).numDeletedRows === 1n
      )
    },
    /** A key dies with the membership of the one who made it. */
    removeOf: (user_id: string) =>
      db
        .deleteFrom('api_keys')
        .where('tenant_id', '=', tenant_id)
        .where('created_by', '=', user_id)
        .execute(),
    async list(slice: Slice, sort: (typeof apiKeySorts)[number], order: 'asc' | 'desc') {
      const items = await mine()
        .selectAll()
        .orderBy(sort, order)
        .orderBy('name', order)
        .limit(slice.per_page)
        .offset(offsetOf(slice))
        .execute()
      const { n } = await mine()
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return { items, total: n }
    },
  }
}

export type ApiKeyStore = ReturnType<typeof apiKeyStore>
