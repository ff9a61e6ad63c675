// When keys are renewed (RFC 4253 section 9), and how often a peer may ask for it.

/**
 * Under one key: the numbers of packets, which some ciphers take for their nonce, must not come round (RFC
 * 4344 section 3.1).
 */
const mostPackets = 2 ** 31

/**
 * New keys cost us a thousand times what they cost to ask for: so many of the cheapest kind for nothing, then
 * for data that was delivered, and now and then for the time that passed. OpenSSH with a RekeyLimit of 512K
 * wants them after every packet of data.
 */
const exchangesAtOnce = 64
const exchangeEvery_ms = 500
const exchangeEvery_bytes = 32 * 1024

/** What the keys in force have been used for. */
export class KeyUsage {
  /** Bytes in both directions. */
  bytes = 0
  /** Packets that we have sent. */
  packets = 0

  reset(): void {
    this.bytes = 0
    this.packets = 0
  }

  exceeds(limit_bytes: number): boolean {
    return this.bytes > limit_bytes || this.packets > mostPackets
  }
}

/** How many key exchanges the peer may ask for. */
export class RekeyBudget {
  /** Exchanges of the cheapest kind. */
  #left = exchangesAtOnce
  /** When the peer last asked for one. */
  #spent_at = performance.now()
  /** What channels have delivered since then. */
  #delivered_bytes = 0

  delivered(bytes: number): void {
    this.#delivered_bytes += bytes
  }

  /** The peer asks for an exchange of this cost; false when it asks too often. */
  spend(cost: number): boolean {
    const now = performance.now()
    const earned = (now - this.#spent_at) / exchangeEvery_ms + this.#delivered_bytes / exchangeEvery_bytes
    this.#left = Math.min(exchangesAtOnce, this.#left + earned) - cost
    this.#spent_at = now
    this.#delivered_bytes = 0
    return this.#left >= 0
  }
}
