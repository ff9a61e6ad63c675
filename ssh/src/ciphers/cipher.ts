// The interface of ciphers for the packet layer, one direction at a time. A packet before sealing is
//   uint32 packet_length, byte padding_length, payload, padding        (RFC 4253 section 6)
// and `open` returns what follows packet_length. All primitives are OpenSSL's, by node:crypto or directly
// (openssl.ts).

/** Returns uninitialised memory. */
export type Room = (bytes: number) => Buffer

export interface Sealer {
  /** The padded bytes are a multiple of this. */
  readonly block: number
  /**
   * Whether packet_length is among the padded bytes; not where it is sent in clear or under a key of its own.
   */
  readonly padsLength: boolean
  /**
   * Returns the bytes for the wire, in order, in memory from `room` or in its own; except before there are
   * keys, none of them are the packet's own memory, which is used again. */
  seal(packet: Buffer, sequence: number, room: Room): Buffer[]
  /** Frees the memory of the keys outside of V8's heap. Nothing is sealed after it. */
  free(): void
}

export interface Opener {
  /** Bytes of the tag or MAC behind each packet. */
  readonly tag: number
  readonly block: number
  readonly padsLength: boolean
  /**
   * packet_length from the first four bytes, once for each packet. It is untrusted until the packet was
   * opened.
   */
  length(head: Buffer, sequence: number): number
  /**
   * Takes packet_length, the rest and the tag as they came, and may write over them; throws for a wrong tag.
   */
  open(packet: Buffer, sequence: number): Buffer
  /** Frees the memory of the keys outside of V8's heap. Nothing is opened after it. */
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
  /** Over the encrypted packet; else over the plain one. */
  readonly encryptThenMac: boolean
}

/** For ciphers of node:crypto, whose memory V8 collects. */
export const nothingToFree = (): void => undefined

export const macFailure = 'A packet was changed on its way.'

/**
 * For what lives as long as the connection: any other small buffer is a part of a larger one that it shares
 * with others, and holds all of it.
 */
export function ownCopy(bytes: Buffer): Buffer {
  const copy = Buffer.alloc(bytes.length)
  bytes.copy(copy)
  return copy
}
