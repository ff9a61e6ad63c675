// A WebSocket (RFC 6455) that carries nothing but bytes, straight on the socket: the tunnel of a device is
// one. `ws` puts every message together before it hands it over, copies every payload that is larger than a
// read, and unmasks byte by byte; on a tunnel, where the borders of messages mean nothing, that costs as much
// as all the rest. Here the payloads of a read are moved together and unmasked in the memory they came in,
// and handed on as one piece: agents in the field send frames of 4 KiB, and each would cost as much as the
// whole read. What is written leaves as it is, behind its header, with everything else that waits. One
// promise about messages, because agents of version 1 need it: a chunk that is written while nothing else
// waits is a message of its own, and nothing that is written after its callback shares a message with it.
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { SocketLost } from '../errors.ts'
import { Pings, type PingTimes } from '../pings.ts'
import { compact, mayEmit, ReceiveBuffer } from '../receive-buffer.ts'
import { isReleasing, releasesBuffers } from '../releases-buffers.ts'
import { HeaderReader, mostControl_bytes, Opcode, unmask, writeHeader } from './frames.ts'

const buffer_bytes = 256 * 1024
/** For the rest of the output after a close frame. */
const closing_ms = 5_000

const emptyPayload = Buffer.alloc(0)

/** How a WebSocket of bytes watches its peer. */
export interface BytesOptions {
  /**
   * Pings of the WebSocket itself, for streams that are always read: a peer that is silent for too long is
   * gone.
   */
  readonly ping?: PingTimes
  /** A ping of ours was answered. */
  readonly onPong?: () => void
}

export class WebSocketStream extends Duplex {
  readonly #socket: Duplex
  /** When the callback of a write is called, its bytes are in the kernel, if the socket is one. */
  readonly [releasesBuffers]: boolean
  /**
   * A client has to mask. The mask is zero: nobody chooses our bytes, and TLS encrypts them (RFC 6455 section
   * 10.3).
   */
  readonly #masks: boolean
  readonly #pings: Pings | undefined
  readonly #onPong: (() => void) | undefined
  /** Runs from the close until the socket is given up. */
  #closing: NodeJS.Timeout | undefined
  /** Our close frame was sent. */
  #sentClose = false
  /** The input has ended; and the reader knows. */
  #ended = false
  #endPushed = false

  /** Input for a reader that is busy. */
  readonly #received = new ReceiveBuffer()
  #wanted = false

  /** The header of the current frame, its opcode, and the remaining bytes of its payload. */
  readonly #head = new HeaderReader()
  #opcode = 0
  #left = 0
  /** The mask of the current frame, and the place in it of the next byte of the payload. */
  #mask = 0
  #maskAt = 0
  /** The payload of a control frame, as far as it has come. */
  #control: Buffer | undefined
  #controlHave = 0
  /** The payload of the newest unanswered ping. Earlier ones need no answer (RFC 6455 section 5.5.3). */
  #unanswered: Buffer | undefined
  /** The code of the peer's close frame. */
  #closeCode: number | undefined

  constructor(socket: Duplex, head: Buffer, role: 'client' | 'server', options: BytesOptions = {}) {
    // The readable side's own buffer holds one piece; the rest waits in #received, where small pieces are
    // joined.
    super({ allowHalfOpen: false, readableHighWaterMark: 1, writableHighWaterMark: buffer_bytes })
    this.#socket = socket
    this[releasesBuffers] = isReleasing(socket)
    this.#masks = role === 'client'
    this.#onPong = options.onPong
    if (options.ping)
      this.#pings = new Pings(
        (id) => this.#ping(id),
        (cause) => this.destroy(new SocketLost(1006, 'The peer did not answer a ping.', { cause })),
        options.ping,
      )
    if (socket instanceof Socket) socket.setNoDelay(true).setTimeout(0)
    socket.on('data', (chunk: Buffer) => this.#parse(chunk))
    socket.on('drain', () => this.#answer())
    socket.on('error', (cause) => this.#lost('The connection broke.', cause))
    socket.on('end', () => this.#lost('The connection ended without a close frame.'))
    socket.on('close', () => this.#lost('The connection was lost.'))
    // An error that comes before the stream has found its user must not end the process.
    this.on('error', () => undefined)
    if (head.length > 0) this.#parse(head)
    if (!socket.isPaused()) socket.resume()
  }

  override _read(): void {
    this.#wanted = true
    while (this.#wanted) {
      const piece = this.#received.take()
      if (!piece) break
      this.#wanted = this.push(piece)
    }
    this.#pushEnd()
    if (this.#socket.isPaused() && this.#received.size < buffer_bytes) this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.cork()
    this.#socket.write(this.#header(Opcode.binary, chunk.length))
    this.#socket.write(chunk, done)
    this.#socket.uncork()
  }

  /** All waiting bytes are one message. */
  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    let bytes = 0
    for (const { chunk } of chunks) bytes += chunk.length
    this.#socket.cork()
    this.#socket.write(this.#header(Opcode.binary, bytes))
    for (const [index, { chunk }] of chunks.entries()) {
      if (index + 1 < chunks.length) this.#socket.write(chunk)
      else this.#socket.write(chunk, done)
    }
    this.#socket.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sendClose(1000)
    this.#closeSoon()
    // The peer's close frame arrives only if the socket is read.
    this.#socket.resume()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#closing)
    this.#pings?.end(error ?? new SocketLost(1006, 'The socket was destroyed.'))
    this.#received.clear()
    this.#socket.destroy()
    done(error)
  }

  #header(opcode: number, length: number): Buffer {
    return writeHeader(opcode, length, this.#masks)
  }

  #sendClose(code: number): void {
    if (this.#sentClose || this.#socket.destroyed || this.#socket.writableEnded) return
    this.#sentClose = true
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    this.#socket.write(Buffer.concat([this.#header(Opcode.close, 2), payload]))
  }

  #ping(id: number): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(id)
    this.#socket.write(Buffer.concat([this.#header(Opcode.ping, 4), payload]))
  }

  /** One read: its payloads are gathered where the first of them lies, and passed on together. */
  #parse(chunk: Buffer): void {
    this.#pings?.heard()
    let from = 0
    let to = 0
    for (let at = 0; at < chunk.length && !this.destroyed && !this.#ended && this.#closeCode === undefined;) {
      if (this.#left === 0) {
        at = this.#head.take(chunk, at)
        if (this.#head.isWhole) this.#begin()
        continue
      }
      const end = Math.min(chunk.length, at + this.#left)
      this.#left -= end - at
      if (this.#opcode >= Opcode.close) this.#controlled(chunk, at, end)
      else {
        if (from === to) from = to = at
        else chunk.copyWithin(to, at, end)
        const next = to + end - at
        if (this.#mask !== 0) this.#maskAt = unmask(chunk, to, next, this.#mask, this.#maskAt)
        to = next
      }
      at = end
    }
    this.#deliver(chunk, from, to)
    this.#answer()
    if (this.#closeCode !== undefined) this.#onClose(this.#closeCode)
    if (this.#received.size >= buffer_bytes && !this.destroyed) this.#socket.pause()
  }

  #deliver(chunk: Buffer, from: number, to: number): void {
    if (from === to || this.destroyed || this.#ended) return
    const piece = from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to)
    if (mayEmit(this) && this.#received.size === 0) this.emit('data', piece)
    else if (this.#wanted && this.#received.size === 0) this.#wanted = this.push(compact(piece))
    else this.#received.put(piece)
  }

  #begin(): void {
    const head = this.#head
    const { length } = head
    this.#opcode = head.opcode
    this.#left = length
    this.#mask = head.mask
    this.#maskAt = 0
    head.reset()
    const control = this.#opcode >= Opcode.close
    if (head.reserved) return this.#broken(1002, 'A frame has an extension that was not agreed on.')
    if (head.isMasked === this.#masks)
      return this.#broken(1002, 'A frame is masked, or is not, against the rule.')
    if (this.#opcode === Opcode.text) return this.#broken(1003, 'The peer sent a text message.')
    if (this.#opcode > Opcode.pong || (this.#opcode > Opcode.binary && !control))
      return this.#broken(1002, 'A frame of an unknown kind.')
    if (control && (length > mostControl_bytes || !head.isFinal))
      return this.#broken(1002, 'A control frame is too long.')
    if (!Number.isSafeInteger(length)) return this.#broken(1009, 'A message is too long.')
    if (control && length === 0) this.#controlled(emptyPayload, 0, 0)
  }

  #controlled(chunk: Buffer, from: number, to: number): void {
    this.#control ??= Buffer.allocUnsafeSlow(mostControl_bytes)
    if (this.#mask !== 0) this.#maskAt = unmask(chunk, from, to, this.#mask, this.#maskAt)
    this.#controlHave += chunk.copy(this.#control, this.#controlHave, from, to)
    if (this.#left > 0) return
    const payload = this.#control.subarray(0, this.#controlHave)
    this.#controlHave = 0
    if (this.#opcode === Opcode.ping) this.#unanswered = Buffer.from(payload)
    else if (this.#opcode === Opcode.close)
      this.#closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    else if (payload.length === 4 && this.#pings?.answered(payload.readUInt32BE(0)) !== undefined)
      this.#onPong?.()
  }

  /** One answer for all pings of a read, and none while the peer does not take earlier output. */
  #answer(): void {
    const payload = this.#unanswered
    if (!payload || this.#socket.writableNeedDrain || this.#socket.destroyed || this.#socket.writableEnded)
      return
    this.#unanswered = undefined
    this.#socket.write(Buffer.concat([this.#header(Opcode.pong, payload.length), payload]))
  }

  /** The peer may still owe its close frame, or have output to read. */
  #closeSoon(): void {
    this.#closing ??= setTimeout(() => this.destroy(), closing_ms).unref()
  }

  #onClose(code: number): void {
    this.#sendClose(1000)
    this.#socket.end()
    this.#closeSoon()
    if (code !== 1000 && code !== 1001 && code !== 1005)
      return this.#finish(new SocketLost(code, `The socket was closed with code ${code}.`))
    this.#finish(undefined)
  }

  #broken(code: number, message: string): void {
    this.#sendClose(code)
    this.#socket.end()
    this.destroy(new SocketLost(code, message))
  }

  #lost(message: string, cause?: Error): void {
    this.#finish(new SocketLost(1006, message, { cause }))
  }

  /** The input has ended. The rest of it can still be read; then comes the error, if there is one. */
  #finish(error: SocketLost | undefined): void {
    if (this.destroyed || this.#ended) return
    this.#ended = true
    this.#pings?.end(error ?? new SocketLost(1000, 'The socket was closed.'))
    const unread = this.readableLength + this.#received.size
    if (error && unread === 0) return void this.destroy(error)
    if (error) this.once('end', () => this.destroy(error))
    this.#pushEnd()
    // The end must come without a reader, too.
    if (unread === 0) this.read(0)
  }

  #pushEnd(): void {
    if (!this.#ended || this.#endPushed || this.#received.size > 0) return
    this.#endPushed = true
    this.push(null)
  }
}
