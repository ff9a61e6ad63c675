// Limits that apply to all nodes together. Each node sends its counts to the others twice a second, so that
// spreading calls over nodes gains nothing; counting alone for half a second is exact enough.
import type { Bus } from '../bus/bus.ts'
import type { Limiter } from '../kit/limiter.ts'

const every_ms = 500
/** Per half second; further keys are counted by each node alone. */
const mostKeys = 2_000

export interface SharedLimits extends Disposable {
  /** The same limiter, with the calls of the other nodes. */
  share(limit: string, limiter: Limiter): Limiter
}

export function sharedLimits(bus: Bus, node: string): SharedLimits {
  const shared = new Map<string, { limiter: Limiter; counted: Map<string, number> }>()
  const subscription = bus.hear('limit.counted', ({ node: from, limit, keys }) => {
    if (from !== node) for (const [key, calls] of keys) shared.get(limit)?.limiter.add(key, calls)
  })
  const timer = setInterval(() => {
    for (const [limit, { counted }] of shared) {
      if (counted.size === 0) continue
      bus.tell('limit.counted', { node, limit, keys: [...counted] })
      counted.clear()
    }
  }, every_ms)
  timer.unref()
  return {
    share(limit, limiter) {
      const counted = new Map<string, number>()
      shared.set(limit, { limiter, counted })
      return {
        ...limiter,
        take(key) {
          if (counted.has(key) || counted.size < mostKeys) counted.set(key, (counted.get(key) ?? 0) + 1)
          return limiter.take(key)
        },
      }
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      subscription[Symbol.dispose]()
    },
  }
}
