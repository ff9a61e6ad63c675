// Which packets are worth compressing. Data that is encrypted or compressed already does not get smaller, and
// trying costs most of all then. So a packet that did not shrink is a sample of those behind it: they pass
// untouched, for longer each time, and then another one is tried.

/** Smaller packets pass untouched: headers and padding are most of them, and passwords are typed in them. */
export const small_bytes = 128
/** Smaller packets do not predict the next ones. */
const telling_bytes = 1_024
/** Worth it: the part of a packet that is left. */
const worth = 0.9
const [shortest_bytes, longest_bytes] = [64 * 1024, 1024 * 1024]
/** A context that was idle for this long is freed with the next small packet. */
const idle_ms = 20_000

export class Sample {
  /** Bytes that pass before the next try. */
  #passing_bytes = 0
  /** The value of `#passing_bytes` after the next failure. */
  #next_bytes = shortest_bytes
  #tried_at = 0

  /** Whether to try a packet of this size. */
  isWorth(bytes: number): boolean {
    if (this.#passing_bytes <= 0) return true
    this.#passing_bytes -= bytes
    return false
  }

  tried(before_bytes: number, after_bytes: number): void {
    this.#tried_at = performance.now()
    if (before_bytes < telling_bytes) return
    if (after_bytes <= before_bytes * worth) {
      this.#next_bytes = shortest_bytes
      return
    }
    this.#passing_bytes = this.#next_bytes
    this.#next_bytes = Math.min(longest_bytes, this.#next_bytes * 2)
  }

  /** No packet was tried lately, so the context should be freed. */
  get isIdle(): boolean {
    return performance.now() - this.#tried_at > idle_ms
  }
}
