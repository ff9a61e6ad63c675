// The interface of a transport for the layers above it: authentication and the connection
// protocol.
import type { Algorithms } from '../algorithms.ts'
import type { CompressionMode } from '../compression/compression.ts'
import type { ConnectionEnded, SshError } from '../errors.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import type { Writer } from '../wire.ts'
import type { Negotiated, Role } from './kexinit.ts'

export interface TransportOptions {
  readonly role: Role
  /** The software part of our identification string. */
  readonly software: string
  readonly algorithms: Algorithms
  readonly hostKeys: readonly PrivateKey[]
  /** After these bytes in either direction, or this time. */
  readonly rekey_bytes: number
  readonly rekey_ms: number
  /** Send nothing before the peer has: some tunnels need it. */
  readonly speakSecond: boolean
  /** A client: its preferred exchange begins before the server's preferences have come. */
  readonly guess?: boolean
  /** Our first KEXINIT waits a moment for the peer's. */
  readonly answerKexInit: boolean
  /** For methods that leave the choice. */
  readonly compress?: CompressionMode
}

/** Encrypted once there are keys (RFC 4253). */
export interface Transport {
  readonly role: Role
  /** Resolves with the first keys. */
  readonly established: Promise<void>
  /** Never rejects. */
  readonly ended: Promise<ConnectionEnded>
  readonly sessionId: Buffer
  /** The peer's identification string, as it came. */
  readonly peerIdent: string
  readonly hostKey: Buffer
  readonly negotiated: Negotiated
  /** RFC 8308; undefined: the server sent no list. */
  readonly serverSigAlgs: readonly string[] | undefined
  /** Packets that have arrived, which show whether the peer lives. */
  readonly received: number
  /** For use before the takeover. */
  receive(): Promise<Buffer>
  /**
   * After the login: messages go to this function as they arrive, and the peer may send large packets. Later
   * messages wait for the promise that it returns.
   */
  takeOver(receive: (payload: Buffer) => Promise<void> | void, onRoom: () => void): void
  /** Declares that the last message is no longer referenced. */
  releaseMessage(): void
  send(written: Writer): void
  /**
   * Sends data of a channel; only while it is not congested. Data of the same channel and stream that follows
   * at once may share its packet, which holds at most `most_bytes`.
   */
  sendData(channel: number, stream: number, bytes: Uint8Array, most_bytes: number): void
  /** Excludes data of the peer's channel from compression. */
  setPlain(channel: number, isPlain: boolean): void
  /** Data should wait. */
  readonly congested: boolean
  /** Data of a channel waits, for its window or because of `congested`: this reveals a slow link. */
  dataWaits(): void
  /** Nothing is taken from the peer until `resumeReading`. */
  pauseReading(): void
  resumeReading(): void
  readonly reading: boolean
  /** Bytes of a channel have reached their reader, on either side: they pay for the peer's new keys. */
  delivered(bytes: number): void
  rekey(): void
  /** Sends a DISCONNECT and closes. */
  end(error: SshError): void
}
