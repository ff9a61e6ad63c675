// The options of clients and servers: the limits and habits of a connection, with the values that hold unless the
// caller says otherwise.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Algorithms } from './algorithms.ts'
import type { CompressionMode } from './compression/compression.ts'
import type { ConnectionOptions } from './connection/connection.ts'
import { Reason, SshError } from './errors.ts'
import { processMemory } from './memory.ts'
import type { Transport } from './transport/transport.ts'

export interface CommonOptions extends Partial<Omit<ConnectionOptions, 'answer'>> {
  /** The software part of the ident. */
  readonly software?: string
  readonly algorithms?: Algorithms
  readonly rekey_bytes?: number
  readonly rekey_ms?: number
  /** For methods that leave the choice; `auto` unless stated. */
  readonly compress?: CompressionMode
  /** From the first byte to the login. */
  readonly handshake_ms?: number
  /**
   * Our first KEXINIT waits a moment for the peer's, and so acknowledges it. A client's kernel with Nagle's
   * algorithm holds the first small packet of the exchange until then, and our kernel would take 40 ms to do
   * it by itself. Elsewhere it costs a round trip: right for peers on the same machine.
   */
  readonly answerKexInit?: boolean
  /** Ends the connection. */
  readonly signal?: AbortSignal
}

export const defaults = {
  software: 'Hawser',
  rekey_bytes: 1024 ** 3,
  rekey_ms: 3_600_000,
  handshake_ms: 120_000,
  answerKexInit: false,
  channelTypes: [],
  globalRequests: [],
  mostChannels: 256,
  window_bytes: 2 * 1024 * 1024,
  packet_bytes: 32 * 1024,
  keepalive_ms: 30_000,
  mostUnanswered: 3,
  memory: processMemory,
} satisfies Partial<CommonOptions>

/** Small packets must not wait for larger ones. */
export function disableNagle(socket: Duplex): void {
  if (socket instanceof Socket) socket.setNoDelay(true)
}

export function endOnAbort(transport: Transport, signal: AbortSignal | undefined): void {
  if (!signal) return
  const stop = (): void => transport.end(new SshError(Reason.byApplication, 'The connection was stopped.'))
  if (signal.aborted) return stop()
  signal.addEventListener('abort', stop, { once: true })
  void transport.ended.then(() => signal.removeEventListener('abort', stop))
}

/** Ends the transport when the work is late or fails. */
export async function withTimeout<T>(
  transport: Transport,
  limit_ms: number,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setTimeout(
    () => transport.end(new SshError(Reason.byApplication, 'It took too long to log in.')),
    limit_ms,
  )
  try {
    return await work()
  } catch (error) {
    transport.end(
      error instanceof SshError
        ? error
        : new SshError(Reason.byApplication, 'Internal error.', { cause: error }),
    )
    throw error
  } finally {
    clearTimeout(timer)
  }
}
