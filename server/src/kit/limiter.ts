// A bounded counter of calls per key in fixed windows: at most `max` calls in `window_ms`. It forgets whole
// windows at once, so its memory is bounded by the calls of one window and by `keys`, whatever callers
// invent. When there are too many keys, single ones give way, those that were counted once before the others.
//
// And counts of events that strangers cause, in windows of a minute, which lose none. Each name has a value of its own
// while its group and the window have room. Then the other names of the group share one, and beyond that all names.
import { BoundedMap } from './bounded-map.ts'
import { minute_ms, type Clock } from './clock.ts'

export interface Limiter {
  /** Returns seconds to wait when the call is one too many, else 0. */
  take(key: string): number
  /** The answer of `take`, without counting: for calls that count only when they fail. */
  peek(key: string): number
  add(key: string, calls: number): void
}

const keys = 100_000

export function limiter(clock: Clock, options: { max: number; window_ms: number }): Limiter {
  const counts = new BoundedMap<string, number>(keys, (count) => count > 1)
  let ends_at = 0
  const next = (key: string): { count: number; wait_s: number } => {
    const now = clock.now()
    if (now >= ends_at) {
      counts.clear()
      ends_at = now + options.window_ms
    }
    const count = (counts.get(key) ?? 0) + 1
    return { count, wait_s: count > options.max ? Math.max(1, Math.ceil((ends_at - now) / 1000)) : 0 }
  }
  return {
    take(key) {
      const { count, wait_s } = next(key)
      counts.set(key, count)
      return wait_s
    },
    peek: (key) => next(key).wait_s,
    add(key, calls) {
      counts.set(key, next(key).count - 1 + calls)
    },
  }
}

export interface WindowOptions<V> {
  readonly clock: Clock
  /** Names of one group with a value of their own. */
  readonly perGroup?: number
  /** Values in a window. */
  readonly most: number
  /** A window is over; these are its values, the oldest first. */
  onEnd?(values: readonly V[]): void
}

/** Whose value it is: a name's own, that of the other names of its group, or that of all other names. */
export type Share = 'own' | 'group' | 'all'

export function windows<V>({ clock, perGroup = Infinity, most, onEnd }: WindowOptions<V>) {
  const values = new Map<string, V>()
  const inGroups = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let ends_at = 0

  function end(): void {
    clearTimeout(timer)
    timer = undefined
    const all = [...values.values()]
    values.clear()
    inGroups.clear()
    onEnd?.(all)
  }

  /** Ends the window if it is over by the clock; a timer does the same. */
  function endIfOver(): void {
    if (clock.now() >= ends_at) end()
  }

  return {
    /** The value of the first of these names that has one or may have one. */
    of(group: string, names: Readonly<Record<Share, string>>, make: (share: Share) => V): V {
      endIfOver()
      if (!timer) ends_at = clock.now() + minute_ms
      timer ??= setTimeout(end, minute_ms).unref()
      const known = values.get(names.own) ?? values.get(names.group)
      if (known !== undefined) return known
      const count = inGroups.get(group) ?? 0
      const share = values.size >= most ? 'all' : count < perGroup ? 'own' : 'group'
      if (share === 'own') inGroups.set(group, count + 1)
      const value = values.get(names[share]) ?? make(share)
      values.set(names[share], value)
      return value
    },
    endIfOver,
    [Symbol.dispose]: end,
  }
}
