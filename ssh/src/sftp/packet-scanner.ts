// The packets in one direction of an SFTP connection, found in the bytes as they come. A reader says how
// much of the beginning of a packet it needs; the rest is shown to it piece by piece and never
// collected. It may put another packet in the place of one. Bytes are not copied, but for a beginning
// that is spread over chunks.
import { ProtocolError } from '../errors.ts'
import { largestPacket_bytes } from './protocol.ts'

/** A reader of one direction's packets. */
export interface PacketReader {
  /** How many bytes of the packet, length included, `packet` needs; called again when they are there. */
  needs(head: Buffer, length: number): number
  /** The packet begins with these bytes. The returned packet replaces it. */
  packet(head: Buffer, length: number): Buffer | undefined
  /** The next bytes of the packet. */
  more(bytes: Buffer): void
}

/** The length, the type, and the number of the request or of the version. */
const headBytes = 9
const shortest = headBytes - 4

export class PacketScanner {
  readonly #reader: PacketReader
  /** The beginning of an incomplete packet. */
  #held: Buffer | undefined
  /** The bytes of the packet that have come so far. */
  #filled = 0
  #needed = headBytes
  /** Remaining bytes of the present packet. */
  #rest = 0
  /** Another packet has replaced the present one. */
  #replaced = false

  constructor(reader: PacketReader) {
    this.#reader = reader
  }

  /** Returns what passes, in order. Throws ProtocolError for anything but SFTP. */
  scan(bytes: Buffer): Buffer[] {
    const passed: Buffer[] = []
    let at = 0
    /** The start of the bytes that pass and are not in `passed` yet. */
    let from = 0
    const flush = (): void => {
      if (at > from) passed.push(bytes.subarray(from, at))
    }
    while (at < bytes.length) {
      if (this.#rest > 0) {
        const end = at + Math.min(this.#rest, bytes.length - at)
        this.#rest -= end - at
        if (this.#replaced) {
          flush()
          from = end
        } else this.#reader.more(bytes.subarray(at, end))
        at = end
        continue
      }
      let head: Buffer
      if (!this.#held && bytes.length - at >= this.#needed) head = bytes.subarray(at, at + this.#needed)
      else {
        if (!this.#held) flush()
        at += this.#hold(bytes, at)
        from = at
        if (this.#filled < this.#needed) break
        head = this.#held as unknown as Buffer
      }
      const length = lengthOf(head)
      const needed = Math.min(this.#reader.needs(head, length), length + 4)
      if (needed > head.length) {
        this.#needed = needed
        continue
      }
      const other = this.#reader.packet(head, length)
      this.#replaced = other !== undefined
      if (this.#held) passed.push(other ?? head)
      else {
        if (other) {
          flush()
          passed.push(other)
        }
        at += head.length
        if (other) from = at
      }
      this.#rest = length + 4 - head.length
      this.#held = undefined
      this.#filled = 0
      this.#needed = headBytes
    }
    if (at > from) passed.push(bytes.subarray(from, at))
    return passed
  }

  /** Returns how many bytes were held. */
  #hold(bytes: Buffer, at: number): number {
    if (this.#held?.length !== this.#needed) {
      const larger = Buffer.allocUnsafe(this.#needed)
      this.#held?.copy(larger, 0, 0, this.#filled)
      this.#held = larger
    }
    const taken = bytes.copy(this.#held, this.#filled, at, at + this.#needed - this.#filled)
    this.#filled += taken
    return taken
  }
}

function lengthOf(head: Buffer): number {
  const length = head.readUInt32BE(0)
  if (length < shortest || length > largestPacket_bytes)
    throw new ProtocolError('An SFTP packet has an impossible length.')
  return length
}
