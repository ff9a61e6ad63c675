// Enrolment tokens: of one namespace, and by their hash for Auth device.
import { roles } from '@hawser/contract/access'
import type { Insertable, Selectable } from 'kysely'
import { isOne, pageOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type EnrolmentTokenRow = Selectable<Tables['enrolment_tokens']>

export function enrolmentTokenStore(context: NamespaceContext) {
  const mine = () => context.select('enrolment_tokens')
  return {
    insert: (row: Omit<Insertable<Tables['enrolment_tokens']>, 'tenant_id'>) =>
      context.insert('enrolment_tokens', row).execute(),
    /**
     * Counts one more device, in one statement, so that parallel calls cannot share a number. Returns the
     * number of the device; undefined when the token has expired, is used up or is gone.
     */
    async spend(id: string, now: string): Promise<number | undefined> {
      const row = await context
        .update('enrolment_tokens')
        .set((eb) => ({ used: eb('used', '+', 1), last_used_at: now }))
        .where('id', '=', id)
        .where((eb) => eb.or([eb('most_devices', '=', 0), eb('used', '<', eb.ref('most_devices'))]))
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        .returning('used')
        .executeTakeFirst()
      return row?.used
    },
    saveTags: (id: string, tags: string) =>
      context.update('enrolment_tokens').set({ tags }).where('id', '=', id).execute(),
    remove: (id: string) => isOne(context.remove('enrolment_tokens').where('id', '=', id)),
    /** A token dies with the membership of the one who made it. */
    removeOf: (user_id: string) =>
      context.remove('enrolment_tokens').where('created_by', '=', user_id).execute(),
    all: (): Promise<EnrolmentTokenRow[]> => mine().selectAll().execute(),
    list: (slice: Slice) =>
      pageOf(mine(), slice, (all) => all.selectAll().orderBy('created_at').orderBy('id')),
  }
}

const administrators = roles.slice(roles.indexOf('administrator'))

export function presentedTokenStore({ db }: AllNamespaces) {
  return {
    /** A token whose creator may still create one. */
    find: (hash: string): Promise<EnrolmentTokenRow | undefined> =>
      db
        .selectFrom('enrolment_tokens')
        .innerJoin('members', (join) =>
          join
            .onRef('members.tenant_id', '=', 'enrolment_tokens.tenant_id')
            .onRef('members.user_id', '=', 'enrolment_tokens.created_by'),
        )
        .selectAll('enrolment_tokens')
        .where('enrolment_tokens.hash', '=', hash)
        .where('members.role', 'in', administrators)
        .executeTakeFirst(),
  }
}
