// A WebSocket (RFC 6455) that carries nothing but bytes, straight on the socket: what the tunnel of a device
// is. `ws` puts every message together before it hands it over, copies every payload that is larger than a
// read, and unmasks byte by byte; on a tunnel, where the borders of messages mean nothing, that costs as much
// as all the rest. Here the payloads of a read are moved together and unmasked in the memory they came in,
// and handed on as one piece: agents in the field send frames of 4 KiB, and each would cost as much as the
// whole read. What is written leaves as it is, behind its header, with everything else that waits. A frame on
// the wire:
//   byte FIN 0x80, opcode · byte MASK 0x80, length (126: two more bytes have it, 127: eight) · mask, 4 bytes, from clients
// Opcodes: 0 more of a message, 1 text, 2 binary, 8 close, 9 ping, 10 pong. There are no extensions. One
// promise about messages, because agents of version 1 need it: a chunk that is written while nothing else
// waits is a message of its own, and nothing that is written after its callback shares a message with it.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { DialOptions } from './doors.ts'
import { SocketLost, UpgradeFailed } from './errors.ts'
import { Inbox, sparing } from './inbox.ts'
import { Pings, type Watch } from './pings.ts'
import { isReleasing, releasesBuffers } from './releases-buffers.ts'

const Opcode = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
const buffer_bytes = 256 * 1024
const mostControl_bytes = 125
/** For what is left to be said after a close frame. */
const closing_ms = 5_000
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + guid)
    .digest('base64')

export interface BytesOptions {
  /**
   * Pings of the WebSocket itself, for what is always read: a peer that says nothing at all in time is gone.
   */
  readonly ping?: Watch
  /** A ping of ours was answered. */
  readonly onPong?: () => void
}

/**
 * Answers the request with 101. Throws UpgradeFailed, and has not answered, when it is no proper request for
 * a WebSocket.
 */
export function acceptBytes(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  options: BytesOptions = {},
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
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
  )
  return new ByteSocket(socket, head, 'server', options)
}

export function dialBytes(url: string | URL, options: DialOptions = {}): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const { signal, headers = {}, timeout_ms = 20_000, ca } = options
    if (signal?.aborted) return reject(signal.reason as Error)
    const target = new URL(url)
    const secure = target.protocol === 'wss:'
    target.protocol = secure ? 'https:' : 'http:'
    const key = randomBytes(16).toString('base64')
    const asked = (secure ? https : http).request(target, {
      agent: false,
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
      answer.resume()
      const { statusCode: status, headers: said } = answer
      fail(new UpgradeFailed(`The answer was ${status}.`, { status, retryAfter: said['retry-after'] }))
    })
    asked.once('upgrade', (answer, socket, head) => {
      const given = Buffer.from(answer.headers['sec-websocket-accept'] ?? '')
      const expected = Buffer.from(acceptOf(key))
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        socket.destroy()
        return fail(new UpgradeFailed('The answer is to another request.'))
      }
      settle()
      resolve(new ByteSocket(socket, head, 'client'))
    })
    asked.end()
  })
}

class ByteSocket extends Duplex {
  readonly #socket: Duplex
  /** After the callback of a write its bytes are in the kernel, if the socket is one. */
  readonly [releasesBuffers]: boolean
  /**
   * A client has to mask. The mask is zero: nobody chooses our bytes, which are encrypted besides (RFC 6455
   * section 10.3).
   */
  readonly #masks: boolean
  readonly #pings: Pings | undefined
  readonly #onPong: (() => void) | undefined
  #closing: NodeJS.Timeout | undefined
  #saidGoodbye = false
  #ended = false
  #endPushed = false

  /** What has come for a reader who is busy. */
  readonly #inbox = new Inbox()
  #wanted = false

  // The frame that is being read.
  readonly #head = Buffer.alloc(14)
  #headHave = 0
  #headNeed = 2
  #opcode = 0
  #left = 0
  #mask = 0
  /** Where in the mask the next byte of the payload is. */
  #turn = 0
  /** The payload of a control frame, as far as it has come. */
  #control: Buffer | undefined
  #controlHave = 0
  /**
   * The payload of the newest ping that was not answered. Those before it need no answer (RFC 6455 section
   * 5.5.3).
   */
  #unanswered: Buffer | undefined
  /** The peer's goodbye, once it has come. */
  #goodbyeCode: number | undefined

  constructor(socket: Duplex, head: Buffer, role: 'client' | 'server', options: BytesOptions = {}) {
    // The readable side's own buffer holds one piece; what else waits is in the inbox, where small pieces are
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
    socket.on('end', () => this.#lost('The connection ended without a goodbye.'))
    socket.on('close', () => this.#lost('The connection was lost.'))
    // An error that comes before the stream has found its user must not end the process.
    this.on('error', () => undefined)
    if (head.length > 0) this.#parse(head)
    if (!socket.isPaused()) socket.resume()
  }

  override _read(): void {
    this.#wanted = true
    while (this.#wanted) {
      const piece = this.#inbox.take()
      if (!piece) break
      this.#wanted = this.push(piece)
    }
    this.#pushEnd()
    if (this.#socket.isPaused() && this.#inbox.size < buffer_bytes) this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.cork()
    this.#socket.write(this.#header(Opcode.binary, chunk.length))
    this.#socket.write(chunk, done)
    this.#socket.uncork()
  }

  /** All that waits is one message. */
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
    this.#sayGoodbye(1000)
    this.#closeSoon()
    // The peer's goodbye can be heard only if somebody listens.
    this.#socket.resume()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#closing)
    this.#pings?.end(error ?? new SocketLost(1006, 'The socket was destroyed.'))
    this.#inbox.clear()
    this.#socket.destroy()
    done(error)
  }

  #header(opcode: number, length: number): Buffer {
    const extra = length < 126 ? 0 : length < 65_536 ? 2 : 8
    const header = Buffer.alloc(2 + extra + (this.#masks ? 4 : 0))
    header[0] = 0x80 | opcode
    header[1] = (this.#masks ? 0x80 : 0) | (extra === 0 ? length : extra === 2 ? 126 : 127)
    if (extra === 2) header.writeUInt16BE(length, 2)
    if (extra === 8) header.writeUInt32BE(length, 6)
    return header
  }

  #sayGoodbye(code: number): void {
    if (this.#saidGoodbye || this.#socket.destroyed || this.#socket.writableEnded) return
    this.#saidGoodbye = true
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

  /** One read: its payloads are gathered where the first of them lies, and handed on together. */
  #parse(chunk: Buffer): void {
    this.#pings?.heard()
    let from = 0
    let to = 0
    for (
      let at = 0;
      at < chunk.length && !this.destroyed && !this.#ended && this.#goodbyeCode === undefined;
    ) {
      if (this.#left === 0) {
        at = this.#readHead(chunk, at)
        continue
      }
      const end = Math.min(chunk.length, at + this.#left)
      this.#left -= end - at
      if (this.#opcode >= Opcode.close) this.#controlled(chunk, at, end)
      else {
        if (from === to) from = to = at
        else chunk.copyWithin(to, at, end)
        const next = to + end - at
        if (this.#mask !== 0) this.#turn = unmask(chunk, to, next, this.#mask, this.#turn)
        to = next
      }
      at = end
    }
    this.#deliver(chunk, from, to)
    this.#answer()
    if (this.#goodbyeCode !== undefined) this.#goodbye(this.#goodbyeCode)
    if (this.#inbox.size >= buffer_bytes && !this.destroyed) this.#socket.pause()
  }

  #deliver(chunk: Buffer, from: number, to: number): void {
    if (from === to || this.destroyed || this.#ended) return
    const piece = from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to)
    if (this.#wanted && this.#inbox.size === 0)
      this.#wanted = this.push(this.readableFlowing ? piece : sparing(piece))
    else this.#inbox.put(piece)
  }

  /** Takes what it can of a header; returns where it stopped. */
  #readHead(chunk: Buffer, from: number): number {
    const head = this.#head
    let at = from
    while (this.#headHave < this.#headNeed && at < chunk.length) {
      head[this.#headHave++] = chunk[at++]!
      if (this.#headHave === 2) {
        const short = head[1]! & 0x7f
        this.#headNeed = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + (head[1]! & 0x80 ? 4 : 0)
      }
    }
    if (this.#headHave === this.#headNeed) this.#begin()
    return at
  }

  /** The header is whole. */
  #begin(): void {
    const head = this.#head
    const [first, second] = [head[0]!, head[1]!]
    const masked = (second & 0x80) !== 0
    const short = second & 0x7f
    const length =
      short === 126 ? head.readUInt16BE(2) : short === 127 ? Number(head.readBigUInt64BE(2)) : short
    this.#mask = masked ? head.readUInt32LE(this.#headNeed - 4) : 0
    this.#turn = 0
    this.#headHave = 0
    this.#headNeed = 2
    this.#opcode = first & 0xf
    this.#left = length
    const control = this.#opcode >= Opcode.close
    if (first & 0x70) return this.#broken(1002, 'A frame has an extension that was not agreed on.')
    if (masked === this.#masks) return this.#broken(1002, 'A frame is masked, or is not, against the rule.')
    if (this.#opcode === Opcode.text) return this.#broken(1003, 'The peer sent a text message.')
    if (this.#opcode > Opcode.pong || (this.#opcode > Opcode.binary && !control))
      return this.#broken(1002, 'A frame of an unknown kind.')
    if (control && (length > mostControl_bytes || (first & 0x80) === 0))
      return this.#broken(1002, 'A control frame is too long.')
    if (!Number.isSafeInteger(length)) return this.#broken(1009, 'A message is too long.')
    if (control && length === 0) this.#controlled(head, 0, 0)
  }

  #controlled(chunk: Buffer, from: number, to: number): void {
    this.#control ??= Buffer.allocUnsafeSlow(mostControl_bytes)
    if (this.#mask !== 0) this.#turn = unmask(chunk, from, to, this.#mask, this.#turn)
    this.#controlHave += chunk.copy(this.#control, this.#controlHave, from, to)
    if (this.#left > 0) return
    const payload = this.#control.subarray(0, this.#controlHave)
    this.#controlHave = 0
    if (this.#opcode === Opcode.ping) this.#unanswered = Buffer.from(payload)
    else if (this.#opcode === Opcode.close)
      this.#goodbyeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    else if (payload.length === 4 && this.#pings?.answered(payload.readUInt32BE(0))) this.#onPong?.()
  }

  /** One answer for all pings of a read, and none while the peer does not take what was written already. */
  #answer(): void {
    const payload = this.#unanswered
    if (!payload || this.#socket.writableNeedDrain || this.#socket.destroyed || this.#socket.writableEnded)
      return
    this.#unanswered = undefined
    this.#socket.write(Buffer.concat([this.#header(Opcode.pong, payload.length), payload]))
  }

  /** Whatever the peer still owes us: its goodbye, or reading what was written. */
  #closeSoon(): void {
    this.#closing ??= setTimeout(() => this.destroy(), closing_ms).unref()
  }

  #goodbye(code: number): void {
    this.#sayGoodbye(1000)
    this.#socket.end()
    this.#closeSoon()
    if (code !== 1000 && code !== 1001 && code !== 1005)
      return this.#finish(new SocketLost(code, `The socket was closed with code ${code}.`))
    this.#finish(undefined)
  }

  #broken(code: number, message: string): void {
    this.#sayGoodbye(code)
    this.#socket.end()
    this.destroy(new SocketLost(code, message))
  }

  #lost(message: string, cause?: Error): void {
    this.#finish(new SocketLost(1006, message, { cause }))
  }

  /** Nothing more will come. What is there is still read; then comes the error, if it is one. */
  #finish(error: SocketLost | undefined): void {
    if (this.destroyed || this.#ended) return
    this.#ended = true
    this.#pings?.end(error ?? new SocketLost(1000, 'The socket was closed.'))
    const unread = this.readableLength + this.#inbox.size
    if (error && unread === 0) return void this.destroy(error)
    if (error) this.once('end', () => this.destroy(error))
    this.#pushEnd()
    // Without a reader, and with nothing to read, the end is to come all the same.
    if (unread === 0) this.read(0)
  }

  #pushEnd(): void {
    if (!this.#ended || this.#endPushed || this.#inbox.size > 0) return
    this.#endPushed = true
    this.push(null)
  }
}

/** Unmasks the bytes where they lie, four at a time; returns where in the mask the next piece begins. */
function unmask(chunk: Buffer, from: number, to: number, mask: number, turn: number): number {
  let at = from
  let next = turn
  for (const edge = Math.min(to, from + (-(chunk.byteOffset + from) & 3)); at < edge; next += 1)
    chunk[at++]! ^= (mask >>> (8 * (next & 3))) & 0xff
  const count = (to - at) >> 2
  if (count > 0) {
    const words = new Int32Array(chunk.buffer, chunk.byteOffset + at, count)
    const shift = 8 * (next & 3)
    const turned = shift === 0 ? mask | 0 : (mask >>> shift) | (mask << (32 - shift))
    for (let word = 0; word < count; word += 1) words[word]! ^= turned
    at += count * 4
  }
  for (; at < to; next += 1) chunk[at++]! ^= (mask >>> (8 * (next & 3))) & 0xff
  return next & 3
}
