// Waiting for what a test expects to come true. vitest gives up after a second, which is short on a busy
// machine: here a wait ends as soon as it may, and fails only for what does not happen at all.
// `vitest.config.ts` gives `expect.poll` the same limit.
import { vi } from 'vitest'

/** Below the time limit of a test, so that the test fails with what it waited for. */
export const longestWait_ms = 30_000
/** Between two checks: many ask a server, on a machine that has other tests to run. */
const pause_ms = 50

/**
 * Repeats the check until it does not throw, and returns its result; at the limit its last error is thrown.
 */
export const eventually = async <T>(
  check: () => T | Promise<T>,
  timeout: number = longestWait_ms,
  interval = pause_ms,
): Promise<T> => vi.waitFor(check, { timeout, interval })

/** Repeats the question until its answer counts as true, and returns it. */
export const until = async <T>(
  ask: () => T | Promise<T>,
  timeout: number = longestWait_ms,
  interval = pause_ms,
) => vi.waitUntil(ask, { timeout, interval })

/**
 * Repeats the question until two answers in a row are the same, and at least `least`; returns that answer.
 */
export async function atRest(
  number: () => number | Promise<number>,
  every_ms: number,
  least = -Infinity,
): Promise<number> {
  let before: number | undefined
  return eventually(
    async () => {
      const now = await number()
      const rests = now === before && now >= least
      before = now
      if (!rests) throw new Error(`${now} is not at rest, or less than ${least}`)
      return now
    },
    2 * longestWait_ms,
    every_ms,
  )
}
