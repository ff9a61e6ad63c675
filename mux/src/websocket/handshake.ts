// The opening handshake of a WebSocket that carries bytes (RFC 6455 section 4), in both roles.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import { UpgradeFailed } from '../errors.ts'
import { WebSocketStream, type BytesOptions } from './byte-stream.ts'

const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + guid)
    .digest('base64')

/** How a client opens a WebSocket. */
export interface DialOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** For the connection and the answer to the request. */
  readonly timeout_ms?: number
  readonly signal?: AbortSignal
  /** Certificates to trust instead of the system's, in PEM. */
  readonly ca?: string | readonly string[]
  /** For wss: makes the connection, and may resume a TLS session. Default: nothing is remembered. */
  readonly agent?: https.Agent
  /** The headers of the answer, before anything is read from the WebSocket. */
  readonly onHeaders?: (headers: IncomingHttpHeaders) => void
}

/** How a server answers a WebSocket. */
export interface AcceptOptions extends BytesOptions {
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Answers the request with 101. Throws UpgradeFailed, without an answer, when it is no valid request for a
 * WebSocket.
 */
export function acceptBytes(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { headers = {}, ...options }: AcceptOptions = {},
): Duplex {
  const { 'sec-websocket-key': key = '', 'sec-websocket-version': version, upgrade = '' } = request.headers
  if (
    request.method !== 'GET' ||
    !/^websocket$/i.test(upgrade) ||
    version !== '13' ||
    !/^[A-Za-z0-9+/]{22}==$/.test(key)
  )
    throw new UpgradeFailed('This is no request for a WebSocket of version 13.', { status: 400 })
  if (socket.destroyed) throw new UpgradeFailed('The connection is gone.')
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n${lines.join('')}\r\n`,
  )
  return new WebSocketStream(socket, head, 'server', options)
}

/** Rejects with UpgradeFailed. */
export function dialBytes(url: string | URL, options: DialOptions = {}): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const { signal, headers = {}, timeout_ms = 20_000, ca, agent, onHeaders } = options
    if (signal?.aborted) return reject(signal.reason as Error)
    const target = new URL(url)
    const secure = target.protocol === 'wss:'
    target.protocol = secure ? 'https:' : 'http:'
    const key = randomBytes(16).toString('base64')
    const asked = (secure ? https : http).request(target, {
      agent: (secure && agent) || false,
      headers: {
        ...headers,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': key,
      },
      ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    })
    const onAbort = (): void => fail(signal?.reason as Error)
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const fail = (error: Error): void => {
      settle()
      asked.destroy()
      reject(error)
    }
    const timer = setTimeout(() => fail(new UpgradeFailed('There was no answer in time.')), timeout_ms)
    signal?.addEventListener('abort', onAbort, { once: true })
    asked.on('error', (cause) => fail(new UpgradeFailed(cause.message, {}, { cause })))
    asked.once('response', (answer) => {
      const { statusCode: status, headers: said } = answer
      const pieces: Buffer[] = []
      const refused = (): void => {
        const why = reasonIn(Buffer.concat(pieces).toString())
        fail(
          new UpgradeFailed(`The answer was ${status}${why ? `: ${why}` : '.'}`, {
            status,
            retryAfter: said['retry-after'],
            headers: said,
          }),
        )
      }
      let held = 0
      answer.on('data', (piece: Buffer) => {
        held += piece.length
        if (held > longestReason_bytes) refused()
        else pieces.push(piece)
      })
      answer.once('end', refused).once('error', refused).once('close', refused)
    })
    asked.once('upgrade', (answer, socket, head) => {
      const given = Buffer.from(answer.headers['sec-websocket-accept'] ?? '')
      const expected = Buffer.from(acceptOf(key))
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        socket.destroy()
        return fail(new UpgradeFailed('The answer is to another request.'))
      }
      settle()
      onHeaders?.(answer.headers)
      resolve(new WebSocketStream(socket, head, 'client'))
    })
    asked.end()
  })
}

/** The longest body of a refusal that is read. */
const longestReason_bytes = 4_096

/** The sentence in the JSON of a refusal; empty: there is none. */
function reasonIn(body: string): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown }
    return typeof message === 'string' ? message : ''
  } catch {
    return ''
  }
}
