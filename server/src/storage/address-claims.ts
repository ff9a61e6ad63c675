// Claims of e-mail addresses: accounts, and changes of accounts, that wait for an address to be confirmed.
// Several may wait for one address; confirming it ends the others.
import { locked, type AllNamespaces } from './context.ts'
import type { UserRow } from './users.ts'

export function addressClaimStore(context: AllNamespaces) {
  const { db } = context
  /**
   * Accounts by registration that are neither confirmed nor relied on: members and owners were chosen by
   * somebody.
   */
  const unconfirmed = () =>
    db
      .deleteFrom('users')
      .where('confirmed', '=', 0)
      .where('registered', '=', 1)
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('members').select('user_id').whereRef('members.user_id', '=', 'users.id'))),
      )
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('namespaces').select('owner').whereRef('namespaces.owner', '=', 'users.id'))),
      )
  /** Reverts changes to an unconfirmed address to the confirmed one. */
  const changes = () =>
    db
      .updateTable('users')
      .set((eb) => ({ email: eb.fn.coalesce('former_email', 'email'), former_email: null }))
      .where('former_email', 'is not', null)

  return {
    of: (email: string, most: number): Promise<UserRow[]> =>
      db
        .selectFrom('users')
        .selectAll()
        .where('email', '=', email)
        .where((eb) => eb.or([eb('confirmed', '=', 0), eb('former_email', 'is not', null)]))
        .orderBy('created_at', 'desc')
        .limit(most)
        .execute(),

    /**
     * Locks all accounts that claim or have an address, in one order, so that concurrent confirmations queue
     * and cannot deadlock.
     */
    async hold(email: string): Promise<void> {
      await locked(
        context,
        db.selectFrom('users').select('id').where('email', '=', email).orderBy('id'),
      ).execute()
    },

    /** Ends all claims of an address except its owner's; returns the accounts that ended with them. */
    async end(email: string, owner: string): Promise<Pick<UserRow, 'id' | 'username'>[]> {
      await changes().where('email', '=', email).where('id', '<>', owner).execute()
      return unconfirmed()
        .where('email', '=', email)
        .where('id', '<>', owner)
        .returning(['id', 'username'])
        .execute()
    },

    /**
     * Ends changes that can no longer be undone, and accounts registered before this moment; returns those
     * accounts.
     */
    async sweep(registeredBefore: string): Promise<Pick<UserRow, 'id' | 'username'>[]> {
      await changes()
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('identity_changes')
                .select('identity_changes.id')
                .whereRef('identity_changes.user_id', '=', 'users.id'),
            ),
          ),
        )
        .execute()
      return unconfirmed().where('created_at', '<', registeredBefore).returning(['id', 'username']).execute()
    },
  }
}
