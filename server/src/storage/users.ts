// Users, their recovery codes and MFA drafts. Usernames and e-mails arrive here in lower case.
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { ServerContext } from './context.ts'
import type { Tables } from './tables.ts'

export type UserRow = Selectable<Tables['users']>

export function userStore({ db }: ServerContext) {
  return {
    find: (id: string): Promise<UserRow | undefined> =>
      db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst(),

    /**
     * By username or by e-mail, also the one that counts while another one is shown. It means whoever has confirmed it
     * as an address. Else it means a confirmed account before others, a username before an address that is
     * claimed, and nobody where several claim it.
     */
    async findByIdentifier(identifier: string): Promise<UserRow | undefined> {
      const rows = await db
        .selectFrom('users')
        .selectAll()
        .where((eb) =>
          eb.or([
            eb('username', '=', identifier),
            eb('email', '=', identifier),
            eb('former_email', '=', identifier),
          ]),
        )
        .execute()
      const meant = (some: UserRow[]): UserRow | undefined =>
        some.find((row) => row.username === identifier) ?? (some.length === 1 ? some[0] : undefined)
      const confirmed = rows.filter((row) => row.confirmed === 1)
      const owner = confirmed.find((row) => (row.former_email ?? row.email) === identifier)
      return owner ?? meant(confirmed) ?? meant(rows.filter((row) => row.confirmed === 0))
    },

    findByUsername: (username: string): Promise<UserRow | undefined> =>
      db.selectFrom('users').selectAll().where('username', '=', username).executeTakeFirst(),

    /** By an e-mail of which somebody has shown that it is theirs. */
    async findByConfirmedEmail(email: string): Promise<UserRow | undefined> {
      const rows = await db
        .selectFrom('users')
        .selectAll()
        .where((eb) => eb.or([eb('email', '=', email), eb('former_email', '=', email)]))
        .execute()
      return rows.find((row) => row.confirmed === 1 && (row.former_email ?? row.email) === email)
    },

    /**
     * Which of these are taken by someone else, by the names of the fields. An address is taken by whoever has
     * confirmed it, also for as long as a change of it can be undone. A username is taken by another account's, and by
     * such an address.
     */
    async taken(
      fields: { username?: string | undefined; email?: string | undefined },
      except?: string,
    ): Promise<string[]> {
      const found: string[] = []
      for (const field of ['username', 'email'] as const) {
        const value = fields[field]
        if (value === undefined) continue
        const rows = await db
          .selectFrom('users')
          .select('id')
          .where('confirmed', '=', 1)
          .where((eb) => eb(eb.fn.coalesce('former_email', 'email'), '=', value))
          .unionAll(db.selectFrom('identity_changes').select('user_id as id').where('email', '=', value))
          .$if(field === 'username', (query) =>
            query.unionAll(db.selectFrom('users').select('id').where('username', '=', value)),
          )
          .execute()
        if (rows.some((row) => row.id !== except)) found.push(field)
      }
      return found
    },

    insert: (row: Insertable<Tables['users']>) => db.insertInto('users').values(row).execute(),

    save: (id: string, change: Updateable<Tables['users']>) =>
      db.updateTable('users').set(change).where('id', '=', id).execute(),

    /** The user as of now, whom nobody else changes until the transaction ends. */
    lock: (id: string): Promise<UserRow | undefined> =>
      db
        .updateTable('users')
        .set((eb) => ({ epoch: eb.ref('epoch') }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    /** A new password: every token that the user has is worth nothing from here on, but the one to keep. */
    savePassword: (id: string, password: string, kept_token: string | null = null) =>
      db
        .updateTable('users')
        .set((eb) => ({ password, kept_token, epoch: eb('epoch', '+', 1) }))
        .where('id', '=', id)
        .execute(),

    /** Ends every token that the user has, and gives the user as that leaves them. */
    endTokens: (id: string): Promise<UserRow | undefined> =>
      db
        .updateTable('users')
        .set((eb) => ({ kept_token: null, epoch: eb('epoch', '+', 1) }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    /** The same password, hashed anew; nothing happens when it was changed meanwhile. */
    replaceHash: (id: string, before: string, password: string) =>
      db.updateTable('users').set({ password }).where('id', '=', id).where('password', '=', before).execute(),

    /** Whether somebody still has a hash of bcrypt, from where they came from. */
    async anyBcrypt(): Promise<boolean> {
      return (
        (await db
          .selectFrom('users')
          .select('id')
          .where('password', 'like', '$2%')
          .limit(1)
          .executeTakeFirst()) !== undefined
      )
    },

    /**
     * Remembers that the code of this time step was used; false when one of that step or a later one was used
     * before.
     */
    async spendStep(id: string, step: number): Promise<boolean> {
      const result = await db
        .updateTable('users')
        .set({ mfa_step: step })
        .where('id', '=', id)
        .where('mfa_step', '<', step)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    remove: (id: string) => db.deleteFrom('users').where('id', '=', id).execute(),

    list: () =>
      db
        .selectFrom('users')
        .select(['id', 'username', 'email', 'confirmed', 'created_at'])
        .orderBy('username')
        .execute(),

    /** Whether there is a user who has not merely registered. */
    async anyFounder(): Promise<boolean> {
      return (
        (await db
          .selectFrom('users')
          .select('id')
          .where('registered', '=', 0)
          .limit(1)
          .executeTakeFirst()) !== undefined
      )
    },

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

    /**
     * Spends a recovery code, also in what an undo would bring back; false when there is no such one (any
     * more).
     */
    async spendRecoveryCode(user_id: string, hash: string): Promise<boolean> {
      const result = await db
        .deleteFrom('mfa_recovery_codes')
        .where('user_id', '=', user_id)
        .where('hash', '=', hash)
        .executeTakeFirst()
      if (result.numDeletedRows !== 1n) return false
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

export type UserStore = ReturnType<typeof userStore>
