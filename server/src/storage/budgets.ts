// Monthly data budgets. A namespace's store manages them; the other store judges them after batches of bytes
// of many namespaces. Sums of tags cover many devices, so they are read on the connection for lists.
import type { BudgetState } from '@hawser/contract/budgets'
import { sql, type Insertable, type Selectable, type SqlBool, type Updateable } from 'kysely'
import { isOne, offsetOf, type AllNamespaces, type NamespaceContext, type Slice } from './context.ts'
import type { Tables } from './tables.ts'

export type BudgetRow = Selectable<Tables['data_budgets']>

export interface BudgetResult {
  readonly row: BudgetRow
  readonly month: string
  readonly used: number
  readonly state: BudgetState
  readonly told: BudgetState
  /** An e-mail about `told` is due. */
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
    list: (slice: Slice): Promise<BudgetRow[]> =>
      mine().selectAll().orderBy('id').limit(slice.per_page).offset(offsetOf(slice)).execute(),
    async insert(row: Omit<Insertable<Tables['data_budgets']>, 'tenant_id' | 'id'>): Promise<number> {
      return (await context.insert('data_budgets', row).returning('id').executeTakeFirstOrThrow()).id
    },
    /** Gives false when there is no such budget. */
    save: (id: number, change: Updateable<Tables['data_budgets']>) =>
      isOne(context.update('data_budgets').set(change).where('id', '=', id)),
    /** Gives the budget as it was. */
    remove: (id: number): Promise<BudgetRow | undefined> =>
      context.remove('data_budgets').where('id', '=', id).returningAll().executeTakeFirst(),

    concerning: (uids: readonly string[], tags: readonly string[]): Promise<BudgetRow[]> =>
      mine()
        .selectAll()
        .where((eb) => eb.or([eb('device', 'in', uids), ...(tags.length > 0 ? [eb('tag', 'in', tags)] : [])]))
        .execute(),

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

    /** Renames the tag of a budget, unless the new tag has a budget already. */
    async renameTag(from: string, to: string): Promise<void> {
      const taken = await mine().select('id').where('tag', '=', to).executeTakeFirst()
      if (!taken) await context.update('data_budgets').set({ tag: to }).where('tag', '=', from).execute()
    },

    /** Moves the budget of a replaced device to its successor, unless that has one. */
    async moveToDevice(from: string, to: string): Promise<void> {
      const taken = await mine().select('id').where('device', '=', to).executeTakeFirst()
      if (!taken)
        await context.update('data_budgets').set({ device: to }).where('device', '=', from).execute()
    },
  }
}

const bytes = sql`traffic.idle_received + traffic.idle_sent + traffic.session_received + traffic.session_sent`

export function budgetJudgementStore(context: AllNamespaces) {
  const { db, reader, dialect } = context
  const integer = (value: ReturnType<typeof sql>) =>
    dialect === 'sqlite' ? sql<number>`cast(${value} as integer)` : sql<number>`(${value})::bigint`
  const each = (list: readonly unknown[]) =>
    dialect === 'sqlite'
      ? sql`json_each(${JSON.stringify(list)}) as given`
      : sql`json_array_elements(${JSON.stringify(list)}::json) as given (value)`
  const value = dialect === 'sqlite' ? sql`given.value` : sql`given.value #>> '{}'`
  const sum = integer(sql`coalesce(sum(${bytes}), 0)`)

  return {
    ...budgetEmails(context),
    async ofDevices(uids: readonly string[]): Promise<number[]> {
      const { rows } = await sql<{ id: number }>`select data_budgets.id from ${each(uids)}
        join data_budgets on data_budgets.device = ${value}`.execute(db)
      return rows.map(({ id }) => id)
    },
    async ofTags(uids: readonly string[]): Promise<number[]> {
      const { rows } = await sql<{ id: number }>`select distinct data_budgets.id from ${each(uids)}
        join devices on devices.uid = ${value} join device_tags on device_tags.device_id = devices.id
        join data_budgets on data_budgets.tenant_id = device_tags.tenant_id
          and data_budgets.tag = device_tags.tag`.execute(db)
      return rows.map(({ id }) => id)
    },
    async findMany(ids: readonly number[]): Promise<BudgetRow[]> {
      const { rows } = await sql<BudgetRow>`select data_budgets.* from ${each(ids)}
        join data_budgets on data_budgets.id = ${integer(value)}
        order by data_budgets.judged_at, data_budgets.id`.execute(db)
      return rows
    },

    async usedByDevices(ids: readonly number[], since: string): Promise<Map<number, number>> {
      const { rows } = await sql<{ id: number; used: number }>`select data_budgets.id, ${sum} as used
        from ${each(ids)} join data_budgets on data_budgets.id = ${integer(value)}
        join device_traffic as traffic on traffic.uid = data_budgets.device and traffic.day >= ${since}
        group by data_budgets.id`.execute(reader)
      return new Map(rows.map(({ id, used }) => [id, used]))
    },
    /**
     * Bytes of all devices with the tag from this day on, read `step` devices at a time so that lists need
     * not wait.
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

    /** Saves judgements of budgets that have not changed since they were read; returns their ids. */
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
  }
}

function budgetEmails({ db }: AllNamespaces) {
  return {
    async emailed(ids: readonly number[], since: string): Promise<void> {
      await db
        .updateTable('data_budgets')
        .set({ emailing_since: '' })
        .where('id', 'in', ids)
        .where('emailing_since', '<=', since)
        .execute()
    },
    /** Claims budgets whose e-mail has been under way since before that moment: their sender has crashed. */
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

/** Matches devices whose budget is used up in this month and stops agent updates. */
export const stopsUpdates = (month: string) => {
  const isOver = sql`data_budgets.stop_updates = 1 and data_budgets.state = 'over' and data_budgets.month = ${month}`
  return sql<SqlBool>`(exists (select 1 from data_budgets
      where data_budgets.tenant_id = devices.tenant_id and data_budgets.device = devices.uid and ${isOver})
    or exists (select 1 from device_tags join data_budgets on data_budgets.tenant_id = device_tags.tenant_id
      and data_budgets.tag = device_tags.tag where device_tags.device_id = devices.id and ${isOver}))`
}
