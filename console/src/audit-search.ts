// The search parameters of the audit log.
import { defined } from '@hawser/contract/defined'
import { readTimeSpan, textOf, type TimeSpan } from './search-params.ts'

export interface AuditSearch extends TimeSpan {
  /** The beginning of an action. */
  action?: string
  actor?: string
  target?: string
  /** Only entries before the one with this number. */
  before?: number
}

export function readAuditSearch(given: Record<string, unknown>): AuditSearch {
  const [action, actor, target] = (['action', 'actor', 'target'] as const).map((name) =>
    textOf(given[name]).trim().slice(0, 255),
  )
  const before = given['before']
  return defined({
    action: action && /^[a-z.-]{1,64}$/.test(action) ? action : undefined,
    actor: actor || undefined,
    target: target || undefined,
    ...readTimeSpan(given),
    before: typeof before === 'number' && Number.isSafeInteger(before) && before > 0 ? before : undefined,
  })
}
