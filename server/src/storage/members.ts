// The members of namespaces; part of the store of namespaces (namespaces.ts).
import { memberRoles, type MemberRole, type Role } from '@hawser/contract/access'
import type { Insertable } from 'kysely'
import { isOne, type AllNamespaces } from './context.ts'
import type { Tables } from './tables.ts'

export interface MemberRow {
  id: string
  username: string
  role: Role
}

export function memberStore({ db }: AllNamespaces) {
  return {
    members: (tenant_id: string): Promise<MemberRow[]> =>
      db
        .selectFrom('members')
        .innerJoin('users', 'users.id', 'members.user_id')
        .select(['users.id', 'users.username', 'members.role'])
        .where('members.tenant_id', '=', tenant_id)
        .orderBy('members.created_at')
        .orderBy('users.id')
        .execute(),
    async membersOf(tenant_ids: readonly string[]): Promise<Map<string, MemberRow[]>> {
      const byTenant = new Map(tenant_ids.map((tenant_id): [string, MemberRow[]] => [tenant_id, []]))
      if (tenant_ids.length === 0) return byTenant
      const rows = await db
        .selectFrom('members')
        .innerJoin('users', 'users.id', 'members.user_id')
        .select(['members.tenant_id', 'users.id', 'users.username', 'members.role'])
        .where('members.tenant_id', 'in', tenant_ids)
        .orderBy('members.created_at')
        .orderBy('users.id')
        .execute()
      for (const { tenant_id, ...member } of rows) byTenant.get(tenant_id)?.push(member)
      return byTenant
    },
    member: (tenant_id: string, user_id: string) =>
      db
        .selectFrom('members')
        .selectAll()
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .executeTakeFirst(),
    /**
     * The oldest memberships of a user, at most `most`: an account may have tens of thousands. `signed-in`
     * leaves out namespaces that the user never had a token for.
     */
    memberships: (user_id: string, most: number, which: 'all' | 'signed-in' = 'all') =>
      db
        .selectFrom('members')
        .select(['tenant_id', 'role', 'epoch', 'signed_in'])
        .where('user_id', '=', user_id)
        .$if(which === 'signed-in', (query) => query.where('signed_in', '=', 1))
        .orderBy('created_at')
        .orderBy('tenant_id')
        .limit(most)
        .execute(),
    signedIn: (tenant_id: string, user_id: string) =>
      db
        .updateTable('members')
        .set({ signed_in: 1 })
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .execute(),
    addMember: (row: Insertable<Tables['members']>) => db.insertInto('members').values(row).execute(),
    /** False when the member no longer has this role, or is gone: a new owner stays the owner. */
    saveMember: (
      tenant_id: string,
      user_id: string,
      from: MemberRole,
      change: { role: MemberRole; epoch: string },
    ) =>
      isOne(
        db
          .updateTable('members')
          .set(change)
          .where('tenant_id', '=', tenant_id)
          .where('user_id', '=', user_id)
          .where('role', '=', from),
      ),
    /** False when there is no such member, or it is the owner. */
    removeMember: (tenant_id: string, user_id: string) =>
      isOne(
        db
          .deleteFrom('members')
          .where('tenant_id', '=', tenant_id)
          .where('user_id', '=', user_id)
          .where('role', '<>', 'owner'),
      ),
    /**
     * Swaps owner and administrator. False when `from` no longer owns it or `to` is no member: the caller
     * then rolls back.
     */
    async handOver(
      tenant_id: string,
      from: { id: string; epoch: string },
      to: { id: string; epoch: string },
    ): Promise<boolean> {
      const owned = db.updateTable('namespaces').set({ owner: to.id }).where('tenant_id', '=', tenant_id)
      if (!(await isOne(owned.where('owner', '=', from.id)))) return false
      const change = ({ id, epoch }: typeof from, before: readonly Role[], role: Role) => {
        const member = db.updateTable('members').set({ role, epoch }).where('tenant_id', '=', tenant_id)
        return isOne(member.where('user_id', '=', id).where('role', 'in', before))
      }
      return (await change(from, ['owner'], 'administrator')) && (await change(to, memberRoles, 'owner'))
    },
  }
}
