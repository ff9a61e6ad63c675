// A user's credentials before a change, for as long as it can be undone, numbered in the order of the
// changes. Only the hash of the token that undoes one is stored.
import type { Insertable, Selectable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type IdentityChange = Selectable<Tables['identity_changes']>

export function identityChangeStore({ db }: ServerContext) {
  return {
    insert: (row: Omit<Insertable<Tables['identity_changes']>, 'id'>) =>
      db.insertInto('identity_changes').values(row).execute(),

    /** Removes the change and returns it to the first caller. */
    spend: (hash: string, now: string): Promise<IdentityChange | undefined> =>
      db
        .deleteFrom('identity_changes')
        .where('hash', '=', hash)
        .where('expires_at', '>', now)
        .returningAll()
        .executeTakeFirst(),

    removeAfter: (user_id: string, id: number) =>
      db.deleteFrom('identity_changes').where('user_id', '=', user_id).where('id', '>', id).execute(),

    /** For an epoch raised without a new password. */
    raiseEpochs: (user_id: string) =>
      db
        .updateTable('identity_changes')
        .set((eb) => ({ epoch: eb('epoch', '+', 1) }))
        .where('user_id', '=', user_id)
        .execute(),

    sweep: (now: string) => db.deleteFrom('identity_changes').where('expires_at', '<=', now).execute(),
  }
}
