// Frames of a WebSocket (RFC 6455 section 5.2), without extensions:
//   byte FIN 0x80, opcode · byte MASK 0x80, length (126: two more bytes have it, 127: eight) · mask, 4 bytes, from clients

export const Opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export const mostControl_bytes = 125

/** For a whole message. The mask of a client is zero. */
export function writeHeader(opcode: number, length: number, isMasked: boolean): Buffer {
  const extra = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const header = Buffer.alloc(2 + extra + (isMasked ? 4 : 0))
  header[0] = 0x80 | opcode
  header[1] = (isMasked ? 0x80 : 0) | (extra === 0 ? length : extra === 2 ? 126 : 127)
  if (extra === 2) header.writeUInt16BE(length, 2)
  if (extra === 8) header.writeUInt32BE(length, 6)
  return header
}

export class HeaderReader {
  readonly #bytes = Buffer.alloc(14)
  #have = 0
  #need = 2

  /** Takes bytes of a header and returns where it stopped; `isWhole` tells whether the header is complete. */
  take(chunk: Buffer, from: number): number {
    let at = from
    while (this.#have < this.#need && at < chunk.length) {
      this.#bytes[this.#have++] = chunk[at++]!
      if (this.#have === 2) {
        const short = this.#bytes[1]! & 0x7f
        this.#need = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + (this.isMasked ? 4 : 0)
      }
    }
    return at
  }

  reset(): void {
    this.#have = 0
    this.#need = 2
  }

  get isWhole(): boolean {
    return this.#have === this.#need
  }

  get isFinal(): boolean {
    return (this.#bytes[0]! & 0x80) !== 0
  }

  /** Bits that only an extension may set. */
  get reserved(): number {
    return this.#bytes[0]! & 0x70
  }

  get opcode(): number {
    return this.#bytes[0]! & 0xf
  }

  get isMasked(): boolean {
    return (this.#bytes[1]! & 0x80) !== 0
  }

  /** 0: no mask. */
  get mask(): number {
    return this.isMasked ? this.#bytes.readUInt32LE(this.#need - 4) : 0
  }

  get length(): number {
    const short = this.#bytes[1]! & 0x7f
    if (short === 126) return this.#bytes.readUInt16BE(2)
    return short === 127 ? Number(this.#bytes.readBigUInt64BE(2)) : short
  }
}

/** In place, four bytes at a time; returns where in the mask the next piece begins. */
export function unmask(chunk: Buffer, from: number, to: number, mask: number, turn: number): number {
  let at = from
  let next = turn
  for (const edge = Math.min(to, from + (-(chunk.byteOffset + from) & 3)); at < edge; next += 1)
    chunk[at++]! ^= (mask >>> (8 * (next & 3))) & 0xff
  const count = (to - at) >> 2
  if (count > 0) {
    const words = new Int32Array(chunk.buffer, chunk.byteOffset + at, count)
    const shift = 8 * (next & 3)
    const turned = shift === 0 ? mask | 0 : (mask >>> shift) | (mask << (32 - shift))
    for (let word = 0; word < count; word += 1) words[word]! ^= turned
    at += count * 4
  }
  for (; at < to; next += 1) chunk[at++]! ^= (mask >>> (8 * (next & 3))) & 0xff
  return next & 3
}
