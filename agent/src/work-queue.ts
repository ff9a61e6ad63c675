// Limits how much work runs at once. More work waits in the order in which it came; when too much waits, the
// caller gets an answer at once.

export type WorkQueue = <T>(work: () => Promise<T>, whenFull: T) => Promise<T>

/** Resolves with the result of the work, or with `whenFull` when `mostWaiting` others wait. */
export function workQueue(mostRunning: number, mostWaiting: number): WorkQueue {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work, whenFull) => {
    if (running >= mostRunning) {
      if (waiting.length >= mostWaiting) return whenFull
      await new Promise<void>((resolve) => void waiting.push(resolve))
    } else running += 1
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}
