// How fast agents are let in: a bounded number in any window of time, because after a restart all of them
// come together. Further ones get the time to come back, each a little later than the one before; those who
// cannot be promised a turn within the longest pause are spread over its later half.
import type { Clock } from '../kit/clock.ts'

export interface Admission {
  /** 0: come in. Else the whole seconds after which to come back. */
  enter(): number
}

/** However many wait. */
const longestPause_ms = 120_000
/** Part of the rate that is promised to those who come back; the rest is for first attempts. */
const promised = 0.9

export function admission(
  clock: Clock,
  { max, window_ms }: { max: number; window_ms: number },
  random = Math.random,
): Admission {
  if (max === Infinity) return { enter: () => 0 }
  /** When the last ones were let in; a ring, whose oldest entry is overwritten next. */
  const entered = new Float64Array(max).fill(-Infinity)
  let oldest = 0
  let newest_at = -Infinity
  const step_ms = window_ms / (max * promised)
  let next_at = 0

  function pause_ms(now: number): number {
    const turn_ms = Math.max(next_at, now) + step_ms - now
    if (turn_ms > longestPause_ms) return longestPause_ms * (0.5 + random() / 2)
    next_at = now + turn_ms
    return turn_ms
  }

  return {
    enter() {
      const now = clock.now()
      if (now < newest_at) {
        // The clock was put back, so its earlier counts mean nothing.
        entered.fill(-Infinity)
        next_at = 0
      }
      newest_at = now
      if (now - entered[oldest]! < window_ms) return Math.max(1, Math.round(pause_ms(now) / 1000))
      entered[oldest] = now
      oldest = (oldest + 1) % max
      return 0
    },
  }
}
