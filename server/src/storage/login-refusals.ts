// Logins that were refused, by the reference that the client was shown.
import type { Insertable } from 'kysely'
import type { AllNamespaces, NamespaceContext } from './context.ts'
import type { Tables } from './tables.ts'

const columns = ['reference', 'at', 'last_at', 'times', 'detail'] as const

export function refusalStore(context: NamespaceContext) {
  return {
    /** Adds to the row with the same reference; the newest detail counts. */
    add: (row: Omit<Insertable<Tables['login_refusals']>, 'tenant_id'>) =>
      context
        .insert('login_refusals', row)
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'reference']).doUpdateSet((eb) => ({
            last_at: eb.ref('excluded.last_at'),
            detail: eb.ref('excluded.detail'),
            times: eb('login_refusals.times', '+', eb.ref('excluded.times')),
          })),
        )
        .execute(),
    find: (reference: string) =>
      context
        .select('login_refusals')
        .select([...columns])
        .where('reference', '=', reference)
        .executeTakeFirst(),
    /** The refusals of this time, newest first. */
    list: ({ from, to }: { from?: string | undefined; to?: string | undefined } = {}) =>
      context
        .select('login_refusals')
        .select([...columns])
        .$if(from !== undefined, (query) => query.where('last_at', '>=', from ?? ''))
        .$if(to !== undefined, (query) => query.where('at', '<=', to ?? ''))
        .orderBy('last_at', 'desc')
        .orderBy('reference')
        .execute(),
    /** Removes all but the newest. */
    trim(most: number) {
      const times = context.select('login_refusals').select('last_at').orderBy('last_at', 'desc')
      return context.remove('login_refusals').where('last_at', '<=', times.offset(most).limit(1)).execute()
    },
  }
}

export function oldRefusalStore({ db }: AllNamespaces) {
  return {
    sweep: (before: string) => db.deleteFrom('login_refusals').where('last_at', '<', before).execute(),
  }
}
