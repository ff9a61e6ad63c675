// One request on its way: parsed by Node, written anew towards the device, and the answer written anew
// towards the browser. Nothing passes as it came before a 101. Both directions wait for each other's readers,
// and either side may leave at any moment.
import { createHash } from 'node:crypto'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { callLimits } from '@hawser/contract/limits'
import { minute_ms } from '../../kit/clock.ts'
import { towardsBrowser, towardsDevice, type Caller } from './headers.ts'
import { hasBody, showUnreachable, statusOf } from './pages.ts'
import { TargetUnreachable, type WhyUnreachable } from './target.ts'
import type { Exchange, Pass } from './visits.ts'

/** How long a device may take to begin its answer, and a sender to send the next part. */
const answer_ms = 2 * minute_ms
const still_ms = minute_ms
/** In that time. Strangers take places from each other. */
const leastOfStrangers_bytes = 1_024
/** Requests that may be sent again when a connection that was used before turns out to be closed. */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS'])
const webSocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

export interface Passing {
  readonly pass: Pass
  readonly request: IncomingMessage
  readonly caller: Caller
  /** Ends the request as soon as it may no longer be; it is on the list of the pass already. */
  readonly exchange: Exchange
  /** An error of this server, not one of the device: the request ends with it. */
  onError(error: unknown): void
}

/** The status of a request whose sender has left. */
export const left = 0

/** The end of a request, for its session and the log; the status is 0 if its sender left before an answer. */
export type Ended = (status: number, bytes: { readonly received: number; readonly sent: number }) => void

/** Towards the device, without a body. Throws what Node says of a request that cannot be sent. */
function begin(
  { pass, request, caller }: Passing,
  more: readonly string[],
  gone: AbortSignal,
): http.ClientRequest {
  const { connections, admitted } = pass.visit
  const options = {
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    headers: [...towardsDevice(request, admitted.service, caller), ...more],
    maxHeaderSize: callLimits.head.max,
  }
  return connections.begin(options, gone)
}

interface Turn {
  end(): void
}

/** Sends the request when it is its turn, which lasts until `end` is called; `gone` is aborted then. */
function inTurn(
  { pass, onError }: Passing,
  send: (gone: AbortSignal) => void,
  fail: (why: WhyUnreachable) => void,
): Turn {
  const gone = new AbortController()
  const over = Promise.withResolvers<void>()
  const turn = pass.visit.connections.take(async () => {
    send(gone.signal)
    await over.promise
  }, gone.signal)
  if (!turn) queueMicrotask(() => fail('busy'))
  turn?.catch((error: unknown) => {
    if (gone.signal.aborted) return
    onError(error)
    fail('broken')
  })
  return {
    end() {
      over.resolve()
      gone.abort()
    },
  }
}

/** Ends the request where reading the answer of a device throws: it must not end the server. */
const guarded =
  <T extends unknown[]>(
    { onError }: Passing,
    read: (...answer: T) => void,
    fail: (why: WhyUnreachable) => void,
  ) =>
  (...answer: T): void => {
    try {
      read(...answer)
    } catch (error) {
      onError(error)
      fail('broken')
    }
  }

/** A stream that ends before it has carried anything may say why. */
const whyOf = (error: unknown): WhyUnreachable =>
  error instanceof TargetUnreachable ? error.why : ((error as Partial<TargetUnreachable>).why ?? 'broken')

/** Ends with the answer, or with either side. */
export function passRequest(passing: Passing, response: ServerResponse, ended: Ended): void {
  const { pass, request, caller, exchange } = passing
  const bytes = { received: 0, sent: 0 }
  const body = hasBody(request)
  let status = left
  let upstream: http.ClientRequest | undefined
  let late: NodeJS.Timeout | undefined
  const wait = (time_ms: number, why: WhyUnreachable): void => {
    clearTimeout(late)
    late = setTimeout(() => fail(why), time_ms)
  }
  exchange.cut = () => void (upstream?.destroy(), response.destroy())

  function fail(why: WhyUnreachable): void {
    clearTimeout(late)
    upstream?.destroy()
    if (!response.headersSent) status = statusOf(why)
    showUnreachable(request, response, why)
  }

  function answer(answered: IncomingMessage): void {
    if (!isStatus(answered)) return fail('broken')
    clearTimeout(late)
    status = answered.statusCode ?? 502
    const headers = towardsBrowser(answered, pass.visit.admitted.service, caller)
    if (!request.complete && body) headers.push('Connection', 'close')
    response.writeHead(status, headers)
    // Without it a stream of events would begin with its first event; usually the body comes with the head.
    // `flushHeaders` would write their bytes in UTF-8.
    setImmediate(() => void (bytes.sent > 0 || response.writableEnded || response.write('', 'latin1')))
    answered.on('data', (chunk: Buffer) => {
      bytes.sent += chunk.length
      if (!response.write(chunk)) answered.pause()
    })
    response.on('drain', () => answered.resume())
    answered.once('end', () => response.end())
    answered.once('error', () => response.destroy())
    answered.once('aborted', () => response.destroy())
  }

  function send(gone: AbortSignal, isAgain = false): void {
    const lengths = request.headers['content-length']
    const framing =
      request.headers['transfer-encoding'] !== undefined
        ? ['Transfer-Encoding', 'chunked']
        : lengths !== undefined
          ? ['Content-Length', lengths]
          : []
    const expects = request.headers.expect !== undefined
    const sent = (upstream = begin(
      passing,
      [...framing, ...(expects ? ['Expect', '100-continue'] : [])],
      gone,
    ))
    wait(answer_ms, 'slow')
    sent.once('response', guarded(passing, answer, fail))
    const failed = (error: Error): void => {
      if (upstream !== sent || response.destroyed) return
      const isStale = sent.reusedSocket && !isAgain && !body && repeatable.has(request.method ?? '')
      if (isStale && !response.headersSent) send(gone, true)
      else if (response.headersSent) response.destroy()
      else fail(whyOf(error))
    }
    sent.once('error', guarded(passing, failed, fail))
    // No upgrade was asked for.
    sent.once('upgrade', (_, socket) => {
      socket.destroy()
      fail('broken')
    })
    if (!body) return void sent.end()
    request.on('data', (chunk: Buffer) => {
      bytes.received += chunk.length
      if (!response.headersSent) late?.refresh()
      if (!sent.write(chunk)) request.pause()
    })
    sent.on('drain', () => request.resume())
    request.once('end', () => sent.end())
    if (!expects) return watchSender(passing, response)
    // Until then it is the device for which the sender waits.
    request.once('data', () => watchSender(passing, response))
    sent.once('continue', () => {
      if (!response.headersSent) response.writeContinue()
    })
    sent.flushHeaders()
  }

  wait(answer_ms, 'busy')
  const turn = inTurn(passing, (gone) => send(gone), fail)
  response.once('close', () => {
    clearTimeout(late)
    upstream?.destroy()
    turn.end()
    ended(status, bytes)
  })
}

/** Gives up on a sender that sends next to nothing although it is read. */
function watchSender({ request, pass }: Passing, response: ServerResponse): void {
  const enough_bytes = pass.visit.admitted.person.kind === 'user' ? 1 : leastOfStrangers_bytes
  let came_bytes = 0
  let wasPaused = false
  const timer = setInterval(() => {
    if (request.complete) return clearInterval(timer)
    if (came_bytes < enough_bytes && !wasPaused) response.destroy()
    came_bytes = 0
    wasPaused = request.isPaused()
  }, still_ms).unref()
  request.on('pause', () => void (wasPaused = true))
  request.on('data', (chunk: Buffer) => void (came_bytes += chunk.length))
  response.once('close', () => clearInterval(timer))
}

/** Ends with the WebSocket. A refusal of the device is answered like any request. */
export function passUpgrade(passing: Passing, socket: Duplex, head: Buffer, ended: Ended): void {
  const { pass, request, caller, exchange } = passing
  const bytes = { received: 0, sent: 0 }
  let status = left
  const response = new http.ServerResponse(request)
  response.assignSocket(socket as never)
  response.shouldKeepAlive = false
  let upstream: http.ClientRequest | undefined
  const late = setTimeout(() => fail('slow'), answer_ms)
  exchange.cut = () => void (upstream?.destroy(), socket.destroy())

  function fail(why: WhyUnreachable): void {
    clearTimeout(late)
    upstream?.destroy()
    turn.end()
    if (!response.socket) return void socket.destroy()
    status = statusOf(why)
    showUnreachable(request, response, why)
    response.once('finish', () => letGo(socket))
  }

  function refused(answered: IncomingMessage): void {
    if (!isStatus(answered)) return fail('broken')
    clearTimeout(late)
    status = answered.statusCode ?? 502
    response.writeHead(status, towardsBrowser(answered, pass.visit.admitted.service, caller))
    answered.on('data', (chunk: Buffer) => void (bytes.sent += chunk.length))
    answered.once('aborted', () => socket.destroy())
    answered.pipe(response)
    // Node leaves a socket alone after an upgrade.
    socket.on('drain', () => response.emit('drain'))
    response.once('finish', () => letGo(socket))
  }

  function upgraded(answered: IncomingMessage, far: Duplex, farHead: Buffer): void {
    if (!isAccepted(request, answered)) {
      far.destroy()
      return fail('broken')
    }
    const headers = towardsBrowser(answered, pass.visit.admitted.service, caller)
    clearTimeout(late)
    turn.end()
    status = 101
    response.detachSocket(socket as never)
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
    socket.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), farHead]))
    far.write(head)
    join(socket, far, bytes)
  }

  function send(gone: AbortSignal, isAgain = false): void {
    const sent = (upstream = begin(passing, ['Connection', 'Upgrade', 'Upgrade', 'websocket'], gone))
    sent.once('response', guarded(passing, refused, fail))
    sent.once('upgrade', guarded(passing, upgraded, fail))
    const failed = (error: Error): void => {
      if (upstream !== sent || socket.destroyed || response.headersSent) return
      if (sent.reusedSocket && !isAgain) send(gone, true)
      else fail(whyOf(error))
    }
    sent.once('error', guarded(passing, failed, fail))
    sent.end()
  }

  const turn = inTurn(passing, (gone) => send(gone), fail)
  socket.once('close', () => {
    clearTimeout(late)
    upstream?.destroy()
    turn.end()
    ended(status, bytes)
  })
}

/** Node reads 000 to 099 as statuses, and writes none of them. */
const isStatus = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode >= 200

/** The time for a refused client to read the answer and to leave. */
const leaving_ms = 2_000

/** Closes the connection however long the other side keeps its half open. */
export function letGo(socket: Duplex): void {
  socket.end()
  // Further input is dropped, so that its end can be seen.
  socket.resume()
  const limit = setTimeout(() => socket.destroy(), leaving_ms).unref()
  socket.once('close', () => clearTimeout(limit))
}

/** RFC 6455: the device has understood the handshake, and does not take it for something else. */
function isAccepted({ headers }: IncomingMessage, answered: IncomingMessage): boolean {
  const key = headers['sec-websocket-key'] ?? ''
  const expected = createHash('sha1').update(`${key}${webSocketGuid}`).digest('base64')
  return (
    /^websocket$/i.test(answered.headers.upgrade ?? '') &&
    answered.headers['sec-websocket-accept'] === expected
  )
}

/** Either end of a WebSocket ends the other. */
function join(near: Duplex, far: Duplex, bytes: { received: number; sent: number }): void {
  // Silence is no reason to end it; TCP notices a browser that is gone.
  if ('setTimeout' in near) (near as Socket).setTimeout(0).setKeepAlive(true, minute_ms)
  near.on('data', (chunk: Buffer) => void (bytes.received += chunk.length))
  far.on('data', (chunk: Buffer) => void (bytes.sent += chunk.length))
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.pipe(other)
    one.on('error', () => undefined)
    one.once('close', () => other.destroy())
  }
}
