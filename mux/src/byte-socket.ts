// A WebSocket (RFC 6455) that carries nothing but bytes, straight on the socket: what the tunnel of a device is. `ws` puts
// every message together before it hands it over, copies every payload that is larger than a read, and unmasks byte by
// byte; on a tunnel, where the borders of messages mean nothing, that costs as much as all the rest. Here payloads are
// handed on in the pieces in which they came and unmasked where they lie, and what is written leaves as it is, behind its
// header, with everything else that waits. A frame on the wire:
//   byte FIN 0x80, opcode · byte MASK 0x80, length (126: two more bytes have it, 127: eight) · mask, 4 bytes, from clients
// Opcodes: 0 more of a message, 1 text, 2 binary, 8 close, 9 ping, 10 pong. There are no extensions.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { DialOptions } from './doors.ts'
import { SocketLost, UpgradeFailed } from './errors.ts'

const Opcode = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
const buffer_bytes = 256 * 1024
const mostControl_bytes = 125
/** Answers to pings that wait for a peer who does not read. */
const mostUnsent_bytes = 1024 * 1024
/** For the peer's close frame after ours. */
const closing_ms = 5_000
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const acceptOf = (key: string): string =>
  createHash('sha1')
    .update(key + guid)
    .digest('base64')

/** Answers the request with 101. Throws UpgradeFailed, and has not answered, when it is no proper request for a WebSocket. */
export function acceptBytes(request: IncomingMessage, socket: Duplex, head: Buffer): Duplex {
  const { 'sec-websocket-key': key = '', 'sec-websocket-version': version, upgrade = '' } = request.headers
  if (request.method !== 'GET' || !/^websocket$/i.test(upgrade) || version !== '13' || !/^[A-Za-z0-9+/]{22}==$/.test(key))
    throw new UpgradeFailed('This is no request for a WebSocket of version 13.', { status: 400 })
  if (socket.destroyed) throw new UpgradeFailed('The connection is gone.')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
  )
  return new ByteSocket(socket, head, 'server')
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
      headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': key },
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
  /** Nobody looks at bytes any more once their write was called done: they are the kernel's then. */
  readonly letsGo: boolean
  /** A client has to mask. The mask is zero: nobody chooses our bytes, which are encrypted besides (RFC 6455 section 10.3). */
  readonly #masks: boolean
  #closing: NodeJS.Timeout | undefined
  #saidGoodbye = false
  #ended = false

  // The frame that is being read.
  readonly #head = Buffer.alloc(14)
  #headHave = 0
  #headNeed = 2
  #opcode = 0
  #left = 0
  #mask = 0
  /** Where in the mask the next byte of the payload is. */
  #turn = 0
  #control: Buffer[] = []

  constructor(socket: Duplex, head: Buffer, role: 'client' | 'server') {
    super({ allowHalfOpen: false, readableHighWaterMark: buffer_bytes, writableHighWaterMark: buffer_bytes })
    this.#socket = socket
    this.letsGo = socket instanceof Socket
    this.#masks = role === 'client'
    if (socket instanceof Socket) socket.setNoDelay(true).setTimeout(0)
    socket.on('data', (chunk: Buffer) => this.#parse(chunk))
    socket.on('error', (cause) => this.#lost('The connection broke.', cause))
    socket.on('end', () => this.#lost('The connection ended without a goodbye.'))
    socket.on('close', () => this.#lost('The connection was lost.'))
    // An error that comes before the stream has found its user must not end the process.
    this.on('error', () => undefined)
    if (head.length > 0) this.#parse(head)
    if (!socket.isPaused()) socket.resume()
  }

  override _read(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
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
    this.#closing = setTimeout(() => this.destroy(), closing_ms)
    this.#closing.unref()
    // The peer's goodbye can be heard only if somebody listens.
    this.#socket.resume()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#closing)
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

  #parse(chunk: Buffer): void {
    let room = true
    for (let at = 0; at < chunk.length && !this.destroyed && !this.#ended;) {
      if (this.#left === 0) {
        at = this.#readHead(chunk, at)
        continue
      }
      const piece = chunk.subarray(at, at + this.#left)
      at += piece.length
      this.#left -= piece.length
      if (this.#mask !== 0) this.#turn = unmask(piece, this.#mask, this.#turn)
      if (this.#opcode >= Opcode.close) this.#controlled(piece)
      else room = this.push(piece)
    }
    if (!room && !this.destroyed) this.#socket.pause()
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
    const length = short === 126 ? head.readUInt16BE(2) : short === 127 ? Number(head.readBigUInt64BE(2)) : short
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
    if (this.#opcode > Opcode.pong || (this.#opcode > Opcode.binary && !control)) return this.#broken(1002, 'A frame of an unknown kind.')
    if (control && (length > mostControl_bytes || (first & 0x80) === 0)) return this.#broken(1002, 'A control frame is too long.')
    if (!Number.isSafeInteger(length)) return this.#broken(1009, 'A message is too long.')
    if (control && length === 0) this.#controlled(Buffer.alloc(0))
  }

  #controlled(piece: Buffer): void {
    this.#control.push(Buffer.from(piece))
    if (this.#left > 0) return
    const payload = Buffer.concat(this.#control)
    this.#control = []
    if (this.#opcode === Opcode.ping) {
      if (this.#socket.writableLength > mostUnsent_bytes) return this.#broken(1008, 'The peer asks for answers that it does not take.')
      this.#socket.write(Buffer.concat([this.#header(Opcode.pong, payload.length), payload]))
    }
    if (this.#opcode === Opcode.close) this.#goodbye(payload.length >= 2 ? payload.readUInt16BE(0) : 1005)
  }

  #goodbye(code: number): void {
    this.#sayGoodbye(1000)
    this.#socket.end()
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
    if (error && this.readableLength === 0) return void this.destroy(error)
    if (error) this.once('end', () => this.destroy(error))
    this.push(null)
    // Without a reader, and with nothing to read, the end is to come all the same.
    if (this.readableLength === 0) this.read(0)
  }
}

/** Where the bytes lie, four at a time; returns where in the mask the next piece begins. */
function unmask(bytes: Buffer, mask: number, turn: number): number {
  let at = 0
  const single = (): void => {
    bytes[at]! ^= (mask >>> (8 * ((turn + at) & 3))) & 0xff
    at += 1
  }
  while (at < bytes.length && (bytes.byteOffset + at) % 4 !== 0) single()
  if (bytes.length - at < 4) {
    while (at < bytes.length) single()
    return (turn + bytes.length) & 3
  }
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, (bytes.length - at) >> 2)
  const shift = 8 * ((turn + at) & 3)
  const turned = shift === 0 ? mask | 0 : (mask >>> shift) | (mask << (32 - shift))
  for (let word = 0; word < words.length; word += 1) words[word]! ^= turned
  at += words.length * 4
  while (at < bytes.length) single()
  return (turn + bytes.length) & 3
}
