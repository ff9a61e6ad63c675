// At most so many at a time, the others one after the other in the order in which they came, and not more
// than so many of those: whoever comes then is told at once.

export type Turns = <T>(work: () => Promise<T>, full: T) => Promise<T>

/**
 * What it returns resolves with the result of the work, or with the second argument when too many wait
 * already.
 */
export function turns(most: number, mostWaiting: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work, full) => {
    if (running >= most) {
      if (waiting.length >= mostWaiting) return full
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
