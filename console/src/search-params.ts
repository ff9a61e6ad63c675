// Parts of addresses that several pages have: a text, and a span of time. Invalid parameters are dropped.
const hour_ms = 3_600_000
/** Spans of time that end now. */
export const quickRanges = { '1h': hour_ms, '24h': 24 * hour_ms, '7d': 168 * hour_ms, '30d': 720 * hour_ms }
export type QuickRange = keyof typeof quickRanges

export interface TimeSpan {
  since?: QuickRange
  from?: string
  until?: string
}

/** The router parses a name of digits as a number. */
export const textOf = (given: unknown): string =>
  typeof given === 'string' || typeof given === 'number' ? String(given) : ''

const isMoment = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) && !Number.isNaN(Date.parse(text))

export function readTimeSpan(given: Record<string, unknown>): TimeSpan {
  const since = (Object.keys(quickRanges) as QuickRange[]).find((one) => one === given['since'])
  if (since) return { since }
  const [from, until] = [textOf(given['from']), textOf(given['until'])]
  return { ...(isMoment(from) ? { from } : {}), ...(isMoment(until) ? { until } : {}) }
}

/** The span of time for the server; asked for when the request is made, since some spans end now. */
export const spanOf = ({ since, from, until }: TimeSpan): { from?: string; to?: string } => ({
  ...(since ? { from: new Date(Date.now() - quickRanges[since]).toISOString() } : {}),
  ...(from === undefined ? {} : { from }),
  ...(until === undefined ? {} : { to: until }),
})
