// A budget's row in the present month, and what a device shows of its budgets.
import { budgetStates, warnedShare, type BudgetState, type DeviceBudget } from '@hawser/contract/budgets'
import { defined } from '@hawser/contract/defined'
import { iso, type Clock } from '../../kit/clock.ts'
import type { BudgetRow } from '../../storage/budgets.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { With } from '../audit/parts.ts'

export const monthOf = (clock: Clock): string => iso(clock.now()).slice(0, 7)
export const rank = (state: BudgetState): number => budgetStates.indexOf(state)

export const inMonth = ({ month, used, state, told }: BudgetRow, now: string) =>
  month === now ? { used, state, told } : ({ used: 0, state: 'under', told: 'under' } as const)

export const stateOf = (used: number, bytes: number): BudgetState => {
  if (used >= bytes) return 'over'
  return used >= bytes * warnedShare ? 'warned' : 'under'
}

export interface ShownBudget {
  readonly shown: DeviceBudget
  /** A budget prevents updates of the agent now. */
  readonly stopsUpdates: boolean
}

/** By uid, for devices of one namespace: the budget that is used up most. */
export async function budgetsOf(
  { stores, clock }: With<'stores' | 'clock'>,
  tenant_id: string,
  rows: readonly DeviceRow[],
): Promise<Map<string, ShownBudget>> {
  const tagsOf = new Map(rows.map(({ uid, tags }) => [uid, JSON.parse(tags) as string[]]))
  const tags = [...new Set([...tagsOf.values()].flat())]
  const budgets = await stores.of(tenant_id).budgets.concerning([...tagsOf.keys()], tags)
  const found = new Map<string, ShownBudget>()
  if (budgets.length === 0) return found
  const month = monthOf(clock)
  const byDevice = new Map(budgets.map((budget) => [budget.device, budget]))
  const byTag = new Map(budgets.map((budget) => [budget.tag, budget]))
  for (const [uid, its] of tagsOf) {
    const mine = [byDevice.get(uid), ...its.map((tag) => byTag.get(tag))].filter((one) => one !== undefined)
    const shown = mine.map((budget) => shownOf(budget, month))
    const [most] = shown.toSorted((one, other) => other.used / other.bytes - one.used / one.bytes)
    if (!most) continue
    const stopsUpdates = mine.some((one) => one.stop_updates === 1 && inMonth(one, month).state === 'over')
    found.set(uid, { shown: most, stopsUpdates })
  }
  return found
}

function shownOf(row: BudgetRow, now: string): DeviceBudget {
  const { used, state } = inMonth(row, now)
  return { id: String(row.id), ...defined({ tag: row.tag ?? undefined }), bytes: row.bytes, used, state }
}
