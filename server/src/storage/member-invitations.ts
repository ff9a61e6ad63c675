// Invitations into a namespace: of one namespace, and by their hash for their holder, who belongs to none
// yet.
import type { Role } from '@hawser/contract/access'
import { sql, type Insertable, type Selectable } from 'kysely'
import { isOne, pageOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type MemberInvitationRow = Selectable<Tables['member_invitations']>

export function memberInvitationStore(context: NamespaceContext) {
  const mine = () => context.select('member_invitations')
  return {
    insert: (row: Omit<Insertable<Tables['member_invitations']>, 'tenant_id'>) =>
      context.insert('member_invitations', row).execute(),
    find: (id: string): Promise<MemberInvitationRow | undefined> =>
      mine().selectAll().where('id', '=', id).executeTakeFirst(),
    /** Gives it another token, and another moment to end. */
    renew: (
      id: string,
      change: Pick<MemberInvitationRow, 'hash' | 'by_mail' | 'invited_by' | 'sent_at' | 'expires_at'>,
    ) => isOne(context.update('member_invitations').set(change).where('id', '=', id)),
    /** Takes it away, if it still has this token; true for the one caller who got it. */
    spend: (id: string, hash: string) =>
      isOne(context.remove('member_invitations').where('id', '=', id).where('hash', '=', hash)),
    remove: (id: string) => isOne(context.remove('member_invitations').where('id', '=', id)),
    /** Removes the invitations that somebody made. */
    removeOf: (user_id: string) =>
      context.remove('member_invitations').where('invited_by', '=', user_id).execute(),
    removeExpired: (now: string, email?: string) =>
      context
        .remove('member_invitations')
        .where('expires_at', '<=', now)
        .$if(email !== undefined, (query) => query.where('email', '=', email!))
        .execute(),
    list: (slice: Slice) =>
      pageOf(mine(), slice, (all) => all.selectAll().orderBy('created_at').orderBy('id')),
  }
}

/** An invitation with its namespace and its inviter's present role. */
export interface FoundMemberInvitation extends MemberInvitationRow {
  readonly namespace: string
  readonly inviter: string
  readonly inviter_role: Role
}

export function presentedMemberInvitationStore({ db }: AllNamespaces) {
  return {
    /** None when the inviter has left. */
    find: (hash: string): Promise<FoundMemberInvitation | undefined> =>
      db
        .selectFrom('member_invitations')
        .innerJoin('namespaces', 'namespaces.tenant_id', 'member_invitations.tenant_id')
        .innerJoin('users', 'users.id', 'member_invitations.invited_by')
        .innerJoin('members', (join) =>
          join
            .onRef('members.tenant_id', '=', 'member_invitations.tenant_id')
            .onRef('members.user_id', '=', 'member_invitations.invited_by'),
        )
        .selectAll('member_invitations')
        .select(['namespaces.name as namespace', 'users.username as inviter', 'members.role as inviter_role'])
        .where('member_invitations.hash', '=', hash)
        .executeTakeFirst(),
    /**
     * Ends a user's invitations in every namespace, as if they had expired: no token matches them afterwards.
     */
    endOf: (user_id: string, now: string): Promise<MemberInvitationRow[]> =>
      db
        .updateTable('member_invitations')
        .set({ hash: sql`'ended ' || id`, expires_at: now })
        .where('invited_by', '=', user_id)
        .where('expires_at', '>', now)
        .returningAll()
        .execute(),
    sweep: (before: string) =>
      db.deleteFrom('member_invitations').where('expires_at', '<=', before).execute(),
  }
}
