// The interface of compression for the packet layer, one direction at a time. A payload is packed before
// its packet is sealed and unpacked after it was opened, in the call in which it came, so that packets keep
// their order. No method compresses before somebody is logged in: strangers get no memory for it, and a
// password never shares a context with what an attacker chose. New keys begin with new contexts (RFC 4253
// section 6.2), and contexts belong to one direction of one connection.
import type { Writer } from '../wire.ts'

/**
 * When to compress: `auto` where the link looks slow or the peer wants it, `always` after the login. A peer
 * that negotiates zlib@openssh.com wants it.
 */
export type CompressionMode = 'auto' | 'always'

export interface CompressionContext {
  readonly mode: CompressionMode
  /** After the login. */
  readonly loggedIn: boolean
  /** The peer has asked for compression. */
  peerWants: boolean
  /** Data of this channel of the peer must not be compressed with other data. */
  isPlain(channel: number): boolean
  /** Called before bytes leave; true when the link looks slow. */
  isSlow(bytes: number): boolean
}

/** For the messages of one direction, under one set of keys. */
export interface Compressor {
  /** Returns the message to seal instead, valid until the next call. */
  pack(written: Writer): Writer
  free(): void
}

/** For the messages of one direction, under one set of keys. */
export interface Decompressor {
  /**
   * Returns the same memory, or memory that is valid until the next call. Throws for malformed input, and for
   * more than `most_bytes`.
   */
  unpack(payload: Buffer, most_bytes: number): Buffer
  free(): void
}

export interface Compression {
  readonly name: string
  compressor(context: CompressionContext): Compressor
  decompressor(context: CompressionContext): Decompressor
}
