// Bytes that have come for a reader who is busy. The window bounds how many they are; this file bounds what
// they cost. It copies a small piece into a block with its neighbours, and a piece of a much larger chunk out
// of that chunk, because one byte could otherwise keep alive the 64 KiB it came in. `held` is the real cost:
// the memory behind the pieces.

import type { Readable } from 'node:stream'

const small_bytes = 4096

/** A queue of bytes whose memory is in proportion to their number. */
export class ReceiveBuffer {
  #pieces: Buffer[] = []
  /** Joins small pieces, and how much of it is filled. */
  #block: Buffer | undefined
  #blockUsed = 0
  /** Bytes in it. */
  size = 0
  /** Memory behind the bytes. */
  held = 0

  put(piece: Buffer): void {
    this.size += piece.length
    if (piece.length < small_bytes) return this.#gather(piece)
    this.#closeBlock()
    this.#keep(compact(piece))
  }

  take(): Buffer | undefined {
    if (this.#pieces.length === 0) this.#closeBlock()
    const piece = this.#pieces.shift()
    if (!piece) return undefined
    this.size -= piece.length
    this.held -= piece.buffer.byteLength
    return piece
  }

  clear(): void {
    this.#pieces = []
    this.#block = undefined
    this.#blockUsed = 0
    this.size = 0
    this.held = 0
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece)
    this.held += piece.buffer.byteLength
  }

  #gather(piece: Buffer): void {
    if (this.#block && this.#blockUsed + piece.length > this.#block.length) this.#closeBlock()
    if (!this.#block) {
      this.#block = Buffer.allocUnsafeSlow(small_bytes)
      this.held += small_bytes
    }
    this.#blockUsed += piece.copy(this.#block, this.#blockUsed)
  }

  #closeBlock(): void {
    if (!this.#block) return
    this.#pieces.push(this.#block.subarray(0, this.#blockUsed))
    this.#block = undefined
    this.#blockUsed = 0
  }
}

/** A copy where the piece would hold more than twice its size. */
export function compact(piece: Buffer): Buffer {
  if (piece.length * 2 >= piece.buffer.byteLength) return piece
  // Not from Node's pool: that would keep alive the pool.
  const copy = Buffer.allocUnsafeSlow(piece.length)
  piece.copy(copy)
  return copy
}

/**
 * Whether bytes may go to the listeners of 'data' directly. `push` would also schedule a callback that asks
 * the stream for more, which costs more than passing the bytes on.
 */
export function mayEmit(stream: Readable): boolean {
  return stream.readableFlowing === true && stream.readableLength === 0 && stream.listenerCount('data') > 0
}
