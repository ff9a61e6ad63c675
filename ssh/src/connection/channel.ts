// One channel (RFC 4254 section 5): two streams of bytes with credit, and requests. The credit that the peer
// gets follows the pace of the reader: taking a chunk is what opens the window again, so that a slow
// reader holds at most one window of bytes and the peer waits. What waits is counted in the connection's
// account as the memory it is, until the reader asks for the next chunk. Writing waits for the peer's window
// and for the socket. Data, EOF and CLOSE leave in the order in which they were asked for; requests do not
// wait behind data, because a signal must pass a full window.
import { ChannelClosed, ProtocolError } from '../errors.ts'
import { compact, heldBy, request_bytes, type Account } from '../memory.ts'
import { Message } from '../messages.ts'
import { queue } from '../queue.ts'
import { message, type Writer } from '../wire.ts'
import { orderedAnswers } from './answers.ts'
import { ReceivedData } from './received-data.ts'
import type { Channel, ChannelRequest, Chunk } from './types.ts'
import type { Window } from './windows.ts'

export type { Channel, ChannelRequest, Chunk } from './types.ts'

/** The side of a channel that takes messages of the connection. */
export interface ConnectionChannel extends Channel {
  onData(bytes: Buffer, stream: number): void
  onAdjust(bytes: number): void
  onEof(): void
  /** True when both sides have closed. */
  onClose(): void
  onRequest(type: string, wantReply: boolean, payload: Buffer): void
  onReply(success: boolean): void
  /** An early channel that is refused. Nothing is read from it or sent on it. */
  onRefused(error: Error): void
  /** Received data can still be read, unless it is dropped. */
  onLost(error: Error, drop: boolean): void
  /** Sends one waiting packet; true: more could leave. Only while the transport is not congested. */
  sendOne(): boolean
}

export interface ChannelContext {
  readonly type: string
  readonly remoteId: number
  /** The peer's window, and largest packet. */
  readonly window: Window
  readonly packet_bytes: number
  /** Our window. */
  readonly remoteWindow_bytes: number
  readonly remotePacket_bytes: number
  /** The peer has confirmed the channel. */
  readonly confirmed: boolean
  /** The account of what waits here. */
  readonly memory: Account
  send(written: Writer): void
  sendData(stream: number, bytes: Uint8Array): void
  /** Declares that the last message is no longer referenced. */
  releaseMessage(): void
  /** Data should wait. */
  readonly congested: boolean
  /** Bytes have reached the reader here, or left for the peer. */
  delivered(bytes: number): void
  /** Output waits in this channel. */
  ready(): void
  /** Both sides have closed. */
  forget(): void
}

/** Unanswered requests of the peer. */
const mostRequests = 256
/** A chunk for a waiting reader is not copied out of a smaller buffer. */
const small_bytes = 4_096
const largestWindow = 0xffff_ffff
const oneReader = 'Only one can read from a channel at a time.'

type Outgoing =
  | {
      readonly kind: 'data'
      bytes: Uint8Array
      readonly stream: number
      readonly done: PromiseWithResolvers<void>
    }
  | { readonly kind: 'eof' | 'close'; readonly done: PromiseWithResolvers<void> }

/** The reader that takes all of the data. */
interface Taker extends PromiseWithResolvers<void> {
  take(chunk: Chunk): Promise<void> | void
  /** The last chunk is still in use. */
  isBusy: boolean
}

interface HeldRequest extends ChannelRequest {
  release(): void
}

export function openChannel(outside: ChannelContext): ConnectionChannel {
  return new SshChannel(outside)
}

class SshChannel implements ConnectionChannel {
  readonly type: string
  readonly requests = queue<HeldRequest>(mostRequests, (asked) => {
    if (!asked.wantReply) asked.release()
  })
  readonly #outside: ChannelContext
  readonly #closed = Promise.withResolvers<void>()
  readonly #answers = orderedAnswers<boolean>((success) => {
    if (!this.#sentClose)
      this.#send(message(success ? Message.channelSuccess : Message.channelFailure).uint32(this.#remoteId))
  })

  /** Unread data, and the reader that waits for some. */
  readonly #received = new ReceivedData()
  #reader: PromiseWithResolvers<Chunk | undefined> | undefined
  #taker: Taker | undefined
  #credit_bytes: number
  /** Read, and not yet credited to the peer. */
  #unpaid_bytes = 0
  /** Memory of the reader's chunk, until it asks for another. */
  #lent_bytes = 0
  /** Memory of unanswered requests. */
  #asked_bytes = 0
  #gotEof = false
  #gotClose = false
  /** Why the connection ended before the channel did. */
  #lost: Error | undefined

  /** Output, in order. */
  readonly #outgoing: Outgoing[] = []
  /** Our unanswered requests. */
  readonly #replies: PromiseWithResolvers<boolean>[] = []
  /** Unanswered requests without a waiter: the channel is being closed. */
  #unheard = 0
  #remoteWindow_bytes: number
  /** Our side has asked for EOF or CLOSE; and CLOSE was sent. */
  #endWanted = false
  #closeWanted = false
  #sentClose = false

  constructor(outside: ChannelContext) {
    this.#outside = outside
    this.type = outside.type
    this.#credit_bytes = outside.window.size_bytes
    this.#remoteWindow_bytes = outside.remoteWindow_bytes
  }

  get closed(): Promise<void> {
    return this.#closed.promise
  }

  async read(): Promise<Chunk | undefined> {
    const chunk = this.#received.shift()
    this.#lend(chunk?.held_bytes ?? 0)
    if (chunk) {
      this.#giveCredit(chunk.bytes.length)
      this.#outside.delivered(chunk.bytes.length)
      return chunk
    }
    if (this.#gotEof || this.#gotClose) return undefined
    if (this.#lost) throw this.#lost
    if (this.#reader || this.#taker) throw new Error(oneReader)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  async readAll(take: Taker['take']): Promise<void> {
    if (this.#reader || this.#taker) throw new Error(oneReader)
    this.#lend(0)
    this.#taker = { take, isBusy: false, ...Promise.withResolvers<void>() }
    const { promise } = this.#taker
    this.#handOut(this.#taker)
    return promise
  }

  async write(bytes: Uint8Array, stream = 0): Promise<void> {
    await this.send(bytes, stream)
  }

  send(bytes: Uint8Array, stream = 0): Promise<void> | void {
    const sent = this.sendNow(bytes, stream)
    if (sent === bytes.length) return undefined
    const done = Promise.withResolvers<void>()
    this.#outgoing.push({ kind: 'data', bytes: bytes.subarray(sent), stream, done })
    this.#outside.ready()
    return done.promise
  }

  sendNow(bytes: Uint8Array, stream = 0): number {
    if (this.#lost) throw this.#lost
    if (this.#endWanted || this.#closeWanted || this.#gotClose)
      throw new ChannelClosed('The channel is closed for writing.')
    let sent = 0
    // Nothing waits that this could overtake.
    while (sent < bytes.length && this.#outgoing.length === 0 && !this.#outside.congested) {
      const size = this.#sendData(sent === 0 ? bytes : bytes.subarray(sent), stream)
      if (size === 0) break
      sent += size
    }
    return sent
  }

  async end(): Promise<void> {
    if (this.#endWanted || this.#closeWanted || this.#gotClose || this.#lost) return
    this.#endWanted = true
    await this.#sendLater('eof')
  }

  async close(when?: 'now'): Promise<void> {
    if (when === 'now' && !this.#sentClose) this.#dropOutgoing(new ChannelClosed('The channel was closed.'))
    if ((!this.#closeWanted || when === 'now') && !this.#sentClose && !this.#gotClose && !this.#lost) {
      this.#closeWanted = true
      await this.#sendLater('close')
    }
    // Later input is dropped.
    this.#dropReceived()
    await this.#closed.promise
  }

  async request(
    type: string,
    payload: Uint8Array = Buffer.alloc(0),
    wantReply: boolean = false,
  ): Promise<boolean> {
    if (this.#lost) throw this.#lost
    if (this.#sentClose || this.#gotClose) throw new ChannelClosed('The channel is closed.')
    this.#send(
      message(Message.channelRequest, 64 + payload.length)
        .uint32(this.#remoteId)
        .string(type)
        .boolean(wantReply)
        .raw(payload),
    )
    if (!wantReply) return true
    const reply = Promise.withResolvers<boolean>()
    this.#replies.push(reply)
    return reply.promise
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
    for (;;) {
      const chunk = await this.read()
      if (!chunk) return
      yield chunk
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // ---- what the connection tells

  onData(bytes: Buffer, stream: number): void {
    if (this.#gotEof || this.#gotClose) throw new ProtocolError('Data came after the end of a channel.')
    if (bytes.length > this.#outside.packet_bytes)
      throw new ProtocolError('A packet of data is larger than was allowed.')
    if (bytes.length > this.#credit_bytes) throw new ProtocolError('More data came than the window allows.')
    this.#credit_bytes -= bytes.length
    if (bytes.length === 0) return
    // Nobody will read it, but the peer must not be stuck before it learns that we close.
    if (this.#closeWanted) return this.#giveCredit(bytes.length)
    const taker = this.#taker
    if (taker && !taker.isBusy) {
      this.#handTo(taker, { bytes, stream })
      if (!taker.isBusy) this.#outside.releaseMessage()
      return
    }
    const reader = this.#reader
    if (!reader) return this.#outside.memory.hold(this.#received.push(bytes, stream))
    this.#reader = undefined
    this.#giveCredit(bytes.length)
    this.#outside.delivered(bytes.length)
    const chunk = bytes.buffer.byteLength <= small_bytes ? bytes : compact(bytes)
    this.#outside.memory.hold(heldBy(chunk))
    this.#lend(heldBy(chunk))
    reader.resolve({ bytes: chunk, stream })
  }

  onAdjust(bytes: number): void {
    this.#remoteWindow_bytes += bytes
    if (this.#remoteWindow_bytes > largestWindow) throw new ProtocolError('A window grew too large.')
    if (this.#outgoing.length > 0) this.#outside.ready()
  }

  onEof(): void {
    if (this.#gotEof || this.#gotClose) throw new ProtocolError('A second EOF came.')
    this.#gotEof = true
    this.#endReading()
  }

  onClose(): void {
    if (this.#gotClose) throw new ProtocolError('A second CLOSE came.')
    this.#gotClose = true
    this.#endReading()
    this.#dropOutgoing(new ChannelClosed('The peer closed the channel.'))
    if (this.#sentClose) this.#forget()
    else this.#sendClose()
  }

  onRequest(type: string, wantReply: boolean, payload: Buffer): void {
    const { memory } = this.#outside
    const kept = compact(payload)
    let held_bytes = request_bytes + heldBy(kept)
    const release = (): void => {
      // Memory of the channel was released with it.
      if (this.#asked_bytes === 0) return
      this.#asked_bytes -= held_bytes
      memory.release(held_bytes)
      held_bytes = 0
    }
    const reply = wantReply ? this.#answers.expect(release) : () => undefined
    this.#asked_bytes += held_bytes
    memory.hold(held_bytes)
    if (this.requests.push({ type, wantReply, payload: kept, reply, release })) return
    reply(false)
    release()
  }

  onReply(success: boolean): void {
    if (this.#unheard > 0) {
      this.#unheard -= 1
      return
    }
    const reply = this.#replies.shift()
    if (!reply) throw new ProtocolError('A reply came to no request.')
    reply.resolve(success)
  }

  onLost(error: Error, drop: boolean): void {
    this.#lost = error
    if (drop) this.#dropReceived()
    this.#reader?.reject(error)
    this.#reader = undefined
    if (this.#taker) this.#handOut(this.#taker)
    this.#dropOutgoing(error)
    this.requests.end()
    this.#outside.window.close()
    this.#closed.resolve()
  }

  onRefused(error: Error): void {
    this.onLost(error, true)
    this.#outside.memory.release(this.#asked_bytes)
    this.#asked_bytes = 0
  }

  sendOne(): boolean {
    const item = this.#outgoing[0]
    if (!item) return false
    // A peer would answer CLOSE with CLOSE at once, and with the confirmation after that.
    if (item.kind === 'close' && !this.#outside.confirmed) return false
    if (item.kind === 'data') {
      const size = this.#sendData(item.bytes, item.stream)
      if (size < item.bytes.length) {
        item.bytes = item.bytes.subarray(size)
        return size > 0 && this.#remoteWindow_bytes > 0
      }
    } else if (item.kind === 'eof') this.#send(message(Message.channelEof).uint32(this.#remoteId))
    else this.#sendClose()
    this.#outgoing.shift()
    item.done.resolve()
    return this.#outgoing.length > 0
  }

  // ----

  get #remoteId(): number {
    return this.#outside.remoteId
  }

  #send(written: Writer): void {
    this.#outside.send(written)
  }

  /** Sends one packet of as many bytes as may leave; returns their number. */
  #sendData(bytes: Uint8Array, stream: number): number {
    const size = Math.min(bytes.length, this.#remoteWindow_bytes, this.#outside.remotePacket_bytes)
    if (size === 0) return 0
    const part = size === bytes.length ? bytes : bytes.subarray(0, size)
    this.#outside.sendData(stream, part)
    this.#remoteWindow_bytes -= size
    this.#outside.delivered(size)
    return size
  }

  /** Gives the taker waiting data, or the end. */
  #handOut(taker: Taker): void {
    while (!taker.isBusy && this.#taker === taker) {
      const chunk = this.#received.shift()
      if (!chunk) return this.#endTaking(taker)
      this.#outside.memory.release(chunk.held_bytes)
      this.#handTo(taker, chunk)
    }
  }

  #handTo(taker: Taker, chunk: Chunk): void {
    this.#giveCredit(chunk.bytes.length)
    this.#outside.delivered(chunk.bytes.length)
    try {
      const work = taker.take(chunk)
      if (work) this.#awaitTaker(taker, chunk, work)
    } catch (error) {
      this.#taker = undefined
      taker.reject(error)
    }
  }

  #awaitTaker(taker: Taker, chunk: Chunk, work: Promise<void>): void {
    taker.isBusy = true
    this.#lend(heldBy(chunk.bytes))
    this.#outside.memory.hold(this.#lent_bytes)
    work.then(
      () => {
        taker.isBusy = false
        this.#lend(0)
        this.#handOut(taker)
      },
      (error: unknown) => {
        this.#lend(0)
        this.#taker = undefined
        taker.reject(error)
      },
    )
  }

  #endTaking(taker: Taker): void {
    if (!this.#gotEof && !this.#gotClose && !this.#lost) return
    this.#taker = undefined
    if (this.#gotEof || this.#gotClose) taker.resolve()
    else taker.reject(this.#lost)
  }

  /** Credits the peer for read bytes, at once or when there is memory. */
  #giveCredit(bytes: number): void {
    const { memory } = this.#outside
    this.#unpaid_bytes += bytes
    if (!memory.crowded) return this.#adjustWindow()
    // One callback is enough for all that is read until then.
    if (this.#unpaid_bytes === bytes) memory.whenRoom(() => this.#adjustWindow())
  }

  #adjustWindow(): void {
    const bytes = this.#unpaid_bytes
    this.#unpaid_bytes = 0
    if (bytes === 0 || this.#gotEof || this.#gotClose || this.#sentClose || this.#lost) return
    const { window, memory } = this.#outside
    const credit = window.taken(bytes, !memory.tight)
    if (credit === 0) return
    this.#credit_bytes += credit
    this.#send(message(Message.channelWindowAdjust).uint32(this.#remoteId).uint32(credit))
  }

  /** The reader is done with its chunk, and has another. */
  #lend(held_bytes: number): void {
    const before = this.#lent_bytes
    this.#lent_bytes = held_bytes
    if (before > 0) this.#outside.memory.release(before)
  }

  #endReading(): void {
    this.#reader?.resolve(undefined)
    this.#reader = undefined
    if (this.#taker) this.#handOut(this.#taker)
  }

  async #sendLater(kind: 'eof' | 'close'): Promise<void> {
    const done = Promise.withResolvers<void>()
    this.#outgoing.push({ kind, done })
    this.#outside.ready()
    await done.promise
  }

  #sendClose(): void {
    this.#sentClose = true
    this.#send(message(Message.channelClose).uint32(this.#remoteId))
    if (this.#gotClose) this.#forget()
  }

  #dropOutgoing(error: Error): void {
    for (const item of this.#outgoing.splice(0)) {
      if (item.kind === 'data') item.done.reject(error)
      else item.done.resolve()
    }
    this.#unheard += this.#replies.length
    for (const reply of this.#replies.splice(0)) reply.reject(error)
  }

  #dropReceived(): void {
    this.#outside.memory.release(this.#received.clear())
    this.#lend(0)
  }

  #forget(): void {
    this.requests.end()
    this.#outside.memory.release(this.#asked_bytes)
    this.#asked_bytes = 0
    this.#outside.window.close()
    this.#outside.forget()
    this.#closed.resolve()
  }
}
