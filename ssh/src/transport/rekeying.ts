// When keys are renewed (RFC 4253 section 9), and how often a peer may ask for it.

/**
 * The numbers of packets, which some ciphers use as their nonce, must not repeat under one key (RFC 4344
 * section 3.1).
 */
const mostPackets = 2 ** 31

/**
 * New keys cost us a thousand times as much as a request for them, so the peer may have a number of the
 * cheapest kind, then more for delivered data, and for time. OpenSSH with a RekeyLimit of 512K requests them
 * after every packet of data.
 */
const exchangesAtOnce = 64
const exchangeEvery_ms = 500
const exchangeEvery_bytes = 32 * 1024

/** The use of the keys in force. */
export class KeyUsage {
  /** Bytes in both directions. */
  bytes = 0
  packets = 0

  reset(): void {
    this.bytes = 0
    this.packets = 0
  }

  exceeds(limit_bytes: number): boolean {
    return this.bytes > limit_bytes || this.packets > mostPackets
  }
}

/** Limits the key exchanges that the peer may request. */
export class RekeyBudget {
  /** Exchanges of the cheapest kind. */
  #left = exchangesAtOnce
  /** The peer's last request. */
  #spent_at = performance.now()
  /** Delivered by channels since the last request. */
  #delivered_bytes = 0

  delivered(bytes: number): void {
    this.#delivered_bytes += bytes
  }

  /** False: the peer asks too often. */
  spend(cost: number): boolean {
    const now = performance.now()
    const earned = (now - this.#spent_at) / exchangeEvery_ms + this.#delivered_bytes / exchangeEvery_bytes
    this.#left = Math.min(exchangesAtOnce, this.#left + earned) - cost
    this.#spent_at = now
    this.#delivered_bytes = 0
    return this.#left >= 0
  }
}
