// Namespaces. They stand outside the namespaced stores, because looking one up is how a caller gets such a
// store.
import type { Group } from '@hawser/contract/filters'
import { sql, type Insertable, type Selectable, type Updateable } from 'kysely'
import type { AllNamespaces, Slice } from './context.ts'
import { locked, pageOf } from './context.ts'
import { whereGroups, type Columns } from './filter-sql.ts'
import { memberStore } from './members.ts'
import type { Tables } from './tables.ts'

export type NamespaceRow = Selectable<Tables['namespaces']>
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
    /** Like `find`, locked until the transaction ends, so that it can count before it adds. */
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
    imported: () =>
      db
        .selectFrom('namespaces')
        .select(['tenant_id', 'name'])
        .where('imported', '=', 1)
        .orderBy('name')
        .execute(),
    /** At most `most`: an account may own tens of thousands. */
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

    /** The quota decided before, else this one, which is stored. */
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
     * Foreign keys remove everything in it (docs/flows/what-ends-when.md lists the rest). The sweep of audit
     * logs removes its entries, which may be very many.
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

    ...memberStore(context),

    async deviceCount(tenant_id: string): Promise<number> {
      const row = await db
        .selectFrom('tallies')
        .select('n')
        .where('tenant_id', '=', tenant_id)
        .where('subject', '=', 'devices.accepted')
        .executeTakeFirst()
      return row?.n ?? 0
    },

    /** A namespace without accepted devices may be absent. */
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
