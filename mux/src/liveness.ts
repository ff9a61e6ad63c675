// Whether the peer of a session is there, found out when somebody needs to know instead of at the next ping.
// A connection can be dead for minutes without a sign of it; whoever has sent something and waits in
// vain asks here. Any byte that comes is an answer, so a slow connection that is full of data is not
// taken for a dead one.
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { ConnectionLost } from './errors.ts'
import type { Mux } from './yamux.ts'

/** Watches one session. */
export interface Liveness {
  /** Pings a peer that is silent; one that stays silent ends the session with `ConnectionLost`. */
  check(): void
}

/** Watches what comes on the carrier of a session. A peer has `answer_ms` to say something. */
export function liveness(carrier: Duplex, mux: Mux, answer_ms = 5_000): Liveness {
  let heard_at = performance.now()
  let checking: NodeJS.Timeout | undefined
  carrier.on('data', () => void (heard_at = performance.now()))
  void mux.ended.then(() => clearTimeout(checking))
  return {
    check() {
      if (checking || performance.now() - heard_at < answer_ms) return
      const asked_at = performance.now()
      mux.ping().catch(() => undefined)
      checking = setTimeout(() => {
        checking = undefined
        if (heard_at < asked_at) mux.close(new ConnectionLost('The peer does not answer.', { silent: true }))
      }, answer_ms)
      checking.unref()
    },
  }
}
