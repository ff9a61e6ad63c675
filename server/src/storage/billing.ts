// Places of deleted devices, reports for the payment provider, events from it, and attempts with unknown
// outcome. Data of several namespaces are found by the provider's ids.
import { sql, type Selectable } from 'kysely'
import { insertNew, type AllNamespaces, type NamespaceContext } from './context.ts'
import { jsonField } from './filter-sql.ts'
import type { NamespaceRow } from './namespaces.ts'
import type { Tables } from './tables.ts'

export type UsageReport = Selectable<Tables['usage_reports']>
export type BillingAttempt = Selectable<Tables['billing_attempts']>

const dueNow = { version: 1, tries: 0, due_at: '' } as const

export interface BillingCustomer {
  readonly tenant_id: string
  readonly customer_id: string
}

export function removedDeviceStore(context: NamespaceContext) {
  return {
    async list(since: string): Promise<string[]> {
      const rows = await context
        .select('removed_devices')
        .select('uid')
        .where('removed_at', '>', since)
        .execute()
      return rows.map((row) => row.uid)
    },
    keep: (uid: string, removed_at: string) =>
      context
        .insert('removed_devices', { uid, removed_at })
        .onConflict((conflict) => conflict.columns(['tenant_id', 'uid']).doUpdateSet({ removed_at }))
        .execute(),
    remove: (uid: string) => context.remove('removed_devices').where('uid', '=', uid).execute(),
  }
}

function attemptsAtProvider({ db }: AllNamespaces) {
  return {
    /**
     * The namespace's attempt, or a new one with this key: one at a time for all nodes, so that nothing is
     * created twice.
     */
    attempt: (tenant_id: string, what: string, key: string): Promise<BillingAttempt> =>
      db
        .insertInto('billing_attempts')
        .values({ tenant_id, what, key })
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'what']).doUpdateSet({ key: sql`billing_attempts.key` }),
        )
        .returningAll()
        .executeTakeFirstOrThrow(),
    /** Stores the parameters of the first call; returns those that count, or undefined when the key is gone. */
    async beginAttempt(
      tenant_id: string,
      what: string,
      { key, params, began_at }: Pick<BillingAttempt, 'key' | 'params' | 'began_at'>,
    ): Promise<string | undefined> {
      const unless = (column: 'params' | 'began_at', value: string) =>
        sql<string>`case when params = '' then ${value} else ${sql.ref(column)} end`
      const row = await db
        .updateTable('billing_attempts')
        .set({ params: unless('params', params), began_at: unless('began_at', began_at) })
        .where('tenant_id', '=', tenant_id)
        .where('what', '=', what)
        .where('key', '=', key)
        .returning('params')
        .executeTakeFirst()
      return row?.params
    },
    endAttempt: (tenant_id: string, what: string, key: string) =>
      db
        .deleteFrom('billing_attempts')
        .where('tenant_id', '=', tenant_id)
        .where('what', '=', what)
        .where('key', '=', key)
        .execute(),
  }
}

function usageReports({ db }: AllNamespaces) {
  return {
    report: (subscription_id: string, tenant_id: string) =>
      db
        .insertInto('usage_reports')
        .values({ subscription_id, tenant_id, wanted: 'quantity', ...dueNow })
        .onConflict((conflict) =>
          conflict.column('subscription_id').doUpdateSet({ version: sql`usage_reports.version + 1` }),
        )
        .execute(),
    /** Notes an extra subscription of the same namespace. */
    reportExtra: (subscription_id: string, tenant_id: string, customer_id: string) =>
      db
        .insertInto('usage_reports')
        .values({ subscription_id, tenant_id, customer_id, wanted: 'end extra', ...dueNow })
        .onConflict((conflict) =>
          conflict.column('subscription_id').doUpdateSet({
            version: sql`usage_reports.version + 1`,
            customer_id,
            wanted: sql`case when usage_reports.wanted = 'quantity' then 'end extra' else usage_reports.wanted end`,
          }),
        )
        .execute(),
    dueReports: (now: string, limit: number): Promise<UsageReport[]> =>
      db
        .selectFrom('usage_reports')
        .selectAll()
        .where('due_at', '<=', now)
        .orderBy('due_at')
        .limit(limit)
        .execute(),
    /** Reserves a report; undefined when another node has it. */
    claimReport: (report: UsageReport, until: string): Promise<UsageReport | undefined> =>
      db
        .updateTable('usage_reports')
        .set({ due_at: until, tries: report.tries + 1 })
        .where('subscription_id', '=', report.subscription_id)
        .where('due_at', '=', report.due_at)
        .returningAll()
        .executeTakeFirst(),
    postponeReport: (subscription_id: string, due_at: string, wanted?: UsageReport['wanted']) =>
      db
        .updateTable('usage_reports')
        .set({ due_at, ...(wanted === undefined ? {} : { wanted }) })
        .where('subscription_id', '=', subscription_id)
        .execute(),
    /** Ends a report that was sent; later changes make it due again. */
    async endReport({
      subscription_id,
      version,
    }: Pick<UsageReport, 'subscription_id' | 'version'>): Promise<void> {
      await db
        .deleteFrom('usage_reports')
        .where('subscription_id', '=', subscription_id)
        .where('version', '=', version)
        .execute()
      await db
        .updateTable('usage_reports')
        .set({ due_at: '', tries: 0 })
        .where('subscription_id', '=', subscription_id)
        .execute()
    },
  }
}

export function billingStore(context: AllNamespaces) {
  const { db, dialect } = context
  const active = () =>
    dialect === 'sqlite'
      ? sql`(billing ->> 'active') = 1`
      : sql`(cast(billing as json) ->> 'active') = 'true'`
  return {
    findByCustomer: (customer_id: string): Promise<NamespaceRow | undefined> =>
      db
        .selectFrom('namespaces')
        .selectAll()
        .where(
          jsonField(dialect, 'billing', 'customer_id', 'text') as ReturnType<typeof sql<string>>,
          '=',
          customer_id,
        )
        .executeTakeFirst(),

    async applyLimits(billed: boolean): Promise<void> {
      const limit = billed
        ? sql<number>`case when billing is not null and ${active()} then -1 else free_devices end`
        : sql<number>`-1`
      await db
        .updateTable('namespaces')
        .set({ max_devices: limit })
        .where('free_devices', 'is not', null)
        .where('max_devices', '<>', limit)
        .execute()
    },

    async customersAskedBefore(moment: string): Promise<BillingCustomer[]> {
      const field = (name: string) =>
        jsonField(dialect, 'billing', name, 'text') as ReturnType<typeof sql<string>>
      return db
        .selectFrom('namespaces')
        .select(['tenant_id', field('customer_id').as('customer_id')])
        .where('billing', 'is not', null)
        .where(field('updated_at'), '<', moment)
        .execute()
    },

    async isKnownEvent(id: string): Promise<boolean> {
      return (
        (await db.selectFrom('billing_events').select('id').where('id', '=', id).executeTakeFirst()) !==
        undefined
      )
    },
    rememberEvent: (id: string, received_at: string) =>
      insertNew(db.insertInto('billing_events').values({ id, received_at })),

    ...attemptsAtProvider(context),
    ...usageReports(context),

    async sweep({ places, events }: { places: string; events: string }): Promise<void> {
      await db.deleteFrom('removed_devices').where('removed_at', '<=', places).execute()
      await db.deleteFrom('billing_events').where('received_at', '<=', events).execute()
    },
  }
}
