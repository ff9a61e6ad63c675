// A bounded counter of calls per key in fixed windows: at most `max` calls in `window_ms`. It forgets whole
// windows at once, so its memory is bounded by the calls of one window and by `keys`, whatever callers
// invent. When there are too many keys, single ones give way, those that were counted once before the others.
import { BoundedMap } from './bounded-map.ts'
import type { Clock } from './clock.ts'

export interface Limiter {
  /** Counts one call. Seconds to wait when it is one too many, else 0. */
  take(key: string): number
  /** What `take` would answer, without counting: for what is counted only when it fails. */
  peek(key: string): number
  /** Calls that were counted elsewhere. */
  add(key: string, calls: number): void
}

const keys = 100_000

export function limiter(clock: Clock, options: { max: number; window_ms: number }): Limiter {
  const counts = new BoundedMap<string, number>(keys, (count) => count > 1)
  let ends_at = 0
  const next = (key: string): { count: number; wait_s: number } => {
    const now = clock.now()
    if (now >= ends_at) {
      counts.clear()
      ends_at = now + options.window_ms
    }
    const count = (counts.get(key) ?? 0) + 1
    return { count, wait_s: count > options.max ? Math.max(1, Math.ceil((ends_at - now) / 1000)) : 0 }
  }
  return {
    take(key) {
      const { count, wait_s } = next(key)
      counts.set(key, count)
      return wait_s
    },
    peek: (key) => next(key).wait_s,
    add(key, calls) {
      counts.set(key, next(key).count - 1 + calls)
    },
  }
}
