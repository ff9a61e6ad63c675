// Time as the server sees it. Rules take a clock instead of asking the system, so that tests can move it;
// moments are kept and sent as ISO 8601 text in UTC with milliseconds, which sorts as it reads.

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
}

export const systemClock: Clock = { now: Date.now }

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

export const second_ms = 1000
export const minute_ms = 60 * second_ms
export const hour_ms = 60 * minute_ms
export const day_ms = 24 * hour_ms
