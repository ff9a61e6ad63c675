// How long the tunnel may be idle before it needs a ping. A NAT or a proxy on the way forgets an idle
// connection, after an unknown time. So the agent tries: while pings are answered it doubles the interval,
// and after a loss it stays below that time. It closes in on the limit with one or two more tries, and
// retries a longer interval after an hour, then after twice as long, because devices move. A proven interval
// is given up after two losses in a row. A loss without a network does not count.
import { firstPing_s, longestPing_s, shortestPing_s } from '@hawser/contract/tunnel'

export interface PingInterval {
  /** In whole seconds. */
  readonly now_s: number
  /** The server's longest interval, which may change; the device's own setting counts if it is shorter. */
  limit(longest_s: number): void
  /** Adopts what was learnt earlier, unless this agent has learnt something itself. */
  adopt(learnt_s: number): void
  /** A ping was answered after this idle time. */
  survived(idle_ms: number): void
  /** The tunnel was lost after this idle time, while the network was there. */
  lost(idle_ms: number): void
}

const shortest_ms = shortestPing_s * 1_000
/** When a longer interval is tried again after a limit was found; doubled each time. */
const retry_ms = { first: 3_600_000, most: 24 * 3_600_000 }
/** The search is over when the limit is within this factor. */
const near = 1.5
/** The share of an interval that is used close to its limit: pings are late at times. */
const margin = 0.9
/** Surviving this part of the longest idle time confirms it. */
const confirms = 0.85

interface Learnt {
  /** The longest idle time that the tunnel has survived. */
  survived_ms: number
  /** Infinity: the tunnel was never lost, or that was long ago. */
  limit_ms: number
  /** When the limit is forgotten, and how long the next one is remembered. */
  retry_at: number
  retry_ms: number
  /** The tunnel was lost after an idle time that it had survived before, and has not survived since. */
  isDoubted: boolean
}

/** `own_s`: the longest in the settings of this device. */
export function pingInterval(
  own_s = longestPing_s,
  now: () => number = () => performance.now(),
): PingInterval {
  const learnt: Learnt = {
    survived_ms: shortest_ms,
    limit_ms: Infinity,
    retry_at: Infinity,
    retry_ms: retry_ms.first,
    isDoubted: false,
  }
  let interval_ms = firstPing_s * 1_000
  let servers_s = longestPing_s
  let isNew = true

  const use = (next_ms: number): void => {
    interval_ms = Math.max(shortest_ms, next_ms)
  }

  function next(): number {
    const { survived_ms, limit_ms } = learnt
    if (limit_ms / survived_ms <= near) return survived_ms * margin
    return limit_ms === Infinity ? survived_ms * 2 : Math.sqrt(survived_ms * limit_ms)
  }

  return {
    get now_s() {
      const longest_s = Math.max(shortestPing_s, Math.min(own_s, servers_s))
      return Math.min(Math.floor(interval_ms / 1_000), longest_s)
    },
    limit(longest_s) {
      servers_s = longest_s
    },
    adopt(learnt_s) {
      if (!isNew || !(learnt_s >= shortestPing_s)) return
      isNew = false
      learnt.survived_ms = Math.min(learnt_s, longestPing_s) * 1_000
      use(learnt.survived_ms)
    },
    survived(idle_ms) {
      if (now() >= learnt.retry_at) {
        learnt.limit_ms = Infinity
        learnt.retry_at = Infinity
      }
      if (idle_ms >= learnt.survived_ms * confirms) learnt.isDoubted = false
      if (idle_ms > learnt.survived_ms) {
        isNew = false
        learnt.survived_ms = idle_ms
      }
      if (learnt.survived_ms >= learnt.limit_ms) {
        // Longer than the lost time: something else was the reason, or the network is another one.
        learnt.limit_ms = Infinity
        learnt.retry_ms = retry_ms.first
      }
      use(Math.min(next(), longestPing_s * 1_000))
    },
    lost(idle_ms) {
      if (idle_ms < shortest_ms * margin) return
      isNew = false
      const isTry = idle_ms > learnt.survived_ms
      const wasDoubted = learnt.isDoubted
      learnt.isDoubted ||= !isTry
      // A link that comes and goes loses tunnels, too, whatever the interval. A NAT does it every time.
      if (!isTry && !wasDoubted) return
      learnt.retry_at = now() + learnt.retry_ms
      // The longer interval was a try, which has failed again. Otherwise the network has changed.
      if (isTry) learnt.retry_ms = Math.min(learnt.retry_ms * 2, retry_ms.most)
      learnt.limit_ms = idle_ms
      learnt.survived_ms = Math.max(shortest_ms, Math.min(learnt.survived_ms, idle_ms / 2))
      use(learnt.survived_ms)
    },
  }
}
