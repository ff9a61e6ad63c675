// Users. Usernames and e-mails arrive here in lower case.
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { ServerContext } from './context.ts'
import { secondFactorStore } from './second-factors.ts'
import type { Tables } from './tables.ts'

export type UserRow = Selectable<Tables['users']>

export function userStore(context: ServerContext) {
  const { db } = context
  return {
    find: (id: string): Promise<UserRow | undefined> =>
      db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst(),

    /**
     * By username or e-mail address, also by the address that counts while another is shown. Order: the
     * account that has confirmed the address, other confirmed accounts, usernames, claims. Several claims of
     * one address match nobody.
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

    async findByConfirmedEmail(email: string): Promise<UserRow | undefined> {
      const rows = await db
        .selectFrom('users')
        .selectAll()
        .where((eb) => eb.or([eb('email', '=', email), eb('former_email', '=', email)]))
        .execute()
      return rows.find((row) => row.confirmed === 1 && (row.former_email ?? row.email) === email)
    },

    /**
     * Names the fields that are taken. An account has the address that it confirmed, also while a change of
     * it can be undone; a username is taken by another username or by such an address.
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

    lock: (id: string): Promise<UserRow | undefined> =>
      db
        .updateTable('users')
        .set((eb) => ({ epoch: eb.ref('epoch') }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    /** Ends every token of the user except `kept_token`. */
    savePassword: (id: string, password: string, kept_token: string | null = null) =>
      db
        .updateTable('users')
        .set((eb) => ({ password, kept_token, epoch: eb('epoch', '+', 1) }))
        .where('id', '=', id)
        .execute(),

    endTokens: (id: string): Promise<UserRow | undefined> =>
      db
        .updateTable('users')
        .set((eb) => ({ kept_token: null, epoch: eb('epoch', '+', 1) }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    /** Replaces the hash of an unchanged password. */
    replaceHash: (id: string, before: string, password: string) =>
      db.updateTable('users').set({ password }).where('id', '=', id).where('password', '=', before).execute(),

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

    remove: (id: string) => db.deleteFrom('users').where('id', '=', id).execute(),

    list: () =>
      db
        .selectFrom('users')
        .select(['id', 'username', 'email', 'confirmed', 'created_at'])
        .orderBy('username')
        .execute(),

    /** Whether any user did more than register. */
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

    ...secondFactorStore(context),
  }
}
