// Wakes those who wait for a device to get its next tunnel, on this node or on another one.
import type { Bus } from '../bus/bus.ts'

export interface Arrivals extends Disposable {
  /** Calls the listener whenever the device may have a new tunnel. */
  listen(uid: string, listener: () => void): Disposable
}

export function arrivals(bus: Pick<Bus, 'hear' | 'missed'>): Arrivals {
  const waiting = new Map<string, Set<() => void>>()
  const heard = bus.hear('tunnel.taken', ({ uid }) => {
    for (const wake of waiting.get(uid) ?? []) wake()
  })
  const missed = bus.missed(() => {
    for (const wake of [...waiting.values()].flatMap((listeners) => [...listeners])) wake()
  })
  return {
    listen(uid, listener) {
      const listeners = waiting.get(uid) ?? new Set()
      waiting.set(uid, listeners.add(listener))
      return {
        [Symbol.dispose]() {
          listeners.delete(listener)
          if (listeners.size === 0 && waiting.get(uid) === listeners) waiting.delete(uid)
        },
      }
    },
    [Symbol.dispose]() {
      heard[Symbol.dispose]()
      missed[Symbol.dispose]()
    },
  }
}
