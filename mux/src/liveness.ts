// Whether the peer of a session is there, found out when somebody needs to know instead of at the next ping.
// A connection can be dead for minutes without a sign of it; a caller that has sent something and waits in
// vain asks here. Any byte that comes is an answer, so a slow connection that is full of data is not
// taken for a dead one.
import type { Duplex } from 'node:stream'
import { ConnectionLost } from './errors.ts'
import type { Mux } from './yamux.ts'

/** Watches one session. */
export interface Liveness {
  /** Pings a silent peer; continued silence ends the session with `ConnectionLost`. */
  check(): void
}

/**
 * Pings, when somebody asks, a peer that was silent for `answer_ms`, which then has as long again to answer.
 */
export function liveness(carrier: Duplex, mux: Mux, answer_ms = 5_000): Liveness {
  let heard_at = performance.now()
  /** When somebody last asked, and when the peer was pinged for it. */
  let asked_at = -Infinity
  let pinged_at = -Infinity
  let timer: NodeJS.Timeout | undefined
  carrier.on('data', () => void (heard_at = performance.now()))
  void mux.ended.then(() => clearTimeout(timer))

  function look(): void {
    timer = undefined
    if (heard_at >= asked_at) return
    const left_ms = Math.max(heard_at, pinged_at) + answer_ms - performance.now()
    if (left_ms > 0) return again(left_ms)
    if (pinged_at > heard_at)
      return mux.close(new ConnectionLost('The peer does not answer.', { silent: true }))
    pinged_at = performance.now()
    mux.ping().catch(() => undefined)
    again(answer_ms)
  }

  function again(after_ms: number): void {
    timer = setTimeout(look, Math.ceil(after_ms))
    timer.unref()
  }

  return {
    check() {
      asked_at = performance.now()
      if (!timer) look()
    },
  }
}
