// Bytes that were written and not acknowledged yet, kept so that they can be sent again. Positions count all
// bytes of a stream from its beginning. The buffer copies what it gets, because writers use their memory
// again. Its blocks go back to a common stock only when no carrier can still read them: a peer that
// acknowledges bytes which have not left yet must not get bytes of another stream instead.

const small_bytes = 4 * 1024
const block_bytes = 64 * 1024
const mostSpare = 16
/** Free blocks of the process. */
const spare: Buffer[] = []

interface Block {
  readonly bytes: Buffer
  /** The position of its first byte. */
  readonly from: number
  used: number
  /** Only one carrier has seen it, and reports when it is done with it. */
  clean: boolean
}

export class ReplayBuffer {
  #blocks: Block[] = []
  /** The position of the first byte. */
  start = 0
  /** Behind the last byte. */
  end = 0
  /** Memory behind the bytes. */
  held_bytes = 0

  /** Copies as much as fits into `room_bytes`, and returns how much. */
  put(chunk: Uint8Array, offset: number, room_bytes: number): number {
    const wanted = Math.min(chunk.length - offset, room_bytes)
    for (let done = 0; done < wanted;) {
      const block = this.#open()
      const part = Math.min(wanted - done, block.bytes.length - block.used)
      block.bytes.set(chunk.subarray(offset + done, offset + done + part), block.used)
      block.used += part
      this.end += part
      done += part
    }
    return wanted
  }

  /** Bytes from this position on, as many as lie together. The memory stays the buffer's. */
  at(position: number): Buffer {
    const block = this.#blocks.find(({ from, used }) => position >= from && position < from + used)
    if (!block) throw new RangeError('The position is not in the buffer.')
    return block.bytes.subarray(position - block.from, block.used)
  }

  /** Drops the bytes before `position`. The carrier is done with those before `flushed`. */
  drop(position: number, flushed: number): void {
    this.start = position
    let first = this.#blocks[0]
    while (first && first.from + first.used <= position) {
      const isLast = this.#blocks.length === 1
      // The block of a stream that moves little stays: it is filled again from where it is.
      if (isLast && first.bytes.length === small_bytes && first.used < small_bytes) return
      this.#blocks.shift()
      this.held_bytes -= first.bytes.length
      const mayServeOthers = first.clean && first.from + first.used <= flushed
      if (mayServeOthers && first.bytes.length === block_bytes && spare.length < mostSpare)
        spare.push(first.bytes)
      first = this.#blocks[0]
    }
  }

  /** A carrier is lost, and may still read what it got. */
  disown(): void {
    for (const block of this.#blocks) block.clean = false
  }

  clear(): void {
    this.#blocks = []
    this.start = this.end
    this.held_bytes = 0
  }

  #open(): Block {
    const last = this.#blocks.at(-1)
    if (last && last.used < last.bytes.length) return last
    const bytes = last
      ? (spare.pop() ?? Buffer.allocUnsafeSlow(block_bytes))
      : Buffer.allocUnsafeSlow(small_bytes)
    const block: Block = { bytes, from: this.end, used: 0, clean: true }
    this.#blocks.push(block)
    this.held_bytes += bytes.length
    return block
  }
}
