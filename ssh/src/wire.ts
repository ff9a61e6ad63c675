// The types of RFC 4251 section 5, read and written. A Reader never looks past the end of what it was given
// and never copies: what it returns are views. A Writer grows as needed; one made by `message` keeps room in
// front for the packet's header, so that a message is built, padded and encrypted where it stands.
//
//   byte, boolean  one byte
//   uint32, uint64 big-endian
//   string         uint32 length, bytes
//   name-list      string of names joined by commas
//   mpint          string of a two's complement big-endian number without needless leading bytes; ours are never negative
import { ProtocolError } from './errors.ts'

/** Room for packet_length and padding_length before a message (RFC 4253 section 6). */
export const headerBytes = 5
/** Room for the padding, which is shorter than two blocks and a bit. */
const trailerBytes = 40

export class Reader {
  readonly bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes
    this.#at = at
  }

  #skip(count: number): number {
    // The count is untrusted: it is compared with what is left, never added up first.
    if (count > this.bytes.length - this.#at) throw new ProtocolError('A message is cut short.')
    const at = this.#at
    this.#at += count
    return at
  }

  byte(): number {
    return this.bytes[this.#skip(1)]!
  }

  boolean(): boolean {
    return this.byte() !== 0
  }

  uint32(): number {
    return this.bytes.readUInt32BE(this.#skip(4))
  }

  uint64(): bigint {
    return this.bytes.readBigUInt64BE(this.#skip(8))
  }

  raw(count: number): Buffer {
    const at = this.#skip(count)
    return this.bytes.subarray(at, at + count)
  }

  string(): Buffer {
    return this.raw(this.uint32())
  }

  /** Bytes that are not UTF-8 become replacement characters. */
  text(most = 65_536): string {
    const bytes = this.string()
    if (bytes.length > most) throw new ProtocolError('A text in a message is too long.')
    return bytes.toString('utf8')
  }

  names(): string[] {
    const text = this.string().toString('latin1')
    return text === '' ? [] : text.split(',')
  }

  /** A number that is not negative, without leading zeros. */
  mpint(): Buffer {
    const bytes = this.string()
    if (bytes.length > 0 && bytes[0]! >= 0x80) throw new ProtocolError('A number in a message is negative.')
    let zeros = 0
    while (zeros < bytes.length && bytes[zeros] === 0) zeros += 1
    return bytes.subarray(zeros)
  }

  rest(): Buffer {
    return this.raw(this.bytes.length - this.#at)
  }

  get done(): boolean {
    return this.#at === this.bytes.length
  }

  end(): void {
    if (!this.done) throw new ProtocolError('There are bytes after the end of a message.')
  }
}

export class Writer {
  #bytes: Buffer
  #at = 0

  constructor(room: number | Buffer = 128) {
    this.#bytes = typeof room === 'number' ? Buffer.allocUnsafe(room) : room
  }

  #room(count: number): number {
    const at = this.#at
    this.#at += count
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#at, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, at)
      this.#bytes = larger
    }
    return at
  }

  byte(value: number): this {
    const at = this.#room(1)
    this.#bytes[at] = value
    return this
  }

  boolean(value: boolean): this {
    return this.byte(value ? 1 : 0)
  }

  uint32(value: number): this {
    const at = this.#room(4)
    this.#bytes.writeUInt32BE(value, at)
    return this
  }

  uint64(value: bigint): this {
    const at = this.#room(8)
    this.#bytes.writeBigUInt64BE(value, at)
    return this
  }

  raw(bytes: Uint8Array): this {
    const at = this.#room(bytes.length)
    this.#bytes.set(bytes, at)
    return this
  }

  string(value: string | Uint8Array): this {
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
    return this.uint32(bytes.length).raw(bytes)
  }

  names(names: readonly string[]): this {
    return this.string(names.join(','))
  }

  mpint(magnitude: Buffer): this {
    return this.string(mpintBytes(magnitude))
  }

  /** Room to be filled in later. */
  gap(count: number): Buffer {
    const at = this.#room(count)
    return this.#bytes.subarray(at, at + count)
  }

  get length(): number {
    return this.#at
  }

  get capacity(): number {
    return this.#bytes.length
  }

  /** A view that later writing may leave behind. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }
}

/** The bytes of an mpint without the length before them. */
export function mpintBytes(magnitude: Buffer): Buffer {
  let zeros = 0
  while (zeros < magnitude.length && magnitude[zeros] === 0) zeros += 1
  const short = magnitude.subarray(zeros)
  return short.length > 0 && short[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), short]) : short
}

/** A message that will become a packet: only `send` of a transport may take it, and only once. */
export function message(type: number, room = 96): Writer {
  const writer = new Writer(headerBytes + 1 + room + trailerBytes)
  writer.gap(headerBytes)
  return writer.byte(type)
}

/** The message without the room for its header. */
export function payloadOf(written: Writer): Buffer {
  return written.bytes().subarray(headerBytes)
}
