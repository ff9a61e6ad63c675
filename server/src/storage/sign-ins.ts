// Where users are signed in. Ending a sign-in removes its row, which ends its tokens: the gate looks for the
// row at every request (callers.ts).
import type { Selectable } from 'kysely'
import { isOne, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type SignInRow = Selectable<Tables['sign_ins']>

export function signInStore({ db }: ServerContext) {
  return {
    insert: (row: SignInRow) => db.insertInto('sign_ins').values(row).execute(),

    of: (user_id: string, now: string): Promise<SignInRow[]> =>
      db
        .selectFrom('sign_ins')
        .selectAll()
        .where('user_id', '=', user_id)
        .where('expires_at', '>', now)
        .orderBy('used_at', 'desc')
        .orderBy('id')
        .execute(),

    async trim(user_id: string, most: number): Promise<void> {
      const kept = db
        .selectFrom('sign_ins')
        .select('id')
        .where('user_id', '=', user_id)
        .orderBy('used_at', 'desc')
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .limit(most)
      await db.deleteFrom('sign_ins').where('user_id', '=', user_id).where('id', 'not in', kept).execute()
    },

    touch: (id: string, used_from: string, used_at: string) =>
      db
        .updateTable('sign_ins')
        .set({ used_from, used_at })
        .where('id', '=', id)
        .where('used_at', '<', used_at)
        .execute(),

    /** Prolongs a sign-in that would end before a token (`needed`). */
    prolong: (id: string, needed: string, expires_at: string) =>
      db
        .updateTable('sign_ins')
        .set({ expires_at })
        .where('id', '=', id)
        .where('expires_at', '<', needed)
        .execute(),

    /** Ends one of a user; false when there is no such one. */
    end: (user_id: string, id: string) =>
      isOne(db.deleteFrom('sign_ins').where('user_id', '=', user_id).where('id', '=', id)),

    async endOthers(user_id: string, kept: string): Promise<number> {
      const result = await db
        .deleteFrom('sign_ins')
        .where('user_id', '=', user_id)
        .where('id', '<>', kept)
        .executeTakeFirst()
      return Number(result.numDeletedRows)
    },

    sweep: (now: string) => db.deleteFrom('sign_ins').where('expires_at', '<=', now).execute(),
  }
}
