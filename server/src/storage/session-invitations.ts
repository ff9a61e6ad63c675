// Invitations to live sessions: of one namespace, and by their hash for their holder, who need not be a
// member.
import type { Insertable, Selectable } from 'kysely'
import { isOne, type AllNamespaces, type NamespaceContext } from './context.ts'
import type { Tables } from './tables.ts'

export type SessionInvitationRow = Selectable<Tables['session_invitations']>

export function sessionInvitationStore(context: NamespaceContext) {
  const mine = () => context.select('session_invitations')
  return {
    insert: (row: Omit<Insertable<Tables['session_invitations']>, 'tenant_id'>) =>
      context.insert('session_invitations', row).execute(),
    find: (id: string): Promise<SessionInvitationRow | undefined> =>
      mine().selectAll().where('id', '=', id).executeTakeFirst(),
    open: (session_uid: string, now: string): Promise<SessionInvitationRow[]> =>
      mine()
        .selectAll()
        .where('session_uid', '=', session_uid)
        .where('expires_at', '>', now)
        .orderBy('created_at')
        .orderBy('id')
        .execute(),
    /** Whether it is the user's from now on: in one statement, so that nobody else can have it, too. */
    claim: (id: string, user_id: string, now: string) =>
      isOne(
        context
          .update('session_invitations')
          .set({ user_id, used_at: now })
          .where('id', '=', id)
          .where('user_id', 'is', null)
          .where('expires_at', '>', now),
      ),
    remove: (id: string) => isOne(context.remove('session_invitations').where('id', '=', id)),
    /** Removes the invitations that somebody made. */
    removeOf: (user_id: string) =>
      context.remove('session_invitations').where('created_by', '=', user_id).execute(),
  }
}

export function presentedInvitationStore({ db }: AllNamespaces) {
  return {
    find: (hash: string): Promise<SessionInvitationRow | undefined> =>
      db.selectFrom('session_invitations').selectAll().where('hash', '=', hash).executeTakeFirst(),
    /** In every namespace; returns what was removed. */
    removeOf: (user_id: string): Promise<SessionInvitationRow[]> =>
      db.deleteFrom('session_invitations').where('created_by', '=', user_id).returningAll().execute(),
    sweep: (now: string) => db.deleteFrom('session_invitations').where('expires_at', '<=', now).execute(),
  }
}
