// What a compression method offers to the packet layer, one direction at a time. A payload is packed before
// its packet is sealed and unpacked after it was opened, in the call in which it came, so that packets keep
// their order. No method compresses before somebody is logged in: strangers get no memory for it, and a
// password never shares a context with what an attacker chose. New keys begin with new contexts (RFC 4253
// section 6.2), and contexts belong to one direction of one connection.
import type { Writer } from '../wire.ts'

/**
 * When we compress what we send: `auto` where the link looks slow or the peer asks for it, `always` from the
 * login on. The method zlib@openssh.com leaves no choice: who negotiates it wants it.
 */
export type CompressionMode = 'auto' | 'always'

/** What a compressor has to know about the connection. All methods of a connection share one. */
export interface CompressionContext {
  readonly mode: CompressionMode
  /** After the login. */
  readonly loggedIn: boolean
  /** The peer has asked for compression. */
  peerWants: boolean
  /** Data of this channel of the peer's must not be compressed with other data. */
  isPlain(channel: number): boolean
  /** So many bytes are about to leave; true when the link looks slow. */
  isSlow(bytes: number): boolean
}

/** Packs the messages of one direction, under one set of keys. */
export interface Compressor {
  /** Returns the message to seal instead, which is good until the next call. */
  pack(written: Writer): Writer
  free(): void
}

/** Unpacks the messages of one direction, under one set of keys. */
export interface Decompressor {
  /**
   * Returns the payload as it was written: the same memory, or memory that is good until the next call.
   * Throws when it is not what a compressor wrote, or has more than `most_bytes`.
   */
  unpack(payload: Buffer, most_bytes: number): Buffer
  free(): void
}

export interface Compression {
  readonly name: string
  compressor(context: CompressionContext): Compressor
  decompressor(context: CompressionContext): Decompressor
}
