// Monthly data budgets. A namespace's own store manages them; the other one judges them after batches
// of bytes of many namespaces. The sums of tags walk over many devices, so they are read on the
// connection for lists.
import type { BudgetState } from '@hawser/contract/budgets'
import { sql, type Insertable, type Selectable, type SqlBool, type Updateable } from 'kysely'
import { offsetOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type BudgetRow = Selectable<Tables['data_budgets']>

/** What was found about a budget, and the row as it was read before. */
export interface BudgetResult {
  readonly row: BudgetRow
  readonly month: string
  readonly used: number
  readonly state: BudgetState
  readonly told: BudgetState
  /** People are to get an e-mail about `told`. */
  readonly isNews: boolean
}

export function budgetStore(context: NamespaceContext) {
  const mine = () => context.select('data_budgets')
  return {
    find: (id: number): Promise<BudgetRow | undefined> =>
      mine().selectAll().where('id', '=', id).executeTakeFirst(),
    async count(): Promise<number> {
      const { n } = await mine()
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
      return n
    },
    /** Oldest first. */
    list: (slice: Slice): Promise<BudgetRow[]> =>
      mine().selectAll().orderBy('id').limit(slice.per_page).offset(offsetOf(slice)).execute(),
    async insert(row: Omit<Insertable<Tables['data_budgets']>, 'tenant_id' | 'id'>): Promise<number> {
      return (await context.insert('data_budgets', row).returning('id').executeTakeFirstOrThrow()).id
    },
    /** Gives false when there is no such budget. */
    async save(id: number, change: Updateable<Tables['data_budgets']>): Promise<boolean> {
      const found = await context.update('data_budgets').set(change).where('id', '=', id).executeTakeFirst()
      return found.numUpdatedRows === 1n
    },
    /** Gives the budget as it was. */
    remove: (id: number): Promise<BudgetRow | undefined> =>
      context.remove('data_budgets').where('id', '=', id).returningAll().executeTakeFirst(),

    /** The budgets of these devices and of these tags. */
    concerning: (uids: readonly string[], tags: readonly string[]): Promise<BudgetRow[]> =>
      mine()
        .selectAll()
        .where((eb) => eb.or([eb('device', 'in', uids), ...(tags.length > 0 ? [eb('tag', 'in', tags)] : [])]))
        .execute(),

    /** Whether a budget that the device is over in this month stops its recordings. */
    async stopsRecordings(uid: string, month: string): Promise<boolean> {
      const its = context.select('devices').select('id').where('uid', '=', uid)
      const tags = context.select('device_tags').select('tag').where('device_id', 'in', its)
      const row = await mine()
        .select('id')
        .where('stop_recordings', '=', 1)
        .where('state', '=', 'over')
        .where('month', '=', month)
        .where((eb) => eb.or([eb('device', '=', uid), eb('tag', 'in', tags)]))
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },

    /** A tag has another name; if that one has a budget already, both stay as they are. */
    async renameTag(from: string, to: string): Promise<void> {
      const taken = await mine().select('id').where('tag', '=', to).executeTakeFirst()
      if (!taken) await context.update('data_budgets').set({ tag: to }).where('tag', '=', from).execute()
    },

    /** A device replaces another one and gets its budget, if it has none. */
    async moveToDevice(from: string, to: string): Promise<void> {
      const taken = await mine().select('id').where('device', '=', to).executeTakeFirst()
      if (!taken)
        await context.update('data_budgets').set({ device: to }).where('device', '=', from).execute()
    },
  }
}

export type BudgetStore = ReturnType<typeof budgetStore>

const bytes = sql`traffic.idle_received + traffic.idle_sent + traffic.session_received + traffic.session_sent`

export function budgetJudgementStore({ db, reader, dialect }: AllNamespaces) {
  const integer = (value: ReturnType<typeof sql>) =>
    dialect === 'sqlite' ? sql<number>`cast(${value} as integer)` : sql<number>`(${value})::bigint`
  /** The elements of a list as rows with the column `value`. */
  const each = (list: readonly unknown[]) =>
    dialect === 'sqlite'
      ? sql`json_each(${JSON.stringify(list)}) as given`
      : sql`json_array_elements(${JSON.stringify(list)}::json) as given (value)`
  /** Such a value as text. */
  const value = dialect === 'sqlite' ? sql`given.value` : sql`given.value #>> '{}'`
  const sum = integer(sql`coalesce(sum(${bytes}), 0)`)

  return {
    /** The budgets that these devices have of their own. */
    async ofDevices(uids: readonly string[]): Promise<number[]> {
      const { rows } = await sql<{ id: number }>`select data_budgets.id from ${each(uids)}
        join data_budgets on data_budgets.device = ${value}`.execute(db)
      return rows.map(({ id }) => id)
    },
    /** The budgets of the tags that these devices have. */
    async ofTags(uids: readonly string[]): Promise<number[]> {
      const { rows } = await sql<{ id: number }>`select distinct data_budgets.id from ${each(uids)}
        join devices on devices.uid = ${value} join device_tags on device_tags.device_id = devices.id
        join data_budgets on data_budgets.tenant_id = device_tags.tenant_id
          and data_budgets.tag = device_tags.tag`.execute(db)
      return rows.map(({ id }) => id)
    },
    /** Those that were judged longest ago first. */
    async findMany(ids: readonly number[]): Promise<BudgetRow[]> {
      const { rows } = await sql<BudgetRow>`select data_budgets.* from ${each(ids)}
        join data_budgets on data_budgets.id = ${integer(value)}
        order by data_budgets.judged_at, data_budgets.id`.execute(db)
      return rows
    },

    /** What these devices have used from this day on, by their budgets. */
    async usedByDevices(ids: readonly number[], since: string): Promise<Map<number, number>> {
      const { rows } = await sql<{ id: number; used: number }>`select data_budgets.id, ${sum} as used
        from ${each(ids)} join data_budgets on data_budgets.id = ${integer(value)}
        join device_traffic as traffic on traffic.uid = data_budgets.device and traffic.day >= ${since}
        group by data_budgets.id`.execute(reader)
      return new Map(rows.map(({ id, used }) => [id, used]))
    },
    /**
     * What all devices with the tag have used together from this day on; so many devices at a time, so that
     * lists wait for none of them long.
     */
    async usedByTag(tenant_id: string, tag: string, since: string, step = 1_000): Promise<number> {
      let total = 0
      for (let after: number | null = 0; after !== null;) {
        const { rows } = await sql<{ used: number; last: number | null }>`select ${sum} as used,
          max(fitting.device_id) as last from (select device_id from device_tags where tenant_id = ${tenant_id}
            and tag = ${tag} and device_id > ${after} order by device_id limit ${step}) as fitting
          join devices on devices.id = fitting.device_id
          left join device_traffic as traffic on traffic.uid = devices.uid and traffic.day >= ${since}`.execute(
          reader,
        )
        total += rows[0]?.used ?? 0
        after = rows[0]?.last ?? null
      }
      return total
    },

    /**
     * Writes what was found, unless the budget has changed since it was read. Gives the ids of the written.
     */
    async save(judgements: readonly BudgetResult[], now: string): Promise<Set<number>> {
      const list = judgements.map(({ row, month, used, state, told, isNews }) => [
        row.id,
        used,
        month,
        state,
        told,
        row.bytes,
        row.month,
        row.told,
        isNews ? 'news' : '',
      ])
      const text = (index: number) => sql`given.value ->> ${sql.raw(String(index))}`
      const { rows } = await sql<{ id: number }>`update data_budgets
        set used = ${integer(text(1))}, month = ${text(2)}, state = ${text(3)}, told = ${text(4)}, judged_at = ${now},
          emailing_since = case when ${text(8)} = 'news' then ${now} else emailing_since end
        from ${each(list)} where data_budgets.id = ${integer(text(0))} and data_budgets.bytes = ${integer(text(5))}
          and data_budgets.month = ${text(6)} and data_budgets.told = ${text(7)}
        returning data_budgets.id`.execute(db)
      return new Set(rows.map(({ id }) => id))
    },

    /** The e-mails about these budgets, on their way since then or before, are sent. */
    async emailed(ids: readonly number[], since: string): Promise<void> {
      await db
        .updateTable('data_budgets')
        .set({ emailing_since: '' })
        .where('id', 'in', ids)
        .where('emailing_since', '<=', since)
        .execute()
    },
    /**
     * Budgets whose e-mails have been on their way since before then: whoever sent them has crashed. They are
     * on their way since `now`, so nobody else gets them.
     */
    async takeUnsent(before: string, now: string, most: number): Promise<BudgetRow[]> {
      const isLate = sql<SqlBool>`emailing_since <> '' and emailing_since < ${before}`
      return db
        .updateTable('data_budgets')
        .set({ emailing_since: now })
        .where(isLate)
        .where('id', 'in', (eb) => eb.selectFrom('data_budgets').select('id').where(isLate).limit(most))
        .returningAll()
        .execute()
    },

    /** Who gets e-mails about the budgets of a namespace, at their confirmed addresses. */
    async recipients(tenant_id: string, most: number): Promise<{ name: string; address: string }[]> {
      const rows = await db
        .selectFrom('members')
        .innerJoin('users', 'users.id', 'members.user_id')
        .select(['users.name', 'users.email', 'users.former_email'])
        .where('members.tenant_id', '=', tenant_id)
        .where('members.role', 'in', ['owner', 'administrator'])
        .where('users.confirmed', '=', 1)
        .orderBy('members.created_at')
        .orderBy('users.id')
        .limit(most)
        .execute()
      return rows.map(({ name, email, former_email }) => ({ name, address: former_email ?? email }))
    },
  }
}

/** A condition on devices: a budget that they are over in this month stops the updates of their agents. */
export const stopsUpdates = (month: string) => {
  const isOver = sql`data_budgets.stop_updates = 1 and data_budgets.state = 'over' and data_budgets.month = ${month}`
  return sql<SqlBool>`(exists (select 1 from data_budgets
      where data_budgets.tenant_id = devices.tenant_id and data_budgets.device = devices.uid and ${isOver})
    or exists (select 1 from device_tags join data_budgets on data_budgets.tenant_id = device_tags.tenant_id
      and data_budgets.tag = device_tags.tag where device_tags.device_id = devices.id and ${isOver}))`
}
