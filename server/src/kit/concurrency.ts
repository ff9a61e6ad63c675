// Limits how many tasks run at once; others queue by key, and further ones are refused. For expensive work
// (password hashing), work that must not overlap (guesses at one account), and threads that namespaces share
// in turns.

export interface QueueOptions {
  /** Ends the wait for a turn; a running task has to heed it by itself. */
  readonly signal?: AbortSignal | undefined
  /** Precedes the other tasks of its key, in a queue of its own: somebody waits for it. */
  readonly first?: boolean | undefined
}

export interface KeyLimiter {
  /** Undefined when a queue is full. */
  run<T>(key: string, task: () => Promise<T>, options?: QueueOptions): Promise<T> | undefined
  hasRoom(key: string, options?: Pick<QueueOptions, 'first'>): boolean
  readonly waiting: number
}

interface Line {
  readonly key: string
  readonly first: (() => void)[]
  readonly rest: (() => void)[]
  running: number
}

/**
 * Runs `each` tasks at a time for each key, and `atOnce` in all. Keys take turns, so that a key with many
 * tasks delays another by a single task. At most `keys` keys wait, and as many again whose task comes first.
 */
export function concurrencyByKey(
  waiting: number,
  { each = 1, atOnce = Infinity, keys = Infinity }: { each?: number; atOnce?: number; keys?: number } = {},
): KeyLimiter {
  const lines = new Map<string, Line>()
  /** Lines whose next task may begin, in the order of their turns. */
  const ready = new Set<Line>()
  let running = 0

  /** Every second turn is for a task that somebody waits for, however many keys have other tasks. */
  let isForFirst = true
  function nextLine(): Line | undefined {
    const waited = isForFirst ? [...ready].find(({ first }) => first.length > 0) : undefined
    return waited ?? ready.values().next().value
  }
  function begin(): void {
    for (let line = nextLine(); line; line = nextLine()) {
      if (running >= atOnce) return
      isForFirst = !isForFirst
      ready.delete(line)
      const next = line.first.shift() ?? line.rest.shift()
      next?.()
      settle(line)
    }
  }
  function settle(line: Line): void {
    const waits = line.first.length + line.rest.length > 0
    if (waits && line.running < each) ready.add(line)
    else ready.delete(line)
    if (!waits && line.running === 0) lines.delete(line.key)
  }
  function hasRoom(key: string, { first = false }: Pick<QueueOptions, 'first'> = {}): boolean {
    const line = lines.get(key)
    if (!line) return lines.size < (first ? 2 * keys : keys) + atOnce
    return (first ? line.first : line.rest).length < waiting
  }

  return {
    hasRoom,
    get waiting() {
      return [...lines.values()].reduce((sum, { first, rest }) => sum + first.length + rest.length, 0)
    },
    run<T>(key: string, task: () => Promise<T>, options: QueueOptions = {}) {
      const { first } = options
      if (!hasRoom(key, { first })) return undefined
      const line = lines.get(key) ?? { key, first: [], rest: [], running: 0 }
      lines.set(key, line)
      // Only a task that has to wait needs the signal, which is made on demand.
      const signal = line.running < each && running < atOnce ? undefined : options.signal
      const queue = first ? line.first : line.rest
      return new Promise<T>((resolve, reject) => {
        const leave = (): void => {
          queue.splice(queue.indexOf(start), 1)
          settle(line)
          reject(signal?.reason as Error)
        }
        const start = (): void => {
          signal?.removeEventListener('abort', leave)
          line.running++
          running++
          void (async () => task())()
            .then(resolve, reject)
            .finally(() => {
              line.running--
              running--
              settle(line)
              begin()
            })
        }
        queue.push(start)
        if (signal?.aborted) return leave()
        signal?.addEventListener('abort', leave, { once: true })
        settle(line)
        begin()
      })
    },
  }
}

/** Each key has at most `most` places; undefined: they are taken. */
export function placesByKey(most: number): (key: string) => Disposable | undefined {
  const taken = new Map<string, number>()
  return (key) => {
    const count = taken.get(key) ?? 0
    if (count >= most) return undefined
    taken.set(key, count + 1)
    let isOver = false
    return {
      [Symbol.dispose]() {
        if (isOver) return
        isOver = true
        const left = (taken.get(key) ?? 1) - 1
        if (left > 0) taken.set(key, left)
        else taken.delete(key)
      },
    }
  }
}
