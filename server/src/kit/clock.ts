// The server's clock. Rules take it as a part, so that tests can move it; moments are ISO 8601 text in UTC
// with milliseconds, which sorts as it reads.

export interface Clock {
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
