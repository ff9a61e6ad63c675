// Logins that were refused, by the reference that the client was shown.
import type { Insertable } from 'kysely'
import type { AllNamespaces, NamespaceContext, Slice } from './context.ts'
import { pageOf } from './context.ts'
import type { Tables } from './tables.ts'

const columns = ['reference', 'at', 'last_at', 'times', 'detail'] as const

export function refusalStore(context: NamespaceContext) {
  return {
    /** Adds to the row with the same reference, if there is one; the newest detail counts. */
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
    /** Newest first; those that were refused in this time. */
    async list(slice: Slice, { from, to }: { from?: string | undefined; to?: string | undefined } = {}) {
      const within = context
        .read('login_refusals')
        .$if(from !== undefined, (query) => query.where('last_at', '>=', from ?? ''))
        .$if(to !== undefined, (query) => query.where('at', '<=', to ?? ''))
      return pageOf(within, slice, (all) =>
        all
          .select([...columns])
          .orderBy('last_at', 'desc')
          .orderBy('reference'),
      )
    },
    /** Removes all but the newest. */
    async trim(most: number): Promise<void> {
      const oldest = await context
        .select('login_refusals')
        .select('last_at')
        .orderBy('last_at', 'desc')
        .offset(most)
        .limit(1)
        .executeTakeFirst()
      if (oldest) await context.remove('login_refusals').where('last_at', '<=', oldest.last_at).execute()
    },
  }
}

/** Of all namespaces. */
export function oldRefusalStore({ db }: AllNamespaces) {
  return {
    sweep: (before: string) => db.deleteFrom('login_refusals').where('last_at', '<', before).execute(),
  }
}

export type RefusalStore = ReturnType<typeof refusalStore>
