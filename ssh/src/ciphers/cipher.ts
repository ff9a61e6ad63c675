// What every cipher offers to the packet layer, one direction at a time. A packet before sealing is
//   uint32 packet_length, byte padding_length, payload, padding        (RFC 4253 section 6)
// and `open` returns what follows packet_length. All primitives are OpenSSL's, by node:crypto or directly
// (openssl.ts).

/** Gives memory with anything in it. */
export type Room = (bytes: number) => Buffer

export interface Sealer {
  /** What the padded bytes must be a multiple of. */
  readonly block: number
  /**
   * Whether packet_length is among the padded bytes; not so where it is sent in clear or under a key of its
   * own.
   */
  readonly padsLength: boolean
  /**
   * Returns the bytes for the wire, in order, in memory from `room` or in its own; except before there are
   * keys, none of them are the packet's own memory, which is used again.
   */
  seal(packet: Buffer, sequence: number, room: Room): Buffer[]
  /** Gives back what the keys take outside of V8's heap. Nothing is sealed after it. */
  free(): void
}

export interface Opener {
  /** Bytes of the tag or MAC behind each packet. */
  readonly tag: number
  readonly block: number
  readonly padsLength: boolean
  /**
   * packet_length from the first four bytes, once for each packet. It is a stranger's number until the packet
   * was opened.
   */
  length(head: Buffer, sequence: number): number
  /**
   * Takes packet_length, the rest and the tag as they came, and may write over them; throws when the tag is
   * wrong.
   */
  open(packet: Buffer, sequence: number): Buffer
  /** Gives back what the keys take outside of V8's heap. Nothing is opened after it. */
  free(): void
}

export interface Keys {
  readonly iv: Buffer
  readonly key: Buffer
  readonly mac: Buffer
}

export interface Cipher {
  readonly name: string
  readonly key_bytes: number
  readonly iv_bytes: number
  /** False where the tag is part of the cipher and no MAC is negotiated. */
  readonly needsMac: boolean
  sealer(keys: Keys, mac: Mac | undefined): Sealer
  opener(keys: Keys, mac: Mac | undefined): Opener
}

export interface Mac {
  readonly name: string
  readonly hash: string
  readonly bytes: number
  /** Over the packet as it is on the wire; otherwise over what was encrypted. */
  readonly encryptThenMac: boolean
}

/** For ciphers of node:crypto, whose memory V8 collects. */
export const nothingToFree = (): void => undefined

export const macFailure = 'A packet was changed on its way.'

/**
 * For what lives as long as the connection: a small buffer made in any other way is a part of a larger one
 * that is shared with whatever was made at the same time, and keeps all of it.
 */
export function ownCopy(bytes: Buffer): Buffer {
  const copy = Buffer.alloc(bytes.length)
  bytes.copy(copy)
  return copy
}
