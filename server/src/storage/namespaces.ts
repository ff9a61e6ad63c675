// Namespaces and their members. Looking a namespace up by its id or name is how a namespaced store is come
// by, so these stand outside the namespaced stores; everything inside one goes through `of(tenant_id)` (see
// stores.ts).
import type { Role } from '@hawser/contract/access'
import type { Group } from '@hawser/contract/filters'
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, Slice } from './context.ts'
import { locked, offsetOf } from './context.ts'
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
    ownedBy: (user_id: string) =>
      db.selectFrom('namespaces').select(['tenant_id', 'name']).where('owner', '=', user_id).execute(),

    insert: (row: Insertable<Tables['namespaces']>) => db.insertInto('namespaces').values(row).execute(),
    save: (tenant_id: string, change: Updateable<Tables['namespaces']>) =>
      db.updateTable('namespaces').set(change).where('tenant_id', '=', tenant_id).execute(),

    /** With everything in it: the tables' own references do the rest, the counters go last. */
    /** Foreign keys take along everything in it; docs/flows/what-ends-when.md lists what else ends. */
    async remove(tenant_id: string): Promise<void> {
      await db.deleteFrom('namespaces').where('tenant_id', '=', tenant_id).execute()
      await db.deleteFrom('tallies').where('tenant_id', '=', tenant_id).execute()
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
    member: (tenant_id: string, user_id: string) =>
      db
        .selectFrom('members')
        .selectAll()
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .executeTakeFirst(),
    /** The namespaces of a user, the oldest membership first. */
    memberships: (user_id: string) =>
      db
        .selectFrom('members')
        .select(['tenant_id', 'role', 'epoch'])
        .where('user_id', '=', user_id)
        .orderBy('created_at')
        .orderBy('tenant_id')
        .execute(),
    addMember: (row: Insertable<Tables['members']>) => db.insertInto('members').values(row).execute(),
    saveMember: (tenant_id: string, user_id: string, change: { role: Role; epoch: string }) =>
      db
        .updateTable('members')
        .set(change)
        .where('tenant_id', '=', tenant_id)
        .where('user_id', '=', user_id)
        .execute(),
    removeMember: (tenant_id: string, user_id: string) =>
      db.deleteFrom('members').where('tenant_id', '=', tenant_id).where('user_id', '=', user_id).execute(),

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
      const items = await query
        .selectAll()
        .orderBy('created_at')
        .orderBy('tenant_id')
        .limit(slice.per_page)
        .offset(offsetOf(slice))
        .execute()
      const { n } = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirstOrThrow()
      return { items, total: n }
    },
  }
}

export type NamespaceStore = ReturnType<typeof namespaceStore>
