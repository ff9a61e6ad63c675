// Parts of addresses that several pages have: a text, and a span of time. Invalid parameters are dropped.
import { defined } from '@hawser/contract/defined'
const hour_ms = 3_600_000
export const quickRanges = { '1h': hour_ms, '24h': 24 * hour_ms, '7d': 168 * hour_ms, '30d': 720 * hour_ms }
export type QuickRange = keyof typeof quickRanges

export interface TimeSpan {
  since?: QuickRange
  from?: string
  until?: string
}

export const textOf = (given: unknown): string =>
  typeof given === 'string' || typeof given === 'number' ? String(given) : ''

const isMoment = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) && !Number.isNaN(Date.parse(text))

export function readTimeSpan(given: Record<string, unknown>): TimeSpan {
  const since = (Object.keys(quickRanges) as QuickRange[]).find((one) => one === given['since'])
  if (since) return { since }
  const [from, until] = [textOf(given['from']), textOf(given['until'])]
  return defined({ from: isMoment(from) ? from : undefined, until: isMoment(until) ? until : undefined })
}

/** Computed for each request, since some spans end now. */
export const spanOf = ({ since, from, until }: TimeSpan): { from?: string; to?: string } =>
  defined({
    from: from ?? (since && new Date(Date.now() - quickRanges[since]).toISOString()),
    to: until,
  })
