// Messages of a service before somebody has taken over: authentication takes them one at a time. What waits
// is counted as the memory it takes; once it is full, the transport stops reading.
import { compact, heldBy } from '../memory.ts'

const most_bytes = 64 * 1024

/** Waiting messages, and the waiting reader. */
export class Inbox {
  readonly #messages: Buffer[] = []
  #held_bytes = 0
  #receiver: PromiseWithResolvers<Buffer> | undefined
  #failure: Error | undefined

  push(payload: Buffer): void {
    if (this.#receiver) {
      const receiver = this.#receiver
      this.#receiver = undefined
      return receiver.resolve(payload)
    }
    const kept = compact(payload)
    this.#messages.push(kept)
    this.#held_bytes += heldBy(kept)
  }

  shift(): Buffer | undefined {
    const message = this.#messages.shift()
    if (message) this.#held_bytes -= heldBy(message)
    return message
  }

  /** For when no message waits. */
  next(): Promise<Buffer> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#receiver ??= Promise.withResolvers<Buffer>()
    return this.#receiver.promise
  }

  end(error: Error): void {
    this.#failure = error
    this.#receiver?.reject(error)
    this.#receiver = undefined
  }

  get isFull(): boolean {
    return this.#held_bytes >= most_bytes
  }
}
