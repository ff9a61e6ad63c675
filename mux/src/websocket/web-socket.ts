// WebSockets that are used message by message, as browsers do: accepted from an HTTP request, or dialled.
// Compression is never offered (what goes through is encrypted or small), and a message has a limit. Both
// functions resolve with a socket that is open and paused, because messages that come before somebody listens
// would be lost: its user resumes it.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import { UpgradeFailed } from '../errors.ts'
import type { DialOptions } from './handshake.ts'

/** A peer may send a whole window of a stream as one message. */
const mostMessage_bytes = 1024 * 1024

/** Pieces of a message: each is an object and holds the memory it came in. */
const mostPieces = 4096
/**
 * A ping is answered while no more than this waits to be sent: an answer of two bytes costs a hundred times
 * that.
 */
const mostUnsent_bytes = 1024

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: mostMessage_bytes,
  maxFragments: mostPieces,
  maxBufferedChunks: mostPieces,
  autoPong: false,
  // One message or ping of each socket in a turn of the event loop: 64 KiB hold 10,000 empty ones, and a socket is
  // read 32 times in a row.
  allowSynchronousEvents: false,
})
const waiting = new WeakMap<IncomingMessage, (error: Error) => void>()
server.on('wsClientError', (error, _, request) =>
  waiting.get(request)?.(new UpgradeFailed(error.message, { status: 400 })),
)

/**
 * Answers the request with 101. Rejects with UpgradeFailed, without an answer, when it is no valid request
 * for a WebSocket.
 */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new UpgradeFailed('The connection is gone.'))
    const fail = (error: Error): void => {
      socket.off('close', gone)
      reject(error)
    }
    socket.once('close', gone)
    waiting.set(request, fail)
    server.handleUpgrade(request, socket, head, (accepted) => {
      socket.off('close', gone)
      accepted.on('ping', (payload) => {
        if (accepted.readyState === WebSocket.OPEN && accepted.bufferedAmount <= mostUnsent_bytes)
          accepted.pong(payload)
      })
      accepted.pause()
      resolve(accepted)
    })
  })
}

/** Rejects with UpgradeFailed. */
export function dialWebSocket(url: string | URL, options: DialOptions = {}): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    if (options.signal?.aborted) return reject(options.signal.reason as Error)
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: mostMessage_bytes,
      handshakeTimeout: options.timeout_ms ?? 20_000,
      headers: { ...options.headers },
      ...(options.ca === undefined
        ? {}
        : { ca: typeof options.ca === 'string' ? options.ca : [...options.ca] }),
      // Masks keep a page's script from writing chosen bytes to the wire (RFC 6455 section 10.3). No script
      // chooses ours, TLS encrypts them, and masking costs more than all else: a mask of zeros is free.
      generateMask: (mask: Buffer): void => void mask.fill(0),
    })
    const onAbort = (): void => fail(options.signal?.reason as Error)
    const settle = (): void => {
      options.signal?.removeEventListener('abort', onAbort)
      socket.off('open', onOpen)
      socket.off('unexpected-response', onAnswer)
    }
    // The listener stays: a socket that is given up still reports errors.
    const fail = (error: Error): void => {
      settle()
      socket.terminate()
      reject(error)
    }
    const onOpen = (): void => {
      settle()
      socket.off('error', onError)
      socket.pause()
      resolve(socket)
    }
    const onError = (cause: Error): void => fail(new UpgradeFailed(cause.message, {}, { cause }))
    const onAnswer = (_: unknown, answer: IncomingMessage): void => {
      const { statusCode: status, headers } = answer
      answer.resume()
      fail(new UpgradeFailed(`The answer was ${status}.`, { status, retryAfter: headers['retry-after'] }))
    }
    socket.on('open', onOpen)
    socket.on('error', onError)
    socket.on('unexpected-response', onAnswer)
    options.signal?.addEventListener('abort', onAbort, { once: true })
  })
}
