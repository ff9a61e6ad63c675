// When journals are written and synced, for all journals together. Soon after an event its block is written
// to the file, and at most once a second the file is synced. There is one round of syncs at a time, with a
// few files at once, so that a thousand sessions do not take all the threads that the rest of the server
// needs.

export interface Flushable {
  /** Writes what waits to the file. */
  push(): void
  sync(): Promise<void>
}

export interface FlushSchedule extends Disposable {
  dirty(one: Flushable): void
  unsynced(one: Flushable): void
  /** The journal is over and syncs itself. */
  forget(one: Flushable): void
}

const push_ms = 50
const sync_ms = 1_000
const syncsAtOnce = 2

export function flushSchedule(): FlushSchedule {
  const dirty = new Set<Flushable>()
  const unsynced = new Set<Flushable>()
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
      // Less than a second: an event is written after up to 50 ms and should be safe within one second.
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
