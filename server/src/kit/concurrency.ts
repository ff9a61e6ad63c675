// Turns: at most `atOnce` pieces of work run, the others wait in line, and beyond `waiting` nobody may join
// it. For work that is dear (password hashing) or that must not overlap for one subject (guesses at one
// account).

export interface Turns {
  /** Runs the work when it is its turn; undefined when the line is full. */
  take<T>(work: () => Promise<T>): Promise<T> | undefined
}

export function turns(options: { atOnce: number; waiting: number }): Turns {
  let running = 0
  const line: (() => void)[] = []
  /** The place passes straight to the next in line; it is never free in between. */
  const leave = (): void => {
    const next = line.shift()
    if (next) next()
    else running--
  }
  return {
    take(work) {
      if (running < options.atOnce) {
        running++
        return work().finally(leave)
      }
      if (line.length >= options.waiting) return undefined
      return new Promise<void>((resolve) => line.push(resolve)).then(work).finally(leave)
    },
  }
}

/** One at a time for each key; keys are forgotten when nobody waits. */
export function turnsByKey(waiting: number): {
  take<T>(key: string, work: () => Promise<T>): Promise<T> | undefined
} {
  const byKey = new Map<string, { turns: Turns; users: number }>()
  return {
    take(key, work) {
      const entry = byKey.get(key) ?? { turns: turns({ atOnce: 1, waiting }), users: 0 }
      const result = entry.turns.take(work)
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
