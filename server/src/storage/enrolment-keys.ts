// What devices without an agent need of a namespace: the keys with which they may join, and the one key,
// sealed, with which we log in there.
import type { Insertable, Selectable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export type EnrolmentKeyRow = Selectable<Tables['enrolment_keys']>

export function enrolmentKeyStore(context: NamespaceContext) {
  const mine = () => context.select('enrolment_keys')
  return {
    find: (fingerprint: string): Promise<EnrolmentKeyRow | undefined> =>
      mine().selectAll().where('fingerprint', '=', fingerprint).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['enrolment_keys']>, 'tenant_id'>) =>
      context.insert('enrolment_keys', row).execute(),
    async remove(fingerprint: string): Promise<boolean> {
      const result = await context
        .remove('enrolment_keys')
        .where('fingerprint', '=', fingerprint)
        .executeTakeFirst()
      return result.numDeletedRows === 1n
    },
    list: (slice: Slice) =>
      pageOf(mine(), slice, (all) => all.selectAll().orderBy('created_at').orderBy('fingerprint')),
  }
}

export type EnrolmentKeyStore = ReturnType<typeof enrolmentKeyStore>

export function loginKeyStore(context: NamespaceContext) {
  return {
    async find(): Promise<string | undefined> {
      const row = await context.select('login_keys').select('private_key').executeTakeFirst()
      return row?.private_key
    },
    /** Keeps the one that is there already: another call, or another node, may have been quicker. */
    keep: (private_key: string, created_at: string) =>
      context
        .insert('login_keys', { private_key, created_at })
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
  }
}

export type LoginKeyStore = ReturnType<typeof loginKeyStore>
