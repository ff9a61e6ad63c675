// The most that one connection, and one person, may have unanswered. Node begins every request that a client
// has sent, without waiting for the answers before it, and holds all answers until they are read: a few
// kilobytes of requests would hold gigabytes and delay everybody else. A person's bound does not grow with
// the number of namespaces, and nobody uses up what other members of a namespace have.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Failure } from '@hawser/contract/failures'
import { beyond, callLimits as limits } from '@hawser/contract/limits'
import type { Caller, CallTurn } from '../domain/callers/callers.ts'
import { neighbourhood } from '../kit/address.ts'
import { concurrencyByKey, placesByKey, type KeyLimiter, type QueueOptions } from '../kit/concurrency.ts'
import { fairShare, type FairShare } from '../kit/fair-share.ts'

/** Browsers and proxies send one request at a time. */
const mostOfConnection = limits.ofConnection.max
const mostListeners = 8 * mostOfConnection
/** Shorter answers and bodies are not counted: the connections themselves take more. */
const short_bytes = 4 * 1024

/**
 * A connection on which nothing moves for this long is closed, unless an answer is being made; after twice as
 * long where Node must find out how much of the last part the network has taken.
 */
const still_ms = 60_000

/** Requests for hosts that are not the server's own, which are passed on. */
export interface OtherHosts {
  owns(request: IncomingMessage): boolean
  request(request: IncomingMessage, response: ServerResponse): void
  isUpgrade(request: IncomingMessage): boolean
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

/**
 * Closes connections with too many requests before looking at anything, those whose answers nobody reads, and
 * those on which the body of an operation does not come in time.
 */
export function boundConnections(server: Server, others: OtherHosts, body_ms: number): void {
  const unanswered = new WeakMap<Socket, number>()
  const handlers = server.listeners('request') as ((...given: unknown[]) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    if (socket.destroyed) return
    // Each request may listen for its end several times.
    if (!unanswered.has(socket)) socket.setMaxListeners(mostListeners)
    const count = (unanswered.get(socket) ?? 0) + 1
    if (count > mostOfConnection) {
      socket.destroy()
      return
    }
    unanswered.set(socket, count)
    response.once('close', () => unanswered.set(socket, unanswered.get(socket)! - 1))
    if (others.owns(request)) return others.request(request, response)
    expectBody(server, request, body_ms)
    for (const handler of handlers) handler.call(server, request, response)
  })
  // A device is asked itself whether it wants the body.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!others.owns(request)) response.writeContinue()
    server.emit('request', request, response)
  })
  server.setTimeout(still_ms, (socket: Socket) => {
    const isMade = socket.writableLength === 0 && (unanswered.get(socket) ?? 0) > 0
    if (!isMade) socket.destroy()
  })
}

/** Node's own limit for whole requests would end uploads to devices, too. */
function expectBody(server: Server, request: IncomingMessage, body_ms: number): void {
  const { headers, socket } = request
  if (headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0') return
  const late = setTimeout(() => {
    const error = Object.assign(new Error('The body did not come in time.'), {
      code: 'ERR_HTTP_REQUEST_TIMEOUT',
    })
    if (!request.complete) server.emit('clientError', error, socket)
  }, body_ms).unref()
  request.once('close', () => clearTimeout(late))
}

/** Calls `over` once, when the answer is sent or its connection is lost. */
export function whenOver({ socket }: IncomingMessage, response: ServerResponse, over: () => void): void {
  let isOver = false
  const once = (): void => {
    response.off('close', once)
    socket.off('close', once)
    // The end of a connection ends its answer while it calls those who listen to it, this one among them.
    if (!isOver) over()
    isOver = true
  }
  if (response.destroyed || socket.destroyed) return once()
  response.once('close', once)
  // An answer that waits for the one before it does not learn of the end of its connection.
  socket.once('close', once)
}

export interface BoundedCalls {
  /**
   * Runs the call in the turn of its person, whose sign-ins take turns. A call that waits leaves with its
   * caller.
   */
  run<T>(caller: Caller, call: () => Promise<T>, end: QueueOptions): Promise<T>
  stream(caller: Caller): Disposable
  onThread(caller: Caller): Disposable
  /**
   * Throws when too many answers to the caller wait to be read: before a change, which must be answered.
   * Strangers are not refused here, or a flood of theirs would prevent sign-ins.
   */
  mayAnswer(caller: Caller): void
  /**
   * Counts an answer until disposed. Throws when too much waits to be read, unless the call has changed
   * something and must be answered.
   */
  answer(caller: Caller, bytes: number, hasChanged: boolean): Disposable | undefined
  /** Counts a body until disposed. Throws when there is no memory left for it. */
  body(caller: Caller, bytes: number): Disposable | undefined
}

/** `turnOf` returns undefined for an open operation, which has limits of its own. */
export function boundedCalls(turnOf: (caller: Caller) => CallTurn | undefined): BoundedCalls {
  const turns = new Map<string, { readonly ofSignIns: KeyLimiter; calls: number }>()
  const streams = placesByKey(limits.streams.max)
  const onThreads = placesByKey(limits.onThreads.max)
  // Strangers share the memory of their networks: they get tokens of devices at will, and addresses of a /48.
  const unread = {
    ofStrangers: fairShare(limits.unreadOfStrangers.max),
    ofPeople: fairShare(limits.unread.max),
  }
  const bodies = {
    ofStrangers: fairShare(limits.bodiesOfStrangers.max),
    ofPeople: fairShare(limits.bodies.max),
  }
  const personOf = (caller: Caller): string => turnOf(caller)?.person ?? neighbourhood(caller.source, 48)
  function shareOf(caller: Caller, memory: typeof unread): { share: FairShare; owner: string } {
    const isStranger = caller.kind === 'anonymous' || caller.kind === 'device'
    return isStranger
      ? { share: memory.ofStrangers, owner: neighbourhood(caller.source, 48) }
      : { share: memory.ofPeople, owner: personOf(caller) }
  }
  const tooMuchUnread = (): Failure => beyond(limits.unread, 10)
  return {
    async run(caller, call, end) {
      const turnTaken = turnOf(caller)
      if (!turnTaken) return call()
      const { person, signIn } = turnTaken
      const own = turns.get(person) ?? {
        ofSignIns: concurrencyByKey(limits.waiting.max, {
          each: limits.running.max,
          atOnce: limits.running.max,
          keys: limits.signIns.max,
        }),
        calls: 0,
      }
      const turn = own.ofSignIns.run(signIn, call, end)
      if (!turn) throw beyond(limits.waiting, 1)
      turns.set(person, own)
      own.calls += 1
      try {
        return await turn
      } finally {
        own.calls -= 1
        if (own.calls === 0) turns.delete(person)
      }
    },
    stream(caller) {
      const place = streams(personOf(caller))
      if (place) return place
      throw beyond(limits.streams, 10)
    },
    onThread(caller) {
      const place = onThreads(personOf(caller))
      if (place) return place
      throw beyond(limits.onThreads, 1)
    },
    mayAnswer(caller) {
      const { share, owner } = shareOf(caller, unread)
      if (share === unread.ofPeople && !share.hasRoom(owner, short_bytes)) throw tooMuchUnread()
    },
    answer(caller, bytes, hasChanged) {
      if (bytes < short_bytes) return undefined
      const { share, owner } = shareOf(caller, unread)
      if (hasChanged) share.count(owner, bytes)
      else if (!share.take(owner, bytes)) throw tooMuchUnread()
      return { [Symbol.dispose]: () => share.count(owner, -bytes) }
    },
    body(caller, bytes) {
      if (bytes < short_bytes) return undefined
      const { share, owner } = shareOf(caller, bodies)
      if (!share.take(owner, bytes))
        throw new Failure('tooMany', { retryAfter: 10, headers: { connection: 'close' } })
      return { [Symbol.dispose]: () => share.count(owner, -bytes) }
    },
  }
}
