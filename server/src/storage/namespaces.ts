// Namespaces and their members. Looking a namespace up by its id or name is how a namespaced store is come
// by, so these stand outside the namespaced stores; everything inside one goes through `of(tenant_id)` (see
// stores.ts).
import { memberRoles, type MemberRole, type Role } from '@hawser/contract/access'
import type { Group } from '@hawser/contract/filters'
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, Slice } from './context.ts'
import { locked, pageOf } from './context.ts'
import { whereGroups, type Columns } from './filter-sql.ts'
import type { Tables } from './tables.ts'

export type NamespaceRow = Selectable<Tables['namespaces']>
export interface MemberRow {
  id: string
  username: string
  role: Role
}

const columns: Columns = {
  name: { sql: sql.ref('namespaces.name'), kind: 'text' },
  owner: { sql: sql.ref('namespaces.owner'), kind: 'text' },
  tenant_id: { sql: sql.ref('namespaces.tenant_id'), kind: 'text' },
  max_devices: { sql: sql.ref('namespaces.max_devices'), kind: 'number' },
  created_at: { sql: sql.ref('namespaces.created_at'), kind: 'text' },
  device_count: {
    sql: sql`(select coalesce(sum(n), 0) from tallies t where t.tenant_id = namespaces.tenant_id and t.subject = 'devices.accepted')`,
    kind: 'number',
  },
  'settings.session_record': { sql: sql.ref('namespaces.session_record'), kind: 'flag' },
  'settings.continue_unrecorded': { sql: sql.ref('namespaces.continue_unrecorded'), kind: 'flag' },
  'settings.connection_announcement': { sql: sql.ref('namespaces.connection_announcement'), kind: 'text' },
}

export function namespaceStore(context: AllNamespaces) {
  const { db, reader, dialect } = context
  return {
    find: (tenant_id: string): Promise<NamespaceRow | undefined> =>
      db.selectFrom('namespaces').selectAll().where('tenant_id', '=', tenant_id).executeTakeFirst(),
    /**
     * The same, for a transaction that counts what the namespace has before it adds to it: others wait until
     * it ends.
     */
    hold: (tenant_id: string): Promise<NamespaceRow | undefined> =>
      locked(
        context,
        db.selectFrom('namespaces').selectAll().where('tenant_id', '=', tenant_id),
      ).executeTakeFirst(),
    findByName: (name: string): Promise<NamespaceRow | undefined> =>
      db.selectFrom('namespaces').selectAll().where('name', '=', name).executeTakeFirst(),
    all: () =>
      db
        .selectFrom('namespaces')
        .innerJoin('users', 'users.id', 'namespaces.owner')
        .select(['namespaces.name', 'tenant_id', 'users.username'])
        .orderBy('namespaces.name')
        .execute(),
    /** Those that came from a ShellHub. */
    imported: () =>
      db
        .selectFrom('namespaces')
        .select(['tenant_id', 'name'])
        .where('imported', '=', 1)
        .orderBy('name')
        .execute(),
    /** At most `most` of the namespaces that a user owns: an account may own tens of thousands. */
    ownedBy: (user_id: string, most: number) =>
      db
        .selectFrom('namespaces')
        .select(['tenant_id', 'name'])
        .where('owner', '=', user_id)
        .limit(most)
        .execute(),
    async countOwnedBy(user_id: string): Promise<number> {
      const row = await db
        .selectFrom('namespaces')
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .where('owner', '=', user_id)
        .executeTakeFirstOrThrow()
      return row.n
    },

    insert: (row: Insertable<Tables['namespaces']>) => db.insertInto('namespaces').values(row).execute(),
    save: (tenant_id: string, change: Updateable<Tables['namespaces']>) =>
      db.updateTable('namespaces').set(change).where('tenant_id', '=', tenant_id).execute(),

    /** The recording quota of a namespace: the one that was decided before, else this one from now on. */
    async decideRecordingQuota(tenant_id: string, bytes: number): Promise<number | undefined> {
      await db
        .updateTable('namespaces')
        .set({ recording_quota: bytes })
        .where('tenant_id', '=', tenant_id)
        .where('recording_quota', 'is', null)
        .execute()
      const row = await db
        .selectFrom('namespaces')
        .select('recording_quota')
        .where('tenant_id', '=', tenant_id)
        .executeTakeFirst()
      return row?.recording_quota ?? undefined
    },

    /**
     * Foreign keys take along everything in it; docs/flows/what-ends-when.md lists what else ends. Entries of its
     * audit log, which may be very many, are left to the sweep of audit logs.
     */
    async remove(tenant_id: string): Promise<void> {
      await db.deleteFrom('namespaces').where('tenant_id', '=', tenant_id).execute()
      await db.deleteFrom('tallies').where('tenant_id', '=', tenant_id).execute()
      await db.deleteFrom('audit_heads').where('tenant_id', '=', tenant_id).execute()
      await db
        .updateTable('users')
        .set({ preferred_tenant: null })
        .where('preferred_tenant', '=', tenant_id)
        .execute()
    },

    members: (tenant_id: string): Promise<MemberRow[]> =>
      db
        .selectFrom('members')
        .innerJoin('users', 'users.id', 'members.user_id')
        .select(['users.id', 'users.username', 'members.role'])
        .where('members.tenant_id', '=', tenant_id)
        .orderBy('members.created_at')
        .orderBy('users.id')
        .execute(),
    /** The members of several namespaces in one statement, by namespace; each list as `members` has it. */
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
    /** Notes that the user has had a token for the namespace. */
    signedIn: (tenant_id: string, user_id: string) =>
      db
        .updateTable('members')
        .set({ signed_in: 1 })
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .execute(),
    addMember: (row: Insertable<Tables['members']>) => db.insertInto('members').values(row).execute(),
    /** False when the member does not have this role any more, or is gone. Whoever was just made an owner stays it. */
    async saveMember(
      tenant_id: string,
      user_id: string,
      from: MemberRole,
      change: { role: MemberRole; epoch: string },
    ): Promise<boolean> {
      const result = await db
        .updateTable('members')
        .set(change)
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .where('role', '=', from)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    /** False when there is no such member, or it is the owner. */
    async removeMember(tenant_id: string, user_id: string): Promise<boolean> {
      const result = await db
        .deleteFrom('members')
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .where('role', '<>', 'owner')
        .executeTakeFirst()
      return result.numDeletedRows === 1n
    },
    /**
     * Makes a member the owner, and the owner an administrator. False, and then the transaction must not be
     * kept: `from` is not the owner any more, or `to` is no member.
     */
    async handOver(
      tenant_id: string,
      from: { id: string; epoch: string },
      to: { id: string; epoch: string },
    ): Promise<boolean> {
      const owned = await db
        .updateTable('namespaces')
        .set({ owner: to.id })
        .where('tenant_id', '=', tenant_id)
        .where('owner', '=', from.id)
        .executeTakeFirst()
      if (owned.numUpdatedRows !== 1n) return false
      const change = async ({ id, epoch }: typeof from, before: readonly Role[], role: Role) => {
        const result = await db
          .updateTable('members')
          .set({ role, epoch })
          .where('tenant_id', '=', tenant_id)
          .where('user_id', '=', id)
          .where('role', 'in', before)
          .executeTakeFirst()
        return result.numUpdatedRows === 1n
      }
      return (await change(from, ['owner'], 'administrator')) && (await change(to, memberRoles, 'owner'))
    },

    /** How many accepted devices. */
    async deviceCount(tenant_id: string): Promise<number> {
      const row = await db
        .selectFrom('tallies')
        .select('n')
        .where('tenant_id', '=', tenant_id)
        .where('subject', '=', 'devices.accepted')
        .executeTakeFirst()
      return row?.n ?? 0
    },

    /** The same for several namespaces in one statement; one without accepted devices may be absent. */
    async deviceCounts(tenant_ids: readonly string[]): Promise<Map<string, number>> {
      if (tenant_ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('tallies')
        .select(['tenant_id', 'n'])
        .where('tenant_id', 'in', tenant_ids)
        .where('subject', '=', 'devices.accepted')
        .execute()
      return new Map(rows.map(({ tenant_id, n }) => [tenant_id, n]))
    },

    /** Namespaces that a user is a member of, or the one that a key belongs to. */
    async list(whose: { user_id: string } | { tenant_id: string }, groups: readonly Group[], slice: Slice) {
      let query = reader.selectFrom('namespaces')
      query =
        'user_id' in whose
          ? query.where('tenant_id', 'in', (eb) =>
              eb.selectFrom('members').select('members.tenant_id').where('user_id', '=', whose.user_id),
            )
          : query.where('tenant_id', '=', whose.tenant_id)
      query = whereGroups(query, groups, columns, dialect)
      return pageOf(query, slice, (all) => all.selectAll().orderBy('created_at').orderBy('tenant_id'))
    },
  }
}

export type NamespaceStore = ReturnType<typeof namespaceStore>
