// Judging budgets: each against the sum of its month, after the sums of bytes were written (traffic.ts). Nothing here
// runs for a message or a session of a device. The work is bounded: a budget of a device is judged when the device has a
// new sum; a budget of a tag, which walks over all its devices, at most every five minutes, and for two seconds in a round.
import { iso, minute_ms, second_ms } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { BudgetResult, BudgetRow } from '../../storage/budgets.ts'
import type { With } from '../audit/parts.ts'
import type { BudgetNews } from './budget-news.ts'
import { inMonth, monthOf, rank, stateOf } from './budget-state.ts'

export interface BudgetCheckParts extends With<'stores' | 'clock'> {
  /** Budgets of tags that are judged because somebody has just written them, by namespace. */
  tagsPerNamespace: Limiter
  onError(error: unknown): void
}

export interface BudgetUsage {
  note(uids: Iterable<string>): void
  /** Never throws. */
  judge(): Promise<void>
}

export interface BudgetCheck extends BudgetUsage {
  /** Judges a budget that was just created or changed. */
  judgeWritten(tenant_id: string, id: number, isOfTag: boolean): Promise<void>
}

const tag_every_ms = 5 * minute_ms
const tags_ms = 2 * second_ms
const mostWaiting = 10_000
const batch = 1_000
const tries = 3

export function budgetJudging(
  parts: BudgetCheckParts,
  { announce, sendAgain }: Pick<BudgetNews, 'announce' | 'sendAgain'>,
): BudgetCheck {
  const { stores, clock } = parts
  const store = stores.budgetJudgements
  const noted = new Set<string>()
  /** Tag budgets to judge once five minutes have passed since their last time. */
  const waiting = new Set<number>()
  let judging = Promise.resolve()

  async function sums(rows: readonly BudgetRow[], month: string): Promise<Map<number, number>> {
    const since = `${month}-01`
    const ids = rows.filter(({ device }) => device !== null).map(({ id }) => id)
    const used = ids.length > 0 ? await store.usedByDevices(ids, since) : new Map<number, number>()
    for (const { id, tenant_id, tag } of rows)
      if (tag !== null) used.set(id, await store.usedByTag(tenant_id, tag, since))
    return used
  }

  async function judgeAll(ids: readonly number[]): Promise<BudgetResult[]> {
    const done: BudgetResult[] = []
    let open = ids
    for (let attempt = 0; open.length > 0 && attempt < tries; attempt++) {
      const month = monthOf(clock)
      const rows = await store.findMany(open)
      const used = await sums(rows, month)
      const found = rows.map((row): BudgetResult => {
        const sum = used.get(row.id) ?? 0
        const state = stateOf(sum, row.bytes)
        const { told } = inMonth(row, month)
        const isNews = rank(state) > rank(told)
        return { row, month, used: sum, state, told: isNews ? state : told, isNews }
      })
      const written = found.length > 0 ? await store.save(found, iso(clock.now())) : new Set<number>()
      done.push(...found.filter(({ row }) => written.has(row.id)))
      // Changed by others in the meantime: read again.
      open = rows.filter(({ id }) => !written.has(id)).map(({ id }) => id)
    }
    return done
  }

  async function round(): Promise<void> {
    const uids = [...noted]
    noted.clear()
    try {
      await judgeDevices(uids)
    } catch (error) {
      // The database is away: the next round judges them.
      for (const uid of uids) noted.add(uid)
      throw error
    }
    if (waiting.size > 0) await judgeTags([...waiting].slice(0, mostWaiting))
    await sendAgain()
  }

  /** Budgets of the devices' tags wait for their turn. */
  async function judgeDevices(uids: readonly string[]): Promise<void> {
    for (let start = 0; start < uids.length; start += batch) {
      const some = uids.slice(start, start + batch)
      announce(await judgeAll(await store.ofDevices(some)))
      for (const id of await store.ofTags(some)) waiting.add(id)
    }
  }

  /** Until the time of the round is over. */
  async function judgeTags(ids: readonly number[]): Promise<void> {
    const rows = await store.findMany(ids)
    const exist = new Set(rows.map(({ id }) => id))
    for (const id of ids) if (!exist.has(id)) waiting.delete(id)
    const before = iso(clock.now() - tag_every_ms)
    const ends_at = performance.now() + tags_ms
    const judged: BudgetResult[] = []
    try {
      for (const { id, judged_at } of rows) {
        if (judged_at > before || performance.now() > ends_at) break
        judged.push(...(await judgeAll([id])))
        waiting.delete(id)
      }
    } finally {
      // Together, for one e-mail; also when the database went away half-way.
      announce(judged)
    }
  }

  const inTurn = (work: () => Promise<void>): Promise<void> =>
    (judging = judging.then(work).catch(parts.onError))

  return {
    note(uids) {
      for (const uid of uids) noted.add(uid)
    },
    judge: () => inTurn(round),
    async judgeWritten(tenant_id, id, isOfTag) {
      if (isOfTag && parts.tagsPerNamespace.take(tenant_id) > 0) waiting.add(id)
      else await inTurn(async () => announce(await judgeAll([id])))
    },
  }
}
