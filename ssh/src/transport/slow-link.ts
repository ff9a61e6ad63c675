// Whether the link to the peer is slow, as far as one connection can tell: a message that costs the peer
// nothing was answered late, or data that we send has to wait while less leaves than the least of a good
// link. Compression is worth its processor time only then. Our own load must not look like a slow link, or it
// would cause more of it.

/** Mobile and satellite links answer later. */
const slowRoundTrip_ms = 150
/** 16 Mbit/s. */
const slow_bytesPerMs = 2_000
/** The rate is measured over this time. */
const least_ms = 200

export class SlowLink {
  readonly #unsent: () => number
  #isSlow = false
  /** Runs until an answer is late. */
  #timer: NodeJS.Timeout | undefined
  /** Since when bytes have always waited, and what was sent since. */
  #since: number | undefined
  #sent_bytes = 0
  /** Data outside of this connection has waited since the last message. */
  #hasWaited = false

  /** `unsent`: how many bytes wait to leave. */
  constructor(unsent: () => number) {
    this.#unsent = unsent
  }

  /** A message that the peer answers without work is sent. */
  asked(): void {
    clearTimeout(this.#timer)
    const late = (): void => {
      if (this.#timer !== undefined) this.#isSlow = true
    }
    // Arrived bytes that a busy process has not read yet are read before that.
    this.#timer = setTimeout(() => setImmediate(late), slowRoundTrip_ms).unref()
  }

  /** The answer has come, or will not. */
  answered(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Data of a channel waits: for its window, or until less is unsent. */
  waits(): void {
    this.#hasWaited = true
  }

  /** Called before these bytes leave. */
  isSlow(bytes: number): boolean {
    if (this.#isSlow) return true
    const unsent_bytes = this.#unsent()
    const now = performance.now()
    const waited = unsent_bytes > 0 || this.#hasWaited
    this.#hasWaited = false
    if (!waited || this.#since === undefined) {
      this.#since = now
      this.#sent_bytes = 0
    }
    const took_ms = now - this.#since
    if (took_ms > least_ms && this.#sent_bytes - unsent_bytes < took_ms * slow_bytesPerMs) this.#isSlow = true
    this.#sent_bytes += bytes
    return this.#isSlow
  }
}
