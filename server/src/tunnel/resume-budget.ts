// How often a stream that outlives its tunnel may break. On real links something passes between two breaks,
// or nothing had to. An agent that continues and breaks a stream in a loop moves nothing: quick breaks wait
// longer and longer for the next attempt, and after many in a row, with bytes waiting and none passed, the
// stream is given up. Any byte refills the budget.
import type { ResumableStream } from '@hawser/mux'

/** Breaks in a row with bytes that wait, and without a byte that passed. */
export const mostFruitless = 30
/** A carrier that lives this long has not broken soon. */
const soon_ms = 10_000
/** Quick breaks that are continued at once. */
const atOnce = 2
const first_ms = 100
const longest_ms = 1_000

export interface ResumeBudget {
  attached(): void
  /** Returns the pause before the next attempt; undefined: the budget is used up. */
  lost(): number | undefined
}

export function resumeBudget(stream: Pick<ResumableStream, 'moved_bytes' | 'isOwed'>): ResumeBudget {
  let attached_at = performance.now()
  /** Bytes that had passed when the last carrier was lost. */
  let moved_bytes = 0
  let fruitless = 0
  let hasty = 0
  return {
    attached() {
      attached_at = performance.now()
    },
    lost() {
      hasty = performance.now() - attached_at < soon_ms ? hasty + 1 : 0
      if (stream.moved_bytes > moved_bytes) fruitless = 0
      else if (stream.isOwed) fruitless += 1
      moved_bytes = stream.moved_bytes
      if (fruitless >= mostFruitless) return undefined
      return hasty <= atOnce ? 0 : Math.min(longest_ms, first_ms * 2 ** Math.min(hasty - atOnce - 1, 16))
    },
  }
}
