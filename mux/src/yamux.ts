// A session of yamux on a byte stream: the frames of many streams, in both roles. Its invariants: nothing
// waits here without a bound (what comes is bounded by windows, by the number of streams and by the memory
// that all of them hold, what goes by the carrier's own limit, `mostControl_bytes` and `mostAnswers_bytes`);
// streams that want to send get a frame each in turn; the carrier is always read, so that no stream can stop
// another; a peer that breaks a rule ends the session and nothing else. A session that is told to ping has
// one timer, and one that is told to watch for silence has another.
import type { Duplex } from 'node:stream'
import {
  ConnectionLost,
  MuxClosed,
  ProtocolError,
  StreamEvicted,
  StreamRefused,
  StreamReset,
  type Rule,
} from './errors.ts'
import {
  Flag,
  frame,
  FrameReader,
  GoAway,
  headerBytes,
  initialWindow_bytes,
  mostPayload_bytes,
  Type,
  writeHeader,
  type FrameSink,
} from './frames.ts'
import { Pings, type PingTimes } from './pings.ts'
import { isReleasing, releasesBuffers } from './releases-buffers.ts'
import { Silence } from './silence.ts'
import { MuxStream, type StreamHost } from './stream.ts'

/** The role and the limits of a session. */
export interface MuxOptions {
  /** The client opens odd ids, the server even ones. Both may open. */
  readonly role: 'client' | 'server'
  /** Sent by the peer on a stream before we have read it. Default 1 MiB, at least 256 KiB. */
  readonly window_bytes?: number
  /** Streams of both sides together. Default 256. */
  readonly mostStreams?: number
  /** Streams that the peer may have opened. Default `mostStreams`; 0 where only we open streams. */
  readonly mostIncoming?: number
  /** Memory of unread bytes in all streams; above it the largest stream is reset. Default 32 MiB. */
  readonly mostUnread_bytes?: number
  /** A peer that is silent for `timeout_ms` after a ping is gone. */
  readonly ping?: PingTimes
  /** `idle_ms`: how long nothing had come or left before the ping. */
  readonly onPong?: (idle_ms: number) => void
  /** The peer has sent a ping, which is answered. */
  readonly onPing?: () => void
}

/** A session of yamux: opens streams, and takes those that the peer opens. */
export interface Mux extends Disposable {
  /**
   * Opens a stream; the opening and `first` leave in one write. On failure the returned stream fails with the
   * reason, so that its user has one way to learn of failure. The peer must begin with the `expected` bytes,
   * if any: they are taken off the stream, and others reset it.
   */
  open(first?: Uint8Array, expected?: Uint8Array): Duplex
  /** Streams that the peer opens, for one taker; ends with the session. */
  readonly incoming: AsyncIterable<Duplex>
  /** The reason, unless the session was closed regularly. */
  readonly ended: Promise<Error | undefined>
  readonly streams: number
  /** The round trip in milliseconds. Rejects when the session ends. */
  ping(): Promise<number>
  /** Sets how often to ping. */
  pace(times: PingTimes): void
  /** Ends the session when the peer, which pings, was silent for this long. */
  allowSilence(silence_ms: number): void
  /** Ends the session unless the peer sends something within this time. */
  expectWord(within_ms: number): void
  /**
   * How long nothing has come or left, in a session that pings. With a ping in flight, or unanswered at the
   * end of the session: how long that was before the ping.
   */
  readonly idle_ms: number
  goAway(): void
  /** Ends the session and its streams at once. */
  close(reason?: Error): void
}

/**
 * Small frames of ours that may wait for a congested carrier: some thousand, where a stream has three at a
 * time.
 */
const mostControl_bytes = 64 * 1024
/** Answers to the peer that may wait while earlier ones are written. */
const mostAnswers_bytes = 64 * 1024
/** For our last frame to leave and the carrier to close. */
const linger_ms = 5_000

/** Begins a session of yamux on any stream of bytes. */
export function openMux(carrier: Duplex, options: MuxOptions): Mux {
  return new Session(carrier, options)
}

class Session implements Mux, StreamHost, FrameSink {
  readonly ended: Promise<Error | undefined>
  readonly [releasesBuffers]: boolean
  readonly #carrier: Duplex
  readonly #window: number
  readonly #mostStreams: number
  readonly #mostIncoming: number
  readonly #onPong: ((idle_ms: number) => void) | undefined
  readonly #onPing: (() => void) | undefined
  readonly #resolveEnded: (reason: Error | undefined) => void
  readonly #reader = new FrameReader()
  readonly #streams = new Map<number, MuxStream>()
  readonly #pings: Pings
  readonly #silence: Silence

  /** For the next stream that we open. */
  #nextId: number
  /** The highest id of the peer's streams, and how many are open. */
  #highestPeerId = 0
  #incomingOpen = 0
  /** Streams that are not accepted yet, and their takers. */
  #backlog: MuxStream[] = []
  #wakers: (() => void)[] = []

  /** The stream of the current payload; undefined: it is skipped. */
  #receiving: MuxStream | undefined
  /** The current frame is the last of its stream. */
  #receivingFin = false

  /** Streams with unread bytes, and their memory. */
  readonly #unread = new Set<MuxStream>()
  readonly #mostUnread_bytes: number
  #unread_bytes = 0

  /** The carrier takes no more for now. */
  #congested = false
  /** The bytes of control frames since the carrier became congested. */
  #control_bytes = 0
  /** Waiting answers, joined: each by itself would cost many times its twelve bytes. */
  #answers: Buffer | undefined
  #answers_bytes = 0
  /** Earlier answers are being written. */
  #answering = false
  /** Streams that wait to send, and whether they are being served. */
  #sendQueue: MuxStream[] = []
  #pumping = false

  #weGoAway = false
  #peerGoesAway = false
  /** The session has ended, and how long it was idle then. */
  #over = false
  #idleAtEnd_ms: number | undefined

  constructor(carrier: Duplex, options: MuxOptions) {
    this.#carrier = carrier
    this[releasesBuffers] = isReleasing(carrier)
    this.#window = Math.max(initialWindow_bytes, options.window_bytes ?? 1024 * 1024)
    this.#mostStreams = options.mostStreams ?? 256
    this.#mostIncoming = options.mostIncoming ?? this.#mostStreams
    this.#mostUnread_bytes = options.mostUnread_bytes ?? 32 * 1024 * 1024
    this.#onPong = options.onPong
    this.#onPing = options.onPing
    this.#nextId = options.role === 'client' ? 1 : 2
    const { promise, resolve } = Promise.withResolvers<Error | undefined>()
    this.ended = promise
    this.#resolveEnded = resolve
    this.#pings = new Pings(
      (id) => this.control(frame(Type.ping, Flag.syn, 0, id)),
      (error) => this.#end(error, GoAway.normal),
      options.ping,
    )
    this.#silence = new Silence((error) => this.#end(error, GoAway.normal))
    carrier.on('data', (chunk: Buffer) => {
      if (this.#over) return
      this.#pings.heard()
      this.#silence.heard()
      this.#reader.take(chunk, this)
      this.#sendAnswers()
    })
    carrier.on('drain', () => {
      this.#congested = false
      this.#control_bytes = 0
      this.#pump()
    })
    carrier.on('end', () => {
      if (carrier.errored)
        this.#end(new ConnectionLost('The connection is lost.', { cause: carrier.errored }))
      else if (this.#reader.within)
        this.#end(new ProtocolError('truncated', 'The connection ended within a frame.'))
      else this.#end(undefined)
    })
    carrier.on('error', (cause) => this.#end(new ConnectionLost('The connection is lost.', { cause })))
    carrier.on('close', () => this.#end(new ConnectionLost('The connection was cut.')))
    if (carrier.destroyed)
      queueMicrotask(() => this.#end(new ConnectionLost('The connection was gone already.')))
  }

  get streams(): number {
    return this.#streams.size
  }

  get incoming(): AsyncIterable<Duplex> {
    return this.#accept()
  }

  open(first?: Uint8Array, expected?: Uint8Array): Duplex {
    const refusal = this.#whyNotOpen(first?.length ?? 0)
    const stream = new MuxStream(this.#nextId, this, this.#window)
    if (refusal) {
      stream.cut(refusal)
      return stream
    }
    if (expected) stream.expect(expected)
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    const now = first?.subarray(0, mostPayload_bytes)
    const bytes = Buffer.allocUnsafe(now?.length ? 2 * headerBytes + now.length : headerBytes)
    writeHeader(bytes, 0, Type.windowUpdate, Flag.syn, stream.id, stream.grant(this.#window))
    if (now?.length) {
      writeHeader(bytes, headerBytes, Type.data, 0, stream.id, now.length)
      bytes.set(now, 2 * headerBytes)
      stream.spend(now.length)
    }
    this.control(bytes)
    if (first && now && first.length > now.length) stream.write(first.subarray(now.length))
    return stream
  }

  ping(): Promise<number> {
    return this.#over ? Promise.reject(new MuxClosed('The session is over.')) : this.#pings.measure()
  }

  pace(times: PingTimes): void {
    if (!this.#over) this.#pings.pace(times)
  }

  allowSilence(silence_ms: number): void {
    if (!this.#over) this.#silence.allow(silence_ms)
  }

  expectWord(within_ms: number): void {
    if (!this.#over) this.#silence.expect(within_ms)
  }

  get idle_ms(): number {
    return this.#idleAtEnd_ms ?? this.#pings.idle_ms
  }

  goAway(): void {
    if (this.#weGoAway || this.#over) return
    this.#weGoAway = true
    this.control(frame(Type.goAway, 0, 0, GoAway.normal))
  }

  close(reason?: Error): void {
    this.#end(reason, GoAway.normal)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // ---- for the streams

  control(bytes: Buffer): void {
    if (this.#over) return
    if (this.#congested) {
      this.#control_bytes += bytes.length
      if (this.#control_bytes > mostControl_bytes)
        return void this.#broken('flood', 'The peer requests answers that it does not read.')
    }
    this.#write(bytes)
  }

  ready(stream: MuxStream): void {
    if (stream.isQueued) return
    stream.isQueued = true
    this.#sendQueue.push(stream)
    this.#pump()
  }

  forget(stream: MuxStream): void {
    if (this.#streams.get(stream.id) !== stream) return
    this.#streams.delete(stream.id)
    if (!this.#isOurs(stream.id)) this.#incomingOpen--
  }

  holds(stream: MuxStream, more_bytes: number): void {
    this.#unread_bytes += more_bytes
    if (stream.held_bytes > 0) this.#unread.add(stream)
    else this.#unread.delete(stream)
    if (more_bytes <= 0) return
    while (this.#unread_bytes > this.#mostUnread_bytes) {
      let largest = stream
      for (const one of this.#unread) if (one.held_bytes > largest.held_bytes) largest = one
      largest.destroy(new StreamEvicted('The peer sends more than is read.'))
      if (this.#unread.size === 0) return
    }
  }

  // ---- for the reader of frames

  header(version: number, type: number, flags: number, id: number, length: number): boolean {
    if (version !== 0) return this.#broken('version', `A frame of version ${version}.`)
    if (type === Type.ping) return this.#pinged(flags, length)
    if (type === Type.goAway) return this.#toldToGo(length)
    if (type !== Type.data && type !== Type.windowUpdate)
      return this.#broken('type', `A frame of type ${type}.`)
    // No stream has ever had such a window.
    if (type === Type.data && length > this.#window)
      return this.#broken('length', `A frame of ${length} bytes.`)

    if (flags & Flag.syn && !this.#opened(id)) return false
    const stream = this.#streams.get(id)
    this.#receiving = undefined
    if (!stream) return this.#skip(id)
    if (flags & Flag.rst) {
      this.forget(stream)
      stream.cut(new StreamReset('The peer reset the stream.'))
      return true
    }
    const fin = (flags & Flag.fin) !== 0
    if (fin && stream.finReceived) return this.#broken('finished twice', 'A stream was finished twice.')
    if (type === Type.windowUpdate) {
      if (!stream.credit(length)) return this.#broken('credit', 'A window larger than windows can be.')
      if (fin) stream.finish()
      return !this.#over
    }
    // A race in Go's yamux, of a write and a close at the same time, which has lost those bytes already.
    if (stream.finReceived) return true
    if (!stream.mayReceive(length)) return this.#broken('window', 'More bytes than the window allowed.')
    this.#receiving = stream
    this.#receivingFin = fin
    if (length === 0) this.#received()
    return !this.#over
  }

  payload(piece: Buffer, left: number): boolean {
    this.#receiving?.receive(piece)
    if (left === 0) this.#received()
    return !this.#over
  }

  // ----

  #received(): void {
    if (this.#receivingFin) this.#receiving?.finish()
    this.#receiving = undefined
    this.#receivingFin = false
  }

  /** A frame for an unknown stream: the rest of a former stream is skipped, any other frame is an error. */
  #skip(id: number): boolean {
    const existed = id !== 0 && (this.#isOurs(id) ? id < this.#nextId : id <= this.#highestPeerId)
    return existed || this.#broken('unknown stream', `A frame for stream ${id}, which was never opened.`)
  }

  #isOurs(id: number): boolean {
    return id % 2 === this.#nextId % 2
  }

  /** False when the session is over. For later frames, a refused stream counts as opened. */
  #opened(id: number): boolean {
    if (id === 0 || this.#isOurs(id))
      return this.#broken('parity', `The peer opened stream ${id}, which is ours to open.`)
    if (this.#streams.has(id)) return this.#broken('stream opened twice', `Stream ${id} was opened twice.`)
    this.#highestPeerId = Math.max(this.#highestPeerId, id)
    if (
      this.#weGoAway ||
      this.#streams.size >= this.#mostStreams ||
      this.#incomingOpen >= this.#mostIncoming
    ) {
      this.#answer(Type.windowUpdate, Flag.rst, id, 0)
      return !this.#over
    }
    const stream = new MuxStream(id, this, initialWindow_bytes)
    this.#streams.set(id, stream)
    this.#incomingOpen++
    this.#backlog.push(stream)
    this.#wake()
    return true
  }

  async *#accept(): AsyncGenerator<Duplex, void> {
    while (!this.#over) {
      const stream = this.#backlog.shift()
      if (!stream) await new Promise<void>((resolve) => void this.#wakers.push(resolve))
      else if (!stream.destroyed) {
        this.control(frame(Type.windowUpdate, Flag.ack, stream.id, stream.grant(this.#window)))
        yield stream
      }
    }
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake()
  }

  #pinged(flags: number, id: number): boolean {
    if (flags & Flag.syn) {
      this.#answer(Type.ping, Flag.ack, 0, id)
      this.#onPing?.()
      return !this.#over
    }
    const idle_ms = this.#pings.answered(id)
    if (idle_ms !== undefined) this.#onPong?.(idle_ms)
    return !this.#over
  }

  /** Answers a frame of the peer. All answers of a read leave together, after earlier ones. */
  #answer(type: number, flags: number, id: number, length: number): void {
    if (this.#over) return
    if (this.#answers_bytes + headerBytes > mostAnswers_bytes) this.#sendAnswers()
    const used = this.#answers_bytes
    if (used + headerBytes > mostAnswers_bytes)
      return void this.#broken('flood', 'The peer requests answers that it does not read.')
    if (!this.#answers || used + headerBytes > this.#answers.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(mostAnswers_bytes, Math.max(4 * headerBytes, 2 * used)))
      this.#answers?.copy(larger, 0, 0, used)
      this.#answers = larger
    }
    writeHeader(this.#answers, used, type, flags, id, length)
    this.#answers_bytes += headerBytes
  }

  #sendAnswers(): void {
    if (!this.#answers || this.#answering || this.#over) return
    const leaving = this.#answers.subarray(0, this.#answers_bytes)
    this.#answers = undefined
    this.#answers_bytes = 0
    this.#answering = true
    this.#write(leaving, () => {
      this.#answering = false
      this.#sendAnswers()
    })
  }

  #toldToGo(code: number): boolean {
    if (code !== GoAway.normal)
      return this.#broken('go away', `The peer ended the session with code ${code}.`)
    this.#peerGoesAway = true
    return true
  }

  #whyNotOpen(firstBytes: number): Error | undefined {
    if (this.#over) return new MuxClosed('The session is over.')
    if (this.#peerGoesAway) return new StreamRefused('The peer takes no more streams.')
    if (this.#streams.size >= this.#mostStreams) return new StreamRefused('Too many streams are open.')
    if (this.#nextId > 0xffff_fffd) return new StreamRefused('The session has used up its streams.')
    // Our own frames must not look like a flood of the peer's.
    if (this.#congested && this.#control_bytes + firstBytes > mostControl_bytes / 2)
      return new StreamRefused('The connection is congested.')
    return undefined
  }

  #write(bytes: Buffer, done?: (error?: Error | null) => void): void {
    this.#pings.sent()
    if (!this.#carrier.write(bytes, done)) this.#congested = true
  }

  #pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    while (!this.#congested && !this.#over) {
      const stream = this.#sendQueue.shift()
      if (!stream) break
      stream.isQueued = false
      if (!stream.maySend) continue
      const parts = stream.nextFrame()
      const done = stream.whenSent()
      this.#carrier.cork()
      for (const [index, part] of parts.entries())
        this.#write(part, index + 1 < parts.length ? undefined : done)
      this.#carrier.uncork()
      if (stream.maySend) {
        stream.isQueued = true
        this.#sendQueue.push(stream)
      }
    }
    this.#pumping = false
  }

  #broken(rule: Rule, message: string): false {
    this.#end(new ProtocolError(rule, message), GoAway.protocolError)
    return false
  }

  #end(reason: Error | undefined, code?: number): void {
    if (this.#over) return
    this.#idleAtEnd_ms = this.#pings.idle_ms
    this.#over = true
    const why = reason ?? new MuxClosed('The session is over.')
    this.#pings.end(why)
    this.#silence.end()
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.cut(why)
    this.#sendQueue = []
    this.#backlog = []
    this.#answers = undefined
    this.#receiving = undefined
    this.#wake()
    this.#leave(code)
    this.#resolveEnded(reason)
  }

  /** Gives our last frame some time to leave. Input is read and dropped, so that the peer's end is seen. */
  #leave(code: number | undefined): void {
    const carrier = this.#carrier
    if (carrier.destroyed) return
    if (code !== undefined && carrier.writable) carrier.write(frame(Type.goAway, 0, 0, code))
    const limit = setTimeout(() => carrier.destroy(), linger_ms)
    limit.unref()
    carrier.once('close', () => clearTimeout(limit))
    if (carrier.writable) carrier.end()
  }
}
