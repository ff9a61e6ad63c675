// Notices that a peer has fallen silent, without asking it: for the end of a session that is pinged instead
// of pinging. It allows some silence, and less after something was sent that wants an answer. There is one
// timer, and none before the first call.
import { ConnectionLost } from './errors.ts'

export class Silence {
  readonly #lost: (error: Error) => void
  /** Infinity: any silence is allowed. */
  #allowed_ms = Infinity
  #heard_at = performance.now()
  /** When an answer is due; Infinity: none is. */
  #due_at = Infinity
  #timer: NodeJS.Timeout | undefined

  constructor(lost: (error: Error) => void) {
    this.#lost = lost
  }

  heard(): void {
    // Until the first call the check is off, and reads cost nothing.
    if (!this.#timer) return
    this.#heard_at = performance.now()
    this.#due_at = Infinity
  }

  /** Allows the peer this silence, from now on. */
  allow(silence_ms: number): void {
    // Silence that was allowed until now does not count against the peer.
    if (!this.#timer || silence_ms < this.#allowed_ms) this.#heard_at = performance.now()
    this.#allowed_ms = silence_ms
    this.#plan()
  }

  /** Any answer within this time counts. */
  expect(within_ms: number): void {
    this.#due_at = Math.min(this.#due_at, performance.now() + within_ms)
    this.#plan()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  get #ends_at(): number {
    return Math.min(this.#heard_at + this.#allowed_ms, this.#due_at)
  }

  #plan(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#check(), Math.max(1, Math.ceil(this.#ends_at - performance.now())))
    this.#timer.unref()
  }

  #check(): void {
    if (performance.now() >= this.#ends_at)
      this.#lost(new ConnectionLost('The peer has fallen silent.', { silent: true }))
    else this.#plan()
  }
}
