// The interfaces of channels and connections (RFC 4254 sections 4 and 5).
import type { ConnectionEnded } from '../errors.ts'
import type { MemoryPool } from '../memory.ts'
import type { Queue } from '../queue.ts'
import type { Transport } from '../transport/transport.ts'

/** Stream 0 is the standard one, 1 is stderr (RFC 4254 section 5.2). */
export interface Chunk {
  readonly bytes: Buffer
  readonly stream: number
}

/** RFC 4254 section 5.4. */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** The bytes after the type, for `readRequest`. */
  readonly payload: Buffer
  /** Call it once for every request; it does nothing where no reply is wanted. */
  reply(success: boolean): void
}

/** A channel of a connection: two streams of bytes with flow control, and requests (RFC 4254 section 5). */
export interface Channel extends AsyncIterable<Chunk>, AsyncDisposable {
  readonly type: string
  /** Requests of the peer, until the channel is closed. Those beyond the queue are refused. */
  readonly requests: Queue<ChannelRequest>
  /** Undefined after the peer's EOF. Throws if the connection was lost before it. */
  read(): Promise<Chunk | undefined>
  /**
   * Calls `take` with one chunk after the other, each when the promise of the former has resolved. The bytes
   * are valid until then. Resolves after the peer's EOF.
   */
  readAll(take: (chunk: Chunk) => Promise<void> | void): Promise<void>
  /** Resolves when all of it was handed to the socket. */
  write(bytes: Uint8Array, stream?: number): Promise<void>
  /** As `write`, without a promise when the bytes could leave at once. */
  send(bytes: Uint8Array, stream?: number): Promise<void> | void
  /** Sends as many bytes as can leave at once, and returns their number: their memory is free. */
  sendNow(bytes: Uint8Array, stream?: number): number
  /** EOF, after all output. */
  end(): Promise<void>
  /** After all output, or now without it; resolves when the peer has closed, too. */
  close(when?: 'now'): Promise<void>
  /** The peer's reply; true at once where none is wanted. */
  request(type: string, payload?: Uint8Array, wantReply?: boolean): Promise<boolean>
  /** Resolves when the channel is gone, for whatever reason. */
  readonly closed: Promise<void>
}

/** Why a channel is not opened (RFC 4254 section 5.1). */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** Exactly one of the two functions must be called. */
export interface Opening {
  readonly type: string
  /** The fields after those that every type has. */
  readonly payload: Buffer
  accept(payload?: Uint8Array): Channel
  refuse(reason: number, text: string): void
}

/** RFC 4254 section 4. */
export interface GlobalRequest {
  readonly name: string
  readonly wantReply: boolean
  readonly payload: Buffer
  accept(payload?: Uint8Array): void
  refuse(): void
}

export interface ConnectionOptions {
  /** Types that the peer may open. */
  readonly channelTypes: readonly string[] | 'all'
  /** Names of global requests for the owner. */
  readonly globalRequests: readonly string[] | 'all'
  readonly mostChannels: number
  /** Unread on a channel, and in one packet. */
  readonly window_bytes: number
  readonly packet_bytes: number
  /** The peer is checked after this silence, and lost after this many checks. */
  readonly keepalive_ms: number
  readonly mostUnanswered: number
  /**
   * Channels can be opened early: the opener chooses the other side's number, and need not wait for the
   * confirmation (see `openEarly`). An extension of ours that both sides must have.
   */
  readonly earlyChannels?: boolean
  /** The account of memory that peers make us hold. */
  readonly memory: MemoryPool
  /**
   * Answers global requests without the owner, which does not see requests without a reply; undefined: the
   * owner answers.
   */
  answer?(name: string, payload: Buffer): Promise<Uint8Array | undefined> | undefined
}

/** An authenticated connection, from either side: channels and global requests in both directions. */
export interface Connection extends AsyncDisposable {
  /** Openings of the peer. */
  readonly channels: Queue<Opening>
  readonly requests: Queue<GlobalRequest>
  /** The signal gives up waiting for the peer's answer. */
  open(type: string, payload?: Uint8Array, signal?: AbortSignal): Promise<Channel>
  /**
   * Opens without waiting: requests and a little data leave in the same flight. If the peer refuses, the
   * channel ends with ChannelRefused. Undefined without `earlyChannels`.
   */
  readonly openEarly: ((type: string, payload?: Uint8Array) => Channel) | undefined
  /** Undefined: the peer refused. */
  request(name: string, payload?: Uint8Array): Promise<Buffer | undefined>
  /** As `request`, without an answer. */
  tell(name: string, payload?: Uint8Array): void
  rekey(): void
  /** Sends a DISCONNECT, which ends open channels. */
  end(reason?: number, text?: string): Promise<void>
  readonly ended: Promise<ConnectionEnded>
  readonly transport: Transport
}
