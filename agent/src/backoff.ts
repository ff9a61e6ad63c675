// How long to wait before the next try: longer each time, and never in step with other agents. A server that names a time is
// there, and knows when it has room: it is obeyed, to the second, and the wait does not grow.

export interface Backoff {
  /** Waits; rejects only when the signal stops it. */
  wait(signal: AbortSignal, asked_s?: number): Promise<void>
  /** It worked: the next failure is a first one again. */
  reset(): void
}

const first_ms = 1_000
const most_ms = 60_000
const mostAsked_s = 3_600

export function backoff(random = Math.random): Backoff {
  let next_ms = first_ms
  return {
    async wait(signal, asked_s = 0) {
      const asked = asked_s > 0
      const wait_ms = asked ? Math.min(asked_s, mostAsked_s) * 1000 + random() * first_ms : next_ms * (0.5 + random() / 2)
      if (!asked) next_ms = Math.min(next_ms * 2, most_ms)
      await new Promise<void>((resolve, reject) => {
        const stop = (): void => {
          clearTimeout(timer)
          reject(signal.reason as Error)
        }
        const timer = setTimeout(() => {
          signal.removeEventListener('abort', stop)
          resolve()
        }, wait_ms)
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
      })
    },
    reset: () => void (next_ms = first_ms),
  }
}
