// A bounded counter of calls per key in fixed windows: at most `max` calls in `window_ms`. It forgets whole windows at
// once, so its memory is bounded by the calls of two windows and by `keys`, whatever callers invent.
import type { Clock } from './clock.ts'

export interface Limiter {
  /** Counts one call. Seconds to wait when it is one too many, else 0. */
  take(key: string): number
}

const keys = 100_000

export function limiter(clock: Clock, options: { max: number; window_ms: number }): Limiter {
  let counts = new Map<string, number>()
  let ends_at = 0
  return {
    take(key) {
      const now = clock.now()
      if (now >= ends_at || counts.size >= keys) {
        counts = new Map()
        ends_at = now + options.window_ms
      }
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count > options.max ? Math.max(1, Math.ceil((ends_at - now) / 1000)) : 0
    },
  }
}
