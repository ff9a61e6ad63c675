// Limits how many tasks run at once: at most `atOnce` run, at most `waiting` wait in a queue, and further
// ones are refused. For expensive work (password hashing) and for work that must not overlap for one subject
// (guesses at one account).

export interface ConcurrencyLimiter {
  /** Runs the task as soon as it may; undefined when the queue is full. */
  run<T>(task: () => Promise<T>): Promise<T> | undefined
  /** Tasks in the queue. */
  readonly waiting: number
}

export function concurrencyLimiter(options: { atOnce: number; waiting: number }): ConcurrencyLimiter {
  let running = 0
  const queue: (() => void)[] = []
  /** The slot passes straight to the next in the queue; it is never free in between. */
  const leave = (): void => {
    const next = queue.shift()
    if (next) next()
    else running--
  }
  return {
    get waiting() {
      return queue.length
    },
    run(task) {
      if (running < options.atOnce) {
        running++
        return task().finally(leave)
      }
      if (queue.length >= options.waiting) return undefined
      return new Promise<void>((resolve) => queue.push(resolve)).then(task).finally(leave)
    },
  }
}

/** One task at a time for each key; a key is dropped when it has no task. */
export function concurrencyByKey(waiting: number): {
  run<T>(key: string, task: () => Promise<T>): Promise<T> | undefined
} {
  const byKey = new Map<string, { limiter: ConcurrencyLimiter; users: number }>()
  return {
    run(key, task) {
      const entry = byKey.get(key) ?? { limiter: concurrencyLimiter({ atOnce: 1, waiting }), users: 0 }
      const result = entry.limiter.run(task)
      if (!result) return undefined
      entry.users++
      byKey.set(key, entry)
      return result.finally(() => {
        entry.users--
        if (entry.users === 0) byKey.delete(key)
      })
    },
  }
}
