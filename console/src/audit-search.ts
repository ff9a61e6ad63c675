// What the address of the audit log says.
import { readTimeSpan, textOf, type TimeSpan } from './search-params.ts'

export interface AuditSearch extends TimeSpan {
  /** The beginning of an action. */
  action?: string
  /** An id or a name. */
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
  return {
    ...(action && /^[a-z.-]{1,64}$/.test(action) ? { action } : {}),
    ...(actor ? { actor } : {}),
    ...(target ? { target } : {}),
    ...readTimeSpan(given),
    ...(typeof before === 'number' && Number.isSafeInteger(before) && before > 0 ? { before } : {}),
  }
}
