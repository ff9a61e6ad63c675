// A stream that outlives its carrier: when the carrier breaks, the next one continues where it ended, and
// neither reader nor writer notices. Each end keeps what the other has not acknowledged. How ends find each
// other again is their owners' business; these hand over the new carrier with the counts of the other end.
//
// Frames on a carrier have a header of 4 bytes, a type and a number of 24 bits:
//   data    this many bytes follow
//   read    the reader has taken this many bytes more than it said before
//   finish  the last byte was sent; it counts as one byte more
//   abort   the stream is over, whatever is missing
//
// Invariants: a byte is delivered once and in order. What an end may send before the other has read it is
// `resumableWindow_bytes`, so both what waits to be sent again and what waits for a reader are bounded; all
// streams of a process together, and those of one owner, are bounded by `ResumableMemory`. The carrier is
// always read, so a reader that stops does not keep the writer of the same end from learning what was read.
import { Duplex } from 'node:stream'
import { ProtocolError, StreamLost, StreamReset } from './errors.ts'
import { mayEmit, ReceiveBuffer } from './receive-buffer.ts'
import { isReleasing, releasesBuffers } from './releases-buffers.ts'
import { ReplayBuffer } from './replay-buffer.ts'
import { ResumableMemory } from './resumable-memory.ts'

/** Sent before the other end has read any. */
export const resumableWindow_bytes = 1024 * 1024

/** The progress of the other end, when a stream gets its next carrier. */
export interface ResumableCounts {
  /** Received bytes. */
  readonly received: number
  /** Bytes that the reader has taken. */
  readonly read: number
}

/** How long a stream waits for a carrier, and what it may cost. */
export interface ResumableOptions {
  /** How long the stream waits for its next carrier, before it ends with `StreamLost`. */
  readonly grace_ms: number
  /** Shared by streams that have one bound; each has its own otherwise. */
  readonly memory?: ResumableMemory
  /** The owner of a share of the memory; absent: only the bound of all streams counts. */
  readonly owner?: string
  /**
   * The other end was silent for `stalled_ms` although it owes an answer: check the connection. Called
   * repeatedly while that is so.
   */
  readonly onStalled?: () => void
  /** Default 5 s. */
  readonly stalled_ms?: number
}

const Frame = { data: 0, read: 1, finish: 2, abort: 3 } as const
const header_bytes = 4
/** Handed to the carrier ahead of time at most, because frames in it cannot be taken back. */
const carrierQueue_bytes = 256 * 1024
/** Reads of this size are acknowledged at once, smaller ones with the next data or after this time. */
const saidAfter_bytes = 64 * 1024
const saidAfter_ms = 500
const defaultStalled_ms = 5_000
/** For every stream, however much the others hold. */
const reserve_bytes = 64 * 1024
/** For the last frame to leave. */
const linger_ms = 5_000

const ignore = (): void => undefined

function header(type: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(header_bytes)
  bytes.writeUInt32BE(type * 0x100_0000 + value, 0)
  return bytes
}

interface Waiting {
  readonly chunks: readonly Uint8Array[]
  index: number
  offset: number
  readonly done: (error?: Error | null) => void
}

/** Emits 'away' when its carrier is lost, and 'back' when it has the next one. */
export class ResumableStream extends Duplex {
  readonly [releasesBuffers] = true
  readonly #options: ResumableOptions
  readonly #memory: ResumableMemory
  readonly #share: ReturnType<ResumableMemory['join']>

  #carrier: Duplex | undefined
  /** Stops listening to the carrier. */
  #release: () => void = ignore
  #grace: NodeJS.Timeout | undefined

  // ---- what we send
  readonly #replay = new ReplayBuffer()
  /** The position of the next byte for this carrier, and the highest that any carrier got. */
  #sent = 0
  #everSent = 0
  /** The carrier is done with our memory up to here. Only carriers that release buffers report it. */
  #flushed = 0
  #carrierReleases = false
  /** The position up to which the other end has read. */
  #acknowledged = 0
  /** Whether `finish` follows the last byte. */
  #ending = false
  #waiting: Waiting | undefined
  #finished: ((error?: Error | null) => void) | undefined
  #aborted = false

  // ---- what we receive
  #received = 0
  readonly #unread = new ReceiveBuffer()
  /** The bytes that we have acknowledged as read. */
  #said = 0
  #wanted = false
  #finishReceived = false
  #endPushed = false
  /** The header of the next frame, as far as it has come, and the remaining bytes of the frame. */
  readonly #header = Buffer.alloc(header_bytes)
  #headerHas = 0
  #payloadLeft = 0

  #sayTimer: NodeJS.Timeout | undefined
  #stallTimer: NodeJS.Timeout | undefined
  /** Since when the other end owes an answer: its last frame, or the moment when all was acknowledged. */
  #owed_at = 0

  constructor(options: ResumableOptions) {
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark: 64 * 1024 })
    this.#options = options
    this.#memory = options.memory ?? new ResumableMemory(2 * resumableWindow_bytes)
    this.#share = this.#memory.join(options.owner)
    this.on('error', ignore)
  }

  /** Whether it has a carrier. */
  get attached(): boolean {
    return this.#carrier !== undefined
  }

  /** Bytes received, and bytes of ours that the other end has read. */
  get moved_bytes(): number {
    return this.#received + this.#acknowledged
  }

  get isOwed(): boolean {
    return this.#replay.end > this.#acknowledged
  }

  /** Gives up the present carrier, and returns the counts for the other end's next one. */
  detach(): ResumableCounts {
    this.#lose()
    this.#said = this.#read
    return { received: this.#received, read: this.#said }
  }

  /**
   * Continues on this carrier. `counts`: of the other end, which got ours; absent: the stream begins. Input
   * is read once `ready` has resolved, which takes the carrier's own preamble off; when it rejects, the
   * carrier is lost. Throws ProtocolError for impossible counts.
   */
  attach(
    carrier: Duplex,
    counts: ResumableCounts = { received: 0, read: 0 },
    ready?: Promise<unknown>,
  ): void {
    if (this.destroyed) return void carrier.destroy()
    if (this.#carrier) this.#lose()
    const { received, read } = counts
    const possible =
      Number.isSafeInteger(received) &&
      Number.isSafeInteger(read) &&
      read >= this.#acknowledged &&
      read <= received &&
      received <= this.#everSent
    if (!possible) {
      carrier.destroy()
      const error = new ProtocolError('credit', 'The peer counts bytes that were not sent.')
      this.destroy(error)
      throw error
    }
    clearTimeout(this.#grace)
    this.#grace = undefined
    this.#carrier = carrier
    this.#owed_at = performance.now()
    this.#sent = received
    this.#flushed = received
    this.#carrierReleases = isReleasing(carrier)
    this.#headerHas = 0
    this.#payloadLeft = 0
    this.#listen(carrier, ready)
    this.#progress(read)
    this.#pump()
    this.emit('back')
  }

  // ---- what Node asks

  override _read(): void {
    this.#wanted = true
    this.#hand()
  }

  override read(size?: number): unknown {
    const bytes: unknown = super.read(size)
    this.#sayLater()
    return bytes
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#waiting = { chunks: [chunk], index: 0, offset: 0, done }
    this.#fill()
    this.#pump()
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#waiting = { chunks: chunks.map(({ chunk }) => chunk), index: 0, offset: 0, done }
    this.#fill()
    this.#pump()
  }

  /** Done when the other end has read everything. */
  override _final(done: (error?: Error | null) => void): void {
    this.#ending = true
    this.#finished = done
    this.#pump()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#grace)
    clearTimeout(this.#sayTimer)
    clearTimeout(this.#stallTimer)
    const carrier = this.#carrier
    this.#release()
    this.#carrier = undefined
    if (carrier) {
      if (!this.#isComplete && !this.#aborted && carrier.writable) carrier.write(header(Frame.abort, 0))
      leave(carrier)
    }
    this.#memory.replay(this.#share, -this.#replay.held_bytes)
    this.#replay.clear()
    this.#unread.clear()
    this.#memory.unread(this.#share, this, 0)
    this.#memory.leave(this.#share)
    this.#waiting?.done(error ?? new StreamLost('The stream was destroyed.'))
    this.#waiting = undefined
    done(error)
  }

  get #isComplete(): boolean {
    return this.#finishReceived && this.#ending && this.#acknowledged > this.#replay.end
  }

  // ---- the carrier

  #listen(carrier: Duplex, ready: Promise<unknown> | undefined): void {
    const onData = (chunk: Buffer): void => this.#take(chunk)
    const onDrain = (): void => this.#pump()
    const onLost = (): void => {
      if (this.#carrier === carrier) this.#lose()
    }
    const read = (): void => {
      if (this.#carrier === carrier) carrier.on('data', onData)
    }
    carrier.on('drain', onDrain)
    carrier.on('end', onLost)
    carrier.on('close', onLost)
    carrier.on('error', onLost)
    this.#release = () => {
      carrier.off('data', onData)
      carrier.off('drain', onDrain)
      carrier.off('end', onLost)
      carrier.off('close', onLost)
      carrier.off('error', onLost)
      carrier.on('error', ignore)
      this.#release = ignore
    }
    if (ready) ready.then(read, onLost)
    else read()
    if (carrier.destroyed) queueMicrotask(onLost)
  }

  #lose(): void {
    const carrier = this.#carrier
    if (!carrier) return
    this.#release()
    this.#carrier = undefined
    carrier.destroy()
    this.#replay.disown()
    clearTimeout(this.#sayTimer)
    this.#sayTimer = undefined
    clearTimeout(this.#stallTimer)
    this.#stallTimer = undefined
    if (this.destroyed) return
    this.#grace = setTimeout(
      () => this.destroy(new StreamLost('The other end did not reconnect in time.')),
      this.#options.grace_ms,
    )
    this.#grace.unref()
    this.#fill()
    this.emit('away')
  }

  // ---- sending

  #fill(): void {
    const waiting = this.#waiting
    if (!waiting) return
    const before = this.#replay.held_bytes
    while (waiting.index < waiting.chunks.length) {
      const chunk = waiting.chunks[waiting.index]
      if (!chunk) break
      waiting.offset += this.#replay.put(chunk, waiting.offset, this.#room)
      if (waiting.offset < chunk.length) break
      waiting.index += 1
      waiting.offset = 0
    }
    this.#memory.replay(this.#share, this.#replay.held_bytes - before)
    if (waiting.index < waiting.chunks.length) return
    this.#waiting = undefined
    waiting.done()
  }

  /** Bytes that fit now. A carrier gets only what it takes soon, so that the writer feels its pace. */
  get #room(): number {
    const kept = this.#replay.end - this.#acknowledged
    const isTight = this.#memory.isTight(this.#share)
    const room = (isTight ? reserve_bytes : resumableWindow_bytes) - kept
    const unsent = this.#replay.end - this.#sent
    return Math.max(0, this.#carrier ? Math.min(room, carrierQueue_bytes - unsent) : room)
  }

  /** Sends pending bytes, as long as the carrier takes them. */
  #pump(): void {
    const carrier = this.#carrier
    if (!carrier?.writable) return
    const hasMore = this.#sent < this.#replay.end
    const finishes = this.#ending && this.#waiting === undefined && this.#sent <= this.#replay.end
    if (!hasMore && !finishes) return
    if (this.#sent <= this.#acknowledged) this.#owed_at = performance.now()
    carrier.cork()
    this.#sayNow(carrier)
    while (this.#sent < this.#replay.end && carrier.writableLength < carrierQueue_bytes) {
      const piece = this.#replay.at(this.#sent)
      const behind = (this.#sent += piece.length)
      carrier.write(header(Frame.data, piece.length))
      carrier.write(piece, (error) => {
        if (!error && this.#carrierReleases && this.#carrier === carrier) this.#flushed = behind
      })
    }
    if (finishes && this.#sent === this.#replay.end) {
      carrier.write(header(Frame.finish, 0))
      this.#sent += 1
    }
    this.#everSent = Math.max(this.#everSent, this.#sent)
    carrier.uncork()
    this.#watch()
    if (!this.#waiting) return
    // Sending has made room for more of the write that waits.
    const { end } = this.#replay
    this.#fill()
    if (this.#replay.end > end) this.#pump()
  }

  #progress(position: number): void {
    this.#acknowledged = position
    const before = this.#replay.held_bytes
    this.#replay.drop(Math.min(position, this.#replay.end), this.#flushed)
    this.#memory.replay(this.#share, this.#replay.held_bytes - before)
    this.#fill()
    if (this.#ending && position > this.#replay.end) {
      const finished = this.#finished
      this.#finished = undefined
      finished?.()
    }
  }

  /** While something is unacknowledged, the other end must answer now and then. */
  #watch(after_ms = this.#options.stalled_ms ?? defaultStalled_ms): void {
    const { onStalled, stalled_ms = defaultStalled_ms } = this.#options
    if (!onStalled || this.#stallTimer || !this.#carrier || this.#sent <= this.#acknowledged) return
    this.#stallTimer = setTimeout(() => {
      this.#stallTimer = undefined
      const left_ms = this.#owed_at + stalled_ms - performance.now()
      if (left_ms <= 0 && this.#carrier && this.#sent > this.#acknowledged) onStalled()
      this.#watch(left_ms > 0 ? Math.ceil(left_ms) : stalled_ms)
    }, after_ms)
    this.#stallTimer.unref()
  }

  // ---- receiving

  #take(chunk: Buffer): void {
    this.#owed_at = performance.now()
    let at = 0
    while (at < chunk.length && this.#carrier) {
      if (this.#payloadLeft > 0) {
        const piece = chunk.subarray(at, at + this.#payloadLeft)
        at += piece.length
        this.#payloadLeft -= piece.length
        this.#deliver(piece)
        continue
      }
      if (this.#headerHas === 0 && chunk.length - at >= header_bytes) {
        this.#onHeader(chunk.readUInt32BE(at))
        at += header_bytes
        continue
      }
      const part = chunk.copy(this.#header, this.#headerHas, at, at + header_bytes - this.#headerHas)
      at += part
      this.#headerHas += part
      if (this.#headerHas < header_bytes) return
      this.#headerHas = 0
      this.#onHeader(this.#header.readUInt32BE(0))
    }
    this.#sayLater()
  }

  #onHeader(word: number): void {
    const type = word >>> 24
    const value = word & 0xff_ffff
    if (type === Frame.data) {
      if (this.#finishReceived) return this.#broken('finished twice', 'Data came after the end.')
      if (this.#received + value > this.#said + resumableWindow_bytes)
        return this.#broken('window', 'More bytes than the window allowed.')
      this.#payloadLeft = value
    } else if (type === Frame.read) {
      const position = this.#acknowledged + value
      if (position > this.#sent) return this.#broken('credit', 'The peer counts bytes that were not sent.')
      this.#progress(position)
      this.#pump()
    } else if (type === Frame.finish) {
      if (this.#finishReceived) return this.#broken('finished twice', 'A stream was finished twice.')
      this.#finishReceived = true
      this.#received += 1
      this.#pushEnd()
    } else if (type === Frame.abort) {
      this.#aborted = true
      this.destroy(this.#isComplete ? undefined : new StreamReset('The peer reset the stream.'))
    } else this.#broken('type', `A frame of type ${type}.`)
  }

  #broken(rule: ProtocolError['rule'], message: string): void {
    this.destroy(new ProtocolError(rule, message))
  }

  #deliver(piece: Buffer): void {
    this.#received += piece.length
    if (mayEmit(this) && this.#unread.size === 0) this.emit('data', piece)
    else {
      this.#unread.put(piece)
      if (this.#wanted) this.#hand()
      else this.#memory.unread(this.#share, this, this.#unread.held)
    }
  }

  #hand(): void {
    const before = this.#unread.held
    while (this.#wanted) {
      const piece = this.#unread.take()
      if (!piece) break
      this.#wanted = this.push(piece)
    }
    if (this.#unread.held < before) this.#memory.unread(this.#share, this, this.#unread.held)
    this.#pushEnd()
  }

  #pushEnd(): void {
    if (!this.#finishReceived || this.#endPushed || this.#unread.size > 0) return
    this.#endPushed = true
    this.push(null)
  }

  get #read(): number {
    return this.#received - this.#unread.size - this.readableLength
  }

  /** Acknowledges much at once, the rest with the next data or after a while. */
  #sayLater(): void {
    const carrier = this.#carrier
    const unsaid = this.#read - this.#said
    if (!carrier || unsaid === 0) return
    if (unsaid >= saidAfter_bytes || this.#finishReceived) return this.#sayNow(carrier)
    this.#sayTimer ??= setTimeout(() => {
      this.#sayTimer = undefined
      if (this.#carrier) this.#sayNow(this.#carrier)
    }, saidAfter_ms).unref()
  }

  #sayNow(carrier: Duplex): void {
    const unsaid = this.#read - this.#said
    if (unsaid === 0 || !carrier.writable) return
    this.#said += unsaid
    clearTimeout(this.#sayTimer)
    this.#sayTimer = undefined
    carrier.write(header(Frame.read, unsaid))
  }
}

/** Lets the last frame leave, and reads on, so that the end of the carrier is seen. */
function leave(carrier: Duplex): void {
  if (carrier.destroyed) return
  const limit = setTimeout(() => carrier.destroy(), linger_ms)
  limit.unref()
  carrier.once('close', () => clearTimeout(limit))
  carrier.on('error', ignore)
  carrier.resume()
  if (carrier.writable) carrier.end()
}
