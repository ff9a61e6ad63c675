// Frames of yamux (hashicorp's, version 0). A frame is twelve bytes, big-endian, and for the type data a
// payload:
//
//   version (1) = 0 · type (1) · flags (2) · stream id (4) · length (4) · payload
//
// `length` is the payload's size (data), the credit that is added (window update), an opaque number (ping) or
// a code (go away). The reader takes chunks that are cut anywhere. It copies no payload and waits for none: a
// payload is handed on in the pieces in which it came, so that a frame as large as a window needs no buffer
// here.

export const headerBytes = 12

export const Type = { data: 0, windowUpdate: 1, ping: 2, goAway: 3 } as const
export const Flag = { syn: 1, ack: 2, fin: 4, rst: 8 } as const
export const GoAway = { normal: 0, protocolError: 1, internalError: 2 } as const

export const initialWindow_bytes = 256 * 1024

/** The largest payload of our frames: every frame costs something, but streams have to take turns. */
export const mostPayload_bytes = 64 * 1024

export function writeHeader(
  into: Buffer,
  at: number,
  type: number,
  flags: number,
  id: number,
  length: number,
): void {
  into[at] = 0
  into[at + 1] = type
  into.writeUInt16BE(flags, at + 2)
  into.writeUInt32BE(id, at + 4)
  into.writeUInt32BE(length, at + 8)
}

export function frame(type: number, flags: number, id: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes)
  writeHeader(bytes, 0, type, flags, id, length)
  return bytes
}

export interface FrameSink {
  /** False when nothing more is to be read. The payload of a data frame follows in `payload`. */
  header(version: number, type: number, flags: number, id: number, length: number): boolean
  /** `left` bytes of the same payload are still to come. */
  payload(piece: Buffer, left: number): boolean
}

export class FrameReader {
  /** The beginning of an incomplete header. Made when it is first needed: most chunks hold whole ones. */
  #partial: Buffer | undefined
  #have = 0
  #payloadLeft = 0

  /** Whether the input so far ends within a frame. */
  get within(): boolean {
    return this.#have > 0 || this.#payloadLeft > 0
  }

  take(chunk: Buffer, sink: FrameSink): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#payloadLeft > 0) {
        const piece =
          at === 0 && chunk.length <= this.#payloadLeft ? chunk : chunk.subarray(at, at + this.#payloadLeft)
        at += piece.length
        this.#payloadLeft -= piece.length
        if (!sink.payload(piece, this.#payloadLeft)) return
        continue
      }
      if (this.#have === 0 && chunk.length - at >= headerBytes) {
        if (!this.#header(chunk, at, sink)) return
        at += headerBytes
        continue
      }
      this.#partial ??= Buffer.allocUnsafeSlow(headerBytes)
      const copied = chunk.copy(this.#partial, this.#have, at, at + headerBytes - this.#have)
      this.#have += copied
      at += copied
      if (this.#have < headerBytes) return
      this.#have = 0
      if (!this.#header(this.#partial, 0, sink)) return
    }
  }

  #header(bytes: Buffer, at: number, sink: FrameSink): boolean {
    const type = bytes[at + 1]!
    const length = bytes.readUInt32BE(at + 8)
    if (type === Type.data) this.#payloadLeft = length
    return sink.header(bytes[at]!, type, bytes.readUInt16BE(at + 2), bytes.readUInt32BE(at + 4), length)
  }
}
