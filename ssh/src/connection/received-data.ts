// Data that has come for a channel whose reader is busy. The window bounds how many bytes they are; here
// small pieces are joined, or each would cost far more memory than its bytes.
import { compact, heldBy, object_bytes } from '../memory.ts'
import type { Chunk } from './types.ts'

const joined_bytes = 8_192

export interface WaitingChunk extends Chunk {
  bytes: Buffer
  /** Memory of its own, for joined small pieces. */
  joined: Buffer | undefined
  held_bytes: number
}

export class ReceivedData {
  readonly #chunks: WaitingChunk[] = []

  /** Returns how much more memory is held. Larger pieces are copied only out of far more memory. */
  push(bytes: Buffer, stream: number): number {
    const last = this.#chunks.at(-1)
    const length = (last?.bytes.length ?? 0) + bytes.length
    if (last?.joined && last.stream === stream && length <= joined_bytes) {
      const before = last.held_bytes
      if (length > last.joined.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(joined_bytes, length * 2))
        last.bytes.copy(larger)
        last.joined = larger
        last.held_bytes = object_bytes + larger.length
      }
      bytes.copy(last.joined, last.bytes.length)
      last.bytes = last.joined.subarray(0, length)
      return last.held_bytes - before
    }
    const kept = compact(bytes)
    const held_bytes = heldBy(kept)
    this.#chunks.push({ bytes: kept, stream, joined: kept === bytes ? undefined : kept, held_bytes })
    return held_bytes
  }

  shift(): WaitingChunk | undefined {
    return this.#chunks.shift()
  }

  /** Returns the memory that was held. */
  clear(): number {
    return this.#chunks.splice(0).reduce((sum, { held_bytes }) => sum + held_bytes, 0)
  }
}
