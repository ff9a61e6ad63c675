// Second factors of users: the last time step used, recovery codes, and drafts. Part of the store of users
// (users.ts).
import type { Selectable } from 'kysely'
import { isOne, type ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export function secondFactorStore({ db }: ServerContext) {
  return {
    /**
     * Remembers that the code of this time step was used; false when one of that step or a later one was used
     * before.
     */
    spendStep: (id: string, step: number) =>
      isOne(
        db.updateTable('users').set({ mfa_step: step }).where('id', '=', id).where('mfa_step', '<', step),
      ),

    async recoveryCodes(user_id: string): Promise<string[]> {
      const rows = await db
        .selectFrom('mfa_recovery_codes')
        .select('hash')
        .where('user_id', '=', user_id)
        .execute()
      return rows.map(({ hash }) => hash)
    },

    async setRecoveryCodes(user_id: string, hashes: readonly string[]): Promise<void> {
      await db.deleteFrom('mfa_recovery_codes').where('user_id', '=', user_id).execute()
      if (hashes.length > 0)
        await db
          .insertInto('mfa_recovery_codes')
          .values(hashes.map((hash) => ({ user_id, hash })))
          .execute()
    },

    /** Spends a recovery code, also in what an undo would restore; false when there is none left. */
    async spendRecoveryCode(user_id: string, hash: string): Promise<boolean> {
      const code = db.deleteFrom('mfa_recovery_codes').where('user_id', '=', user_id).where('hash', '=', hash)
      if (!(await isOne(code))) return false
      await db
        .updateTable('identity_changes')
        .set((eb) => ({
          mfa_recovery_codes: eb.fn<string>('replace', ['mfa_recovery_codes', eb.val(hash), eb.val('')]),
        }))
        .where('user_id', '=', user_id)
        .execute()
      return true
    },

    async saveDraft(draft: Selectable<Tables['mfa_drafts']>): Promise<void> {
      const { user_id: _, ...change } = draft
      await db
        .insertInto('mfa_drafts')
        .values(draft)
        .onConflict((oc) => oc.column('user_id').doUpdateSet(change))
        .execute()
    },

    findDraft: (user_id: string) =>
      db.selectFrom('mfa_drafts').selectAll().where('user_id', '=', user_id).executeTakeFirst(),
    removeDraft: (user_id: string) => db.deleteFrom('mfa_drafts').where('user_id', '=', user_id).execute(),
  }
}
