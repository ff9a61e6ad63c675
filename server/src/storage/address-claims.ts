// Claims of e-mail addresses: accounts and changes of accounts that wait for an address to be confirmed. Any number of
// them may wait for one address. Whoever confirms it ends the others, and one that nobody confirms ends by itself.
import { locked, type AllNamespaces } from './context.ts'
import type { UserRow } from './users.ts'

export function addressClaimStore(context: AllNamespaces) {
  const { db } = context
  /** Accounts by registration that nobody has confirmed or relies on. Members and owners are somebody's decision. */
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
  /** Changes to an address that was not confirmed. The account has its confirmed one again. */
  const changes = () =>
    db
      .updateTable('users')
      .set((eb) => ({ email: eb.fn.coalesce('former_email', 'email'), former_email: null }))
      .where('former_email', 'is not', null)

  return {
    /** The newest accounts that wait for this address. */
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
     * Locks all who claim or have an address, in one order. The first act of a transaction that gives the address to
     * somebody: those who confirm it at the same moment then wait for their turn, and not for each other.
     */
    async hold(email: string): Promise<void> {
      await locked(
        context,
        db.selectFrom('users').select('id').where('email', '=', email).orderBy('id'),
      ).execute()
    },

    /** Ends all claims of an address but that of its owner. Gives the accounts that ended with them. */
    async end(email: string, owner: string): Promise<Pick<UserRow, 'id' | 'username'>[]> {
      await changes().where('email', '=', email).where('id', '<>', owner).execute()
      return unconfirmed()
        .where('email', '=', email)
        .where('id', '<>', owner)
        .returning(['id', 'username'])
        .execute()
    },

    /**
     * Ends changes that can no longer be undone, and accounts that registered before this moment. Gives those accounts.
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

export type AddressClaimStore = ReturnType<typeof addressClaimStore>
