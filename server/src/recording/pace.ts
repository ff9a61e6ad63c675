// The two clocks of all journals together: soon after something was written down its block is closed and
// handed to the disk, and at most once a second the disk is told to keep what it was handed. One round of
// syncs at a time, a few files at once, so that a thousand sessions do not take all of the threads that the
// rest of the server needs for its own files.

export interface Paced {
  /** Hands what waits to the disk. */
  push(): void
  sync(): Promise<void>
}

export interface Pace extends Disposable {
  /** Something was written down. */
  dirty(one: Paced): void
  /** Something was handed to the disk. */
  unsynced(one: Paced): void
  /** It is over: it looks after itself. */
  forget(one: Paced): void
}

const push_ms = 50
const sync_ms = 1_000
const syncsAtOnce = 2

export function pace(): Pace {
  const dirty = new Set<Paced>()
  const unsynced = new Set<Paced>()
  let pushing: NodeJS.Timeout | undefined
  let syncing: NodeJS.Timeout | undefined
  let over = false

  const push = (): void => {
    pushing = undefined
    const all = [...dirty]
    dirty.clear()
    for (const one of all) one.push()
  }
  const later = (delay_ms: number): void => {
    if (over || unsynced.size === 0) syncing = undefined
    else syncing = setTimeout(() => void round(), delay_ms)
  }
  const round = async (): Promise<void> => {
    const started = performance.now()
    const all = [...unsynced]
    unsynced.clear()
    const next = async (): Promise<void> => {
      for (let one = all.pop(); one; one = all.pop()) await one.sync()
    }
    await Promise.all(Array.from({ length: syncsAtOnce }, next))
    later(Math.max(0, sync_ms - (performance.now() - started)))
  }
  return {
    dirty(one) {
      dirty.add(one)
      pushing ??= setTimeout(push, push_ms)
    },
    unsynced(one) {
      unsynced.add(one)
      // Not a whole second: what is pushed only after 50 ms is to be safe within one.
      if (syncing === undefined) later(sync_ms - 2 * push_ms)
    },
    forget(one) {
      dirty.delete(one)
      unsynced.delete(one)
    },
    [Symbol.dispose]() {
      over = true
      clearTimeout(pushing)
      clearTimeout(syncing)
    },
  }
}
