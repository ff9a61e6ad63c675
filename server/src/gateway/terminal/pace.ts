// The pace at which a terminal is read while nobody is at it. Some megabytes pass as fast as they come, which
// is enough for an upgrade or a build. After that the device is read slowly: its program waits, as on a
// terminal that was stopped with Ctrl-S, and neither the recording nor the device's link fills up. The
// allowance grows again with time, so that a program which writes little is never slowed down.

const allowance_bytes = 8 * 1024 * 1024
const refill_bytesPerSecond = 2 * 1024
/** Somebody may have come without a call of `wake`. */
const look_ms = 1_000

interface UnattendedPace {
  /** Counts output. Resolves when more may come; undefined: at once. */
  spend(bytes: number): Promise<void> | undefined
  /** Resets the allowance, when somebody has come or the terminal is over. */
  wake(): void
}

/** `isAttended`: somebody sees the output, or nobody ever will. */
export function unattendedPace(isAttended: () => boolean): UnattendedPace {
  let left_bytes = allowance_bytes
  let counted_at = performance.now()
  let woken = Promise.withResolvers<void>()

  function refill(): void {
    const now = performance.now()
    const gained = ((now - counted_at) / 1_000) * refill_bytesPerSecond
    left_bytes = Math.min(allowance_bytes, left_bytes + gained)
    counted_at = now
  }

  async function wait(): Promise<void> {
    for (refill(); left_bytes < 0 && !isAttended(); refill()) {
      const timer = setTimeout(woken.resolve, look_ms)
      await woken.promise
      clearTimeout(timer)
      woken = Promise.withResolvers()
    }
  }

  return {
    spend(bytes) {
      refill()
      left_bytes -= bytes
      return left_bytes < 0 && !isAttended() ? wait() : undefined
    },
    wake() {
      left_bytes = allowance_bytes
      woken.resolve()
    },
  }
}
