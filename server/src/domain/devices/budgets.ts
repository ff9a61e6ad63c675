// Data budgets: how many bytes devices may use in a month, and what happens above that, as members manage
// them. budget-judging.ts compares them with the sums, budget-news.ts announces the results. Recordings,
// updates and device pages read the result in the budget's row. A state counts only in its month, so a new
// month needs no sweep.
import { mostBudgets, type BudgetState, type DataBudget } from '@hawser/contract/budgets'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import type { Counter } from '../../kit/counter.ts'
import type { BudgetRow } from '../../storage/budgets.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { Audit } from '../audit/audit.ts'
import type { Rules } from '../callers/rules.ts'
import { budgetJudging, type BudgetCheck, type BudgetCheckParts, type BudgetUsage } from './budget-judging.ts'
import { budgetNews, type BudgetNewsParts } from './budget-news.ts'
import { inMonth, monthOf } from './budget-state.ts'

export interface BudgetParts extends BudgetCheckParts, BudgetNewsParts {
  audit: Audit
}

export interface Budgets extends Rules<'budgets'>, BudgetUsage {
  /** Whether a budget prevents recordings on the device now. */
  stopsRecordings(tenant_id: string, device_uid: string): Promise<boolean>
  readonly changes: Counter<BudgetState>
}

const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)

type Audited = Pick<BudgetRow, 'device' | 'tag' | 'bytes' | 'stop_recordings' | 'stop_updates'>

const targetOf = (id: number, { device, tag }: Pick<Audited, 'device' | 'tag'>) => ({
  kind: 'data budget',
  id: String(id),
  name: tag === null ? `device ${(device ?? '').slice(0, 12)}` : `tag ${tag}`,
})

const audited = ({ device, tag, bytes, stop_recordings, stop_updates }: Audited) => ({
  device,
  tag,
  bytes,
  stop_recordings: stop_recordings === 1,
  stop_updates: stop_updates === 1,
})

async function present(
  { stores, clock }: Pick<BudgetParts, 'stores' | 'clock'>,
  tenant_id: string,
  rows: readonly BudgetRow[],
): Promise<DataBudget[]> {
  const uids = rows.flatMap(({ device }) => device ?? [])
  const devices = await stores.of(tenant_id).devices.findMany(uids)
  const names = new Map(devices.map(({ uid, name }) => [uid, name]))
  const month = monthOf(clock)
  return rows.map((row) => ({
    id: String(row.id),
    tenant_id,
    ...defined({ device: row.device ?? undefined, tag: row.tag ?? undefined }),
    device_name: names.get(row.device ?? '') ?? '',
    bytes: row.bytes,
    stop_recordings: row.stop_recordings === 1,
    stop_updates: row.stop_updates === 1,
    month,
    used: inMonth(row, month).used,
    state: inMonth(row, month).state,
    created_at: row.created_at,
  }))
}

export function budgets(parts: BudgetParts): Budgets {
  const { stores, clock } = parts
  const news = budgetNews(parts)
  const judging = budgetJudging(parts, news)
  return {
    changes: news.changes,
    note: judging.note,
    judge: judging.judge,
    stopsRecordings: (tenant_id, device_uid) =>
      stores.of(tenant_id).budgets.stopsRecordings(device_uid, monthOf(clock)),
    ...management(parts, judging),
  }
}

function management(
  parts: BudgetParts,
  { judgeWritten }: Pick<BudgetCheck, 'judgeWritten'>,
): Rules<'budgets'> {
  const { stores, audit, clock, bus } = parts

  async function show(tenant_id: string, id: number): Promise<DataBudget> {
    const row = await stores.of(tenant_id).budgets.find(id)
    const [shown] = row ? await present(parts, tenant_id, [row]) : []
    if (!shown) throw new Failure('notFound')
    return shown
  }

  /** Open sessions start or stop being recorded as the budgets now require. */
  function recordingsMayChange({ tenant_id, stop_recordings, state }: BudgetRow): void {
    if (stop_recordings === 1 && state === 'over') bus.tell('namespace.changed', { tenant_id })
  }

  return {
    async list({ query }, { tenant_id }) {
      const mine = stores.of(tenant_id).budgets
      return { items: await present(parts, tenant_id, await mine.list(query)), total: await mine.count() }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { device = null, tag = null, bytes } = body
      if ((device === null) === (tag === null))
        throw new Failure('invalid', { message: 'device or tag: one of them is needed' })
      const id = await audit
        .change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both find room for the last budget.
          await inside.namespaces.hold(tenant_id)
          const { devices, budgets: mine } = inside.of(tenant_id)
          if (device !== null && !(await devices.find(device))) throw new Failure('notFound')
          if ((await mine.count()) >= mostBudgets) throw new Failure('budgetLimit')
          const row = {
            device,
            tag,
            bytes,
            stop_recordings: flag(body.stop_recordings ?? false),
            stop_updates: flag(body.stop_updates ?? false),
            created_at: iso(clock.now()),
          }
          const added = await mine.insert(row)
          record({ action: 'budget.created', target: targetOf(added, row), after: audited(row) })
          return added
        })
        .catch(
          orConflict(stores, {
            message: `This ${device === null ? 'tag' : 'device'} has a data budget already.`,
          }),
        )
      await judgeWritten(tenant_id, id, tag !== null)
      return show(tenant_id, id)
    },
    async update({ params, body }, caller) {
      const { tenant_id } = caller
      const id = Number(params.id)
      const { before, change } = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).budgets
        const found = await mine.find(id)
        if (!found) throw new Failure('notFound')
        const wanted = {
          bytes: body.bytes ?? found.bytes,
          stop_recordings: flag(body.stop_recordings ?? found.stop_recordings === 1),
          stop_updates: flag(body.stop_updates ?? found.stop_updates === 1),
        }
        if (!(await mine.save(id, wanted))) throw new Failure('notFound')
        record({
          action: 'budget.updated',
          target: targetOf(id, found),
          before: audited(found),
          after: audited({ ...found, ...wanted }),
        })
        return { before: found, change: wanted }
      })
      if (change.bytes !== before.bytes) await judgeWritten(tenant_id, id, before.tag !== null)
      const after = await show(tenant_id, id)
      if (change.stop_recordings !== before.stop_recordings)
        recordingsMayChange({ ...before, stop_recordings: 1, state: after.state })
      return after
    },
    async remove({ params }, caller) {
      const before = await audit.change(caller, async (inside, record) => {
        const row = await inside.of(caller.tenant_id).budgets.remove(Number(params.id))
        if (!row) throw new Failure('notFound')
        record({ action: 'budget.removed', target: targetOf(Number(params.id), row), before: audited(row) })
        return row
      })
      recordingsMayChange(before)
    },
  }
}
