// The whole of an answer, put together in one buffer as its pieces come. Kept one by one, a million pieces of one
// byte would hold far more than a million bytes. The buffer counts as memory of the process until it is disposed.
import { processMemory } from '@hawser/ssh/memory'

const first_bytes = 4 * 1024

export class CollectedBytes implements Disposable {
  readonly #most_bytes: number
  readonly #failure: (why: 'too large' | 'no memory') => Error
  #bytes = Buffer.alloc(0)
  #length = 0
  #isEvicted = false
  readonly #account = processMemory.open({
    limit_bytes: Infinity,
    pause: () => undefined,
    resume: () => undefined,
    evict: () => void (this.#isEvicted = true),
  })

  /** `failure` makes the error for an answer that does not fit. */
  constructor(most_bytes: number, failure: (why: 'too large' | 'no memory') => Error) {
    this.#most_bytes = most_bytes
    this.#failure = failure
  }

  add(bytes: Buffer): void {
    const length = this.#length + bytes.length
    if (length > this.#most_bytes) throw this.#failure('too large')
    if (length > this.#bytes.length) {
      const room = Math.min(this.#most_bytes, Math.max(first_bytes, length, this.#bytes.length * 2))
      this.#account.hold(room - this.#bytes.length)
      this.requireMemory()
      const larger = Buffer.allocUnsafeSlow(room)
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#length)
    this.#length = length
  }

  /** Throws the failure when others need the memory more. */
  requireMemory(): void {
    if (this.#isEvicted || this.#account.crowded) throw this.#failure('no memory')
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  [Symbol.dispose](): void {
    this.#account.close()
  }
}
