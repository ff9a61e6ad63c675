// The keys of a namespace for devices without an agent: those with which they may join, and the one key,
// sealed, with which we log in there.
import type { Insertable, Selectable } from 'kysely'
import type { NamespaceContext, Slice } from './context.ts'
import { insertNew, isOne, pageOf } from './context.ts'
import type { Tables } from './tables.ts'

export type EnrolmentKeyRow = Selectable<Tables['enrolment_keys']>

export function enrolmentKeyStore(context: NamespaceContext) {
  const mine = () => context.select('enrolment_keys')
  return {
    find: (fingerprint: string): Promise<EnrolmentKeyRow | undefined> =>
      mine().selectAll().where('fingerprint', '=', fingerprint).executeTakeFirst(),
    insert: (row: Omit<Insertable<Tables['enrolment_keys']>, 'tenant_id'>) =>
      context.insert('enrolment_keys', row).execute(),
    remove: (fingerprint: string) =>
      isOne(context.remove('enrolment_keys').where('fingerprint', '=', fingerprint)),
    list: (slice: Slice) =>
      pageOf(mine(), slice, (all) => all.selectAll().orderBy('created_at').orderBy('fingerprint')),
  }
}

export function loginKeyStore(context: NamespaceContext) {
  return {
    async find(): Promise<string | undefined> {
      const row = await context.select('login_keys').select('private_key').executeTakeFirst()
      return row?.private_key
    },
    /** Another node's key is left as it is. */
    keep: (private_key: string, created_at: string) =>
      insertNew(context.insert('login_keys', { private_key, created_at })),
  }
}
