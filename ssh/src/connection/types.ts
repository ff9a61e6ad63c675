// What channels and connections are to those who use them (RFC 4254 sections 4 and 5).
import type { ConnectionEnded } from '../errors.ts'
import type { MemoryPool } from '../memory.ts'
import type { Queue } from '../queue.ts'
import type { Transport } from '../transport/transport.ts'

/** Bytes of one stream: 0 is the standard one, 1 is stderr (RFC 4254 section 5.2). */
export interface Chunk {
  readonly bytes: Buffer
  readonly stream: number
}

/** What the peer asks of a channel (RFC 4254 section 5.4). */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** What follows the type; `readRequest` understands it. */
  readonly payload: Buffer
  /** To be called once for every request; it does nothing where no reply is wanted. */
  reply(success: boolean): void
}

/** A channel of a connection: two streams of bytes with flow control, and requests (RFC 4254 section 5). */
export interface Channel extends AsyncIterable<Chunk>, AsyncDisposable {
  readonly type: string
  /**
   * What the peer asks of this channel; ends when the channel is closed. Requests beyond the queue are
   * refused.
   */
  readonly requests: Queue<ChannelRequest>
  /** The next bytes; undefined after the peer's EOF. Throws if the connection broke off before it. */
  read(): Promise<Chunk | undefined>
  /**
   * The same for whoever wants all of it: calls `take` with one chunk after the other, and with the next one
   * only when what `take` returned is done. The bytes are good until then. Resolves after the peer's EOF.
   */
  readAll(take: (chunk: Chunk) => Promise<void> | void): Promise<void>
  /** Resolves when all of it was handed to the socket. */
  write(bytes: Uint8Array, stream?: number): Promise<void>
  /** The same without a promise, and without work for one, when the bytes could leave at once. */
  send(bytes: Uint8Array, stream?: number): Promise<void> | void
  /** Sends as many of the bytes as can leave at once, and returns how many that are: their memory is free. */
  sendNow(bytes: Uint8Array, stream?: number): number
  /** EOF after all that was written: nothing more will be. */
  end(): Promise<void>
  /** Closes after all that was written, or now without it; resolves when the peer has closed, too. */
  close(when?: 'now'): Promise<void>
  /** Resolves with the peer's reply; true at once where none is wanted. */
  request(type: string, payload?: Uint8Array, wantReply?: boolean): Promise<boolean>
  /** Resolves when the channel is gone, however that came about. */
  readonly closed: Promise<void>
}

/** Why a channel is not opened (RFC 4254 section 5.1). */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** The peer wants to open a channel: exactly one of the two functions must be called. */
export interface Opening {
  readonly type: string
  /** What follows the fields that every type has. */
  readonly payload: Buffer
  accept(payload?: Uint8Array): Channel
  refuse(reason: number, text: string): void
}

/** What the peer asks of the whole connection (RFC 4254 section 4). */
export interface GlobalRequest {
  readonly name: string
  readonly wantReply: boolean
  readonly payload: Buffer
  accept(payload?: Uint8Array): void
  refuse(): void
}

export interface ConnectionOptions {
  /** Types of channels that the peer may ask for. */
  readonly channelTypes: readonly string[] | 'all'
  /** Names of global requests that are for the owner. */
  readonly globalRequests: readonly string[] | 'all'
  readonly mostChannels: number
  /** What the peer may at most send on a channel before somebody reads it, and in one packet. */
  readonly window_bytes: number
  readonly packet_bytes: number
  /** After so long without a sign of life the peer is asked for one; after so many questions it is gone. */
  readonly keepalive_ms: number
  readonly mostUnanswered: number
  /**
   * Channels can be opened early: whoever opens one chooses the number that the other side knows it by,
   * and need not wait for the confirmation (see `openEarly`). Both sides must have it, and it is an
   * extension of ours.
   */
  readonly earlyChannels?: boolean
  /** Where it is counted what peers make us hold. */
  readonly memory: MemoryPool
  /**
   * Global requests that need no owner, which is not asked about one that wants no reply: undefined for those
   * that do.
   */
  answer?(name: string, payload: Buffer): Promise<Uint8Array | undefined> | undefined
}

/** An authenticated connection, from either side: channels and global requests in both directions. */
export interface Connection extends AsyncDisposable {
  /** What the peer wants to open. */
  readonly channels: Queue<Opening>
  readonly requests: Queue<GlobalRequest>
  /** The signal gives up waiting for the peer's answer. */
  open(type: string, payload?: Uint8Array, signal?: AbortSignal): Promise<Channel>
  /**
   * The same without waiting: requests and a little data leave in the same flight as the opening. If the peer
   * refuses it, the channel breaks off with ChannelRefused. Undefined without `earlyChannels`.
   */
  readonly openEarly: ((type: string, payload?: Uint8Array) => Channel) | undefined
  /** Resolves with the payload of the peer's answer, undefined if it refused. */
  request(name: string, payload?: Uint8Array): Promise<Buffer | undefined>
  /** The same without an answer. */
  tell(name: string, payload?: Uint8Array): void
  /** New keys now. */
  rekey(): void
  /** Sends a DISCONNECT; channels that are open break off. */
  end(reason?: number, text?: string): Promise<void>
  readonly ended: Promise<ConnectionEnded>
  readonly transport: Transport
}
