// One stream of a session, as a Duplex of Node that can be half closed. Its two invariants: what waits for
// our reader is never more than the window that we granted, because credit is given for what was read and not
// for what came; and a write is done when the carrier is done with its last byte, so that the writer's pace
// is that of the peer's window and of the carrier, and its memory is the writer's again. The session decides
// whose turn it is to send.
import { Duplex } from 'node:stream'
import { MuxClosed, NegotiationFailed } from './errors.ts'
import { Flag, frame, initialWindow_bytes, mostPayload_bytes, Type } from './frames.ts'
import { compact, mayEmit, ReceiveBuffer } from './receive-buffer.ts'
import { releasesBuffers } from './releases-buffers.ts'

export interface StreamHost {
  /** Sends a frame without payload, ahead of waiting data. */
  control(bytes: Buffer): void
  /** The stream has bytes that it may send: it wants a turn. */
  ready(stream: MuxStream): void
  forget(stream: MuxStream): void
  /** The stream's unread bytes hold this much more memory, or less. May destroy it. */
  holds(stream: MuxStream, more_bytes: number): void
  readonly [releasesBuffers]: boolean
}

/** A peer that is silent for this long after we have finished our side is reset. */
const silentPeer_ms = 5 * 60_000

const ignore = (): void => undefined

export class MuxStream extends Duplex {
  readonly id: number
  /** In the queue of streams that wait to send. */
  isQueued = false

  readonly #host: StreamHost
  /** The most that the peer may send: unread here and on its way. */
  #window: number
  #granted = initialWindow_bytes
  readonly #received = new ReceiveBuffer()
  #wanted = false
  /** The bytes that the peer must send first, hidden from the reader. Undefined when they have come. */
  #expected: Uint8Array | undefined
  #credit = initialWindow_bytes

  #out: readonly Buffer[] = []
  #outIndex = 0
  #outOffset = 0
  #outBytes = 0
  #outDone: ((error?: Error | null) => void) | undefined

  #finSent = false
  #finReceived = false
  #endPushed = false
  /** The peer has reset the stream or is gone: nothing more is sent. */
  #cut = false
  #silence: NodeJS.Timeout | undefined
  #heard = false

  constructor(id: number, host: StreamHost, window_bytes: number) {
    // The readable side's own buffer holds one piece; the rest waits in #received, where small pieces are
    // joined.
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark: 64 * 1024 })
    this.id = id
    this.#host = host
    this.#window = window_bytes
    // Readers, writers and listeners of 'close' learn of an error. It must not end the process before the
    // stream has a user.
    this.on('error', ignore)
  }

  // ---- what the session says

  /** How much more than the initial window the peer may send. */
  grant(window_bytes: number): number {
    this.#window = window_bytes
    const extra = Math.max(0, window_bytes - this.#granted - this.#unread)
    this.#granted += extra
    return extra
  }

  mayReceive(length: number): boolean {
    return length <= this.#granted
  }

  /** Memory of unread bytes. */
  get held_bytes(): number {
    return this.#received.held
  }

  get finReceived(): boolean {
    return this.#finReceived
  }

  receive(bytes: Buffer): void {
    if (this.destroyed) return
    this.#heard = true
    this.#granted -= bytes.length
    if (this.#expected) {
      const rest = this.#takeExpected(bytes, this.#expected)
      if (rest.length > 0) this.#pass(rest)
    } else this.#pass(bytes)
    this.#giveCredit()
  }

  /** The peer must begin with these bytes. They are taken off the stream; others reset it. */
  expect(bytes: Uint8Array): void {
    this.#expected = bytes
  }

  #takeExpected(bytes: Buffer, expected: Uint8Array): Buffer {
    const length = Math.min(bytes.length, expected.length)
    const isSame = bytes.subarray(0, length).equals(expected.subarray(0, length))
    this.#expected = length < expected.length ? expected.subarray(length) : undefined
    if (isSame) return bytes.subarray(length)
    this.destroy(new NegotiationFailed('The peer does not begin as it should.'))
    return Buffer.alloc(0)
  }

  #pass(bytes: Buffer): void {
    if (mayEmit(this) && this.#received.size === 0) this.emit('data', bytes)
    else if (this.#wanted && this.#received.size === 0) this.#wanted = this.push(compact(bytes))
    else {
      const before = this.#received.held
      this.#received.put(bytes)
      this.#host.holds(this, this.#received.held - before)
    }
  }

  /** False when the sum exceeds the largest window. */
  credit(delta: number): boolean {
    this.#heard = true
    this.#credit += delta
    if (this.#credit > 0xffff_ffff) return false
    if (this.#outBytes > 0) this.#host.ready(this)
    return true
  }

  finish(): void {
    this.#finReceived = true
    if (this.#finSent) this.#done()
    this.#pushEnd()
  }

  /**
   * The peer has reset the stream, or the session is over. The reader still gets bytes that are all here, and
   * the error after them, unless a writer waits for it.
   */
  cut(error: Error): void {
    this.#cut = true
    const complete = this.#finReceived && this.#unread > 0 && this.#outBytes === 0
    if (complete) this.once('end', () => this.destroy(error))
    else this.destroy(error)
  }

  spend(length: number): void {
    this.#credit -= length
  }

  get maySend(): boolean {
    return this.#outBytes > 0 && this.#credit > 0 && !this.destroyed
  }

  /** Header and payload, in parts that are not copied. */
  nextFrame(): Buffer[] {
    const length = Math.min(this.#outBytes, this.#credit, mostPayload_bytes)
    const parts = [frame(Type.data, 0, this.id, length)]
    for (let left = length; left > 0;) {
      const source = this.#out[this.#outIndex]!
      const part = source.subarray(this.#outOffset, this.#outOffset + left)
      parts.push(part)
      left -= part.length
      this.#outOffset += part.length
      if (this.#outOffset === source.length) {
        this.#outIndex++
        this.#outOffset = 0
      }
    }
    this.#credit -= length
    this.#outBytes -= length
    return parts
  }

  /** Called when the carrier is done with the frame; undefined: more of the same write follows. */
  whenSent(): ((error?: Error | null) => void) | undefined {
    if (this.#outBytes > 0) return undefined
    return (error) => {
      // A carrier that fails ends the session, and that ends us.
      const done = this.#outDone
      if (error || !done) return
      this.#outDone = undefined
      this.#out = []
      done()
    }
  }

  get [releasesBuffers](): boolean {
    return this.#host[releasesBuffers]
  }

  // ---- what Node asks

  override _read(): void {
    this.#wanted = true
    const before = this.#received.held
    while (this.#wanted) {
      const piece = this.#received.take()
      if (!piece) break
      this.#wanted = this.push(piece)
    }
    if (this.#received.held < before) this.#host.holds(this, this.#received.held - before)
    this.#pushEnd()
  }

  /**
   * Here and not in `_read`, which Node calls before the bytes have left, and again only when others come.
   */
  override read(size?: number): unknown {
    const bytes: unknown = super.read(size)
    this.#giveCredit()
    return bytes
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], chunk.length, done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    let bytes = 0
    const out = chunks.map(({ chunk }) => {
      bytes += chunk.length
      return chunk
    })
    this.#send(out, bytes, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    // The error comes after what is left to read.
    if (this.#cut) return done()
    this.#finSent = true
    this.#host.control(frame(Type.windowUpdate, Flag.fin, this.id, 0))
    if (this.#finReceived) this.#done()
    else this.#watchSilence()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#silence)
    if (!this.#cut && !(this.#finSent && this.#finReceived))
      this.#host.control(frame(Type.windowUpdate, Flag.rst, this.id, 0))
    this.#host.forget(this)
    const held = this.#received.held
    this.#received.clear()
    if (held > 0) this.#host.holds(this, -held)
    this.#out = []
    this.#outBytes = 0
    this.#outDone?.(error ?? new MuxClosed('The stream was destroyed.'))
    this.#outDone = undefined
    done(error)
  }

  // ----

  get #unread(): number {
    return this.#received.size + this.readableLength
  }

  /** At half a window. */
  #giveCredit(): void {
    if (this.#finReceived || this.#cut || this.destroyed) return
    const read = this.#window - this.#granted - this.#unread
    if (read < this.#window / 2) return
    this.#granted += read
    this.#host.control(frame(Type.windowUpdate, 0, this.id, read))
  }

  #pushEnd(): void {
    if (!this.#finReceived || this.#endPushed || this.#received.size > 0) return
    this.#endPushed = true
    this.push(null)
  }

  #send(out: readonly Buffer[], bytes: number, done: (error?: Error | null) => void): void {
    if (bytes === 0 || this.#cut) return done(this.#cut ? new MuxClosed('The stream is gone.') : null)
    this.#out = out
    this.#outIndex = 0
    this.#outOffset = 0
    this.#outBytes = bytes
    this.#outDone = done
    if (this.#credit > 0) this.#host.ready(this)
  }

  /** Both sides have finished: the session can forget the stream, though its reader may not be done. */
  #done(): void {
    clearTimeout(this.#silence)
    this.#host.forget(this)
  }

  /** The only timer of a stream, and only while we have half closed it. */
  #watchSilence(): void {
    this.#heard = false
    this.#silence = setTimeout(() => {
      // Our own slow reader is no fault of the peer.
      if (this.#heard || this.#unread > 0) this.#watchSilence()
      else this.destroy(new MuxClosed('The peer did not finish its side of the stream.'))
    }, silentPeer_ms)
    this.#silence.unref()
  }
}
