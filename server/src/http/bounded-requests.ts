// The most that one connection, and one namespace, may have unanswered. Node begins every request that a
// client has sent, without waiting for the answers before it, and keeps all answers until they are read; a
// few kilobytes of requests would hold gigabytes, and make everybody else wait for their rules.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Failure } from '@hawser/contract/failures'
import type { Caller } from '../domain/callers/callers.ts'
import { concurrencyByKey, placesByKey, type QueueOptions } from '../kit/concurrency.ts'

/** Requests of one connection without an answer. Browsers and proxies send one at a time. */
const mostOfConnection = 4
/** Calls of one namespace that run at a time, and those that wait for their turn. */
const running = 8
const waiting = 256
/** Streamed answers of one namespace at a time. */
const mostStreams = 8

/**
 * A connection on which nothing moves for this long is closed, unless an answer is being made; for twice as long
 * where Node has to find out first how much of the last part the network has taken.
 */
const still_ms = 60_000

/**
 * Closes connections with more requests than that, before anything is looked at, and those whose answers nobody reads.
 */
export function boundConnections(server: Server): void {
  const unanswered = new WeakMap<Socket, number>()
  const handlers = server.listeners('request') as ((...given: unknown[]) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    // Requests that came with the one too many.
    if (socket.destroyed) return
    const count = (unanswered.get(socket) ?? 0) + 1
    if (count > mostOfConnection) {
      socket.destroy()
      return
    }
    unanswered.set(socket, count)
    response.once('close', () => unanswered.set(socket, unanswered.get(socket)! - 1))
    for (const handler of handlers) handler.call(server, request, response)
  })
  server.setTimeout(still_ms, (socket: Socket) => {
    const isMade = socket.writableLength === 0 && (unanswered.get(socket) ?? 0) > 0
    if (!isMade) socket.destroy()
  })
}

/** Calls `over` once, when the answer is sent or its connection is lost. */
export function whenOver({ socket }: IncomingMessage, response: ServerResponse, over: () => void): void {
  const once = (): void => {
    response.off('close', once)
    socket.off('close', once)
    over()
  }
  if (response.destroyed || socket.destroyed) return once()
  response.once('close', once)
  // An answer that waits for the one before it is not told of the end of its connection.
  socket.once('close', once)
}

export interface BoundedCalls {
  /** Runs the call in the turn of its namespace. A call that waits leaves with its caller. */
  run<T>(caller: Caller, call: () => Promise<T>, end: QueueOptions): Promise<T>
  /** A place for a streamed answer. */
  stream(caller: Caller): Disposable
}

export function boundedCalls(): BoundedCalls {
  const turns = concurrencyByKey(waiting, { each: running })
  const streams = placesByKey(mostStreams)
  return {
    async run(caller, call, end) {
      const key = keyOf(caller)
      if (key === undefined) return call()
      const turn = turns.run(key, call, end)
      if (!turn) throw new Failure('tooMany', { retryAfter: 1 })
      return turn
    },
    stream(caller) {
      const place = streams(keyOf(caller) ?? caller.source)
      if (place) return place
      throw new Failure('tooMany', { message: 'Too many downloads are under way.', retryAfter: 10 })
    },
  }
}

/** Open operations have limits of their own, by address. */
function keyOf(caller: Caller): string | undefined {
  if (caller.kind === 'anonymous') return undefined
  if (caller.kind === 'device') return caller.uid
  return caller.tenant_id ?? (caller.kind === 'user' ? caller.id : undefined)
}
