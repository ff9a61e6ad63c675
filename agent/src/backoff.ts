// Delays between attempts to connect: exponential, with jitter. When the server itself names a delay
// (Retry-After), the agent waits exactly that long, and the next delay does not grow.

export interface Backoff {
  /** The next wait; each call counts as a failure. */
  next_ms(asked_s?: number): number
  /** Rejects only when the signal stops it. */
  wait(signal: AbortSignal, asked_s?: number): Promise<void>
  /** After a success, the next failure is a first one again. */
  reset(): void
}

const first_ms = 1_000
const most_ms = 60_000
const mostAsked_s = 3_600

export function backoff(random = Math.random): Backoff {
  let usual_ms = first_ms
  const next_ms = (asked_s = 0): number => {
    if (asked_s > 0) return Math.min(asked_s, mostAsked_s) * 1000 + random() * first_ms
    const wait_ms = usual_ms * (0.5 + random() / 2)
    usual_ms = Math.min(usual_ms * 2, most_ms)
    return wait_ms
  }
  return {
    next_ms,
    async wait(signal, asked_s) {
      const wait_ms = next_ms(asked_s)
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
    reset: () => void (usual_ms = first_ms),
  }
}
