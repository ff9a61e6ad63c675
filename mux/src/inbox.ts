// What has come for a reader who is busy. The bytes are few enough already (the window sees to that); this sees to it that
// keeping them does not cost much more than their number: a small piece is copied into a block with its neighbours, and a
// piece of a much larger chunk is copied out of it, because otherwise one byte could keep alive the 64 KiB it came in.

const small_bytes = 4096

export class Inbox {
  #pieces: Buffer[] = []
  #block: Buffer | undefined
  #blockUsed = 0
  /** Bytes in it. */
  size = 0

  put(piece: Buffer): void {
    this.size += piece.length
    if (piece.length < small_bytes) return this.#gather(piece)
    this.#closeBlock()
    this.#pieces.push(piece.length * 4 < piece.buffer.byteLength ? copyOf(piece) : piece)
  }

  take(): Buffer | undefined {
    if (this.#pieces.length === 0) this.#closeBlock()
    const piece = this.#pieces.shift()
    if (piece) this.size -= piece.length
    return piece
  }

  clear(): void {
    this.#pieces = []
    this.#block = undefined
    this.#blockUsed = 0
    this.size = 0
  }

  #gather(piece: Buffer): void {
    if (this.#block && this.#blockUsed + piece.length > this.#block.length) this.#closeBlock()
    this.#block ??= Buffer.allocUnsafeSlow(small_bytes)
    this.#blockUsed += piece.copy(this.#block, this.#blockUsed)
  }

  #closeBlock(): void {
    if (!this.#block) return
    this.#pieces.push(this.#block.subarray(0, this.#blockUsed))
    this.#block = undefined
    this.#blockUsed = 0
  }
}

/** Not from Node's pool: that would keep alive the pool. */
function copyOf(piece: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(piece.length)
  piece.copy(copy)
  return copy
}
