// How fast agents are let in: never more than so many within any window of time, because after a restart all
// of them come together. Those above it are told when to come back, each a little later than the one before,
// so that they come as fast as they can be let in; where more wait than can be promised a turn within the
// longest pause, they are spread over its later half instead of being sent to its end all at once.
import type { Clock } from '../kit/clock.ts'

export interface Admission {
  /** 0: come in. Else the whole seconds after which to come back. */
  enter(): number
}

/** Nobody is sent away for longer, however many wait. */
const longestPause_ms = 120_000
/**
 * Part of the rate that is promised to those who were sent away; the rest is for those who come for the first
 * time.
 */
const promised = 0.9

export function admission(
  clock: Clock,
  { max, window_ms }: { max: number; window_ms: number },
  random = Math.random,
): Admission {
  if (max === Infinity) return { enter: () => 0 }
  /** When the last ones were let in, in a ring: the one that is overwritten next is the oldest. */
  const entered = new Float64Array(max).fill(-Infinity)
  let oldest = 0
  let newest_at = -Infinity
  const step_ms = window_ms / (max * promised)
  /** When the next one who is sent away may come. */
  let next_at = 0

  /** The turn of one who is sent away. */
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
        // The clock was put back: what was counted by the old one says nothing.
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
