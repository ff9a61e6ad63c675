// What the transport of a connection offers to the layers above it: authentication and the connection
// protocol.
import type { Algorithms } from '../algorithms.ts'
import type { CompressionMode } from '../compression/compression.ts'
import type { ConnectionEnded, SshError } from '../errors.ts'
import type { PrivateKey } from '../keys/private-key.ts'
import type { Writer } from '../wire.ts'
import type { Negotiated, Role } from './kexinit.ts'

/** How a transport behaves, and what it offers in the key exchange. */
export interface TransportOptions {
  readonly role: Role
  /** The software part of our identification string. */
  readonly software: string
  readonly algorithms: Algorithms
  readonly hostKeys: readonly PrivateKey[]
  /** New keys are made after so many bytes in either direction, and after so long. */
  readonly rekey_bytes: number
  readonly rekey_ms: number
  /** Say nothing before the peer has: some tunnels need it. */
  readonly speakSecond: boolean
  /** A client: the exchange that it prefers begins before the server has said what it prefers. */
  readonly guess?: boolean
  /** Our first KEXINIT waits a moment for the peer's. */
  readonly answerKexInit: boolean
  /** When to compress with a method that leaves the choice. */
  readonly compress?: CompressionMode
}

/** The packets of one connection, encrypted once there are keys (RFC 4253). */
export interface Transport {
  readonly role: Role
  /** Resolves with the first keys. */
  readonly established: Promise<void>
  /** Resolves, never rejects, when the connection is over. */
  readonly ended: Promise<ConnectionEnded>
  readonly sessionId: Buffer
  /** The peer's identification string, as it came. */
  readonly peerIdent: string
  /** The server's host key. */
  readonly hostKey: Buffer
  readonly negotiated: Negotiated
  /** What the server said it verifies (RFC 8308); undefined if it said nothing. */
  readonly serverSigAlgs: readonly string[] | undefined
  /** Packets that have arrived; whoever watches it sees whether the peer lives. */
  readonly received: number
  /** The next message, until somebody took over. */
  receive(): Promise<Buffer>
  /**
   * Somebody is logged in. From now on messages go to this function as they arrive, and the peer may send
   * large packets. When it returns a promise the messages after it wait.
   */
  takeOver(receive: (payload: Buffer) => Promise<void> | void, onRoom: () => void): void
  /** Nobody has kept anything of the message that came last. */
  releaseMessage(): void
  send(written: Writer): void
  /**
   * Sends data of a channel; only while it is not congested. Data of the same channel and stream that follows
   * at once may share its packet, which holds at most so many bytes.
   */
  sendData(channel: number, stream: number, bytes: Uint8Array, most_bytes: number): void
  /** Data of this channel of the peer's is not compressed from now on, or may be again. */
  setPlain(channel: number, isPlain: boolean): void
  /** True while data should wait. */
  readonly congested: boolean
  /** Data of a channel waits, for its window or because of `congested`: a slow link is known by that. */
  dataWaits(): void
  /** Nothing is taken from the peer until `resumeReading`. */
  pauseReading(): void
  resumeReading(): void
  readonly reading: boolean
  /**
   * So many bytes of a channel have reached whom they were for, on either side: what the peer pays for new
   * keys with.
   */
  delivered(bytes: number): void
  rekey(): void
  /** Sends a DISCONNECT and closes. */
  end(error: SshError): void
}
