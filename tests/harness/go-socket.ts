// A WebSocket client as agents in the field have it (Go, gorilla/websocket with its buffer of 4 KiB, under
// the SSH of x/crypto with another): every write is a message of its own, a large one in fragments of 4 KiB,
// each with a mask of its own; an SSH packet of 32 KiB leaves as one message of 4 KiB and one with the rest.
// The end is a lost connection, never a goodbye. Only as much is read of the server's frames as those agents
// need.
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { Duplex } from 'node:stream'
import { UpgradeFailed } from '@hawser/mux'

const fragment_bytes = 4096
/** An SSH packet with 32 KiB of data, sealed with AES-GCM. */
const packet_bytes = 32_808
const Opcode = { more: 0, binary: 2, close: 8, ping: 9, pong: 10 } as const

export function dialGo(url: string, options: { headers?: Record<string, string> } = {}): Promise<GoSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<GoSocket>()
  const key = randomBytes(16).toString('base64')
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': key,
  }
  const asked = http.request(url.replace(/^ws/, 'http'), {
    agent: false,
    headers: { ...options.headers, ...upgrade },
  })
  asked.once('error', reject)
  asked.once('response', (answer) => {
    answer.resume()
    reject(new UpgradeFailed('websocket: bad handshake', { status: answer.statusCode ?? 0 }))
  })
  asked.once('upgrade', (_, socket, head) => resolve(new GoSocket(socket, head)))
  asked.end()
  return promise
}

class GoSocket extends Duplex {
  readonly #socket: Duplex
  #unread: Buffer = Buffer.alloc(0)
  /** Of the current frame. */
  #left = 0

  constructor(socket: Duplex, head: Buffer) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    if ('setNoDelay' in socket) (socket as { setNoDelay(on: boolean): void }).setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#parse(chunk))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
    if (head.length > 0) this.#parse(head)
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(Buffer.concat(packets(chunk)), done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#socket.write(Buffer.concat(chunks.flatMap(({ chunk }) => packets(chunk))), done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  #parse(chunk: Buffer): void {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
    let room = true
    while (this.#unread.length > 0) {
      if (this.#left > 0) {
        const piece = this.#unread.subarray(0, this.#left)
        this.#left -= piece.length
        this.#unread = this.#unread.subarray(piece.length)
        room = this.push(piece)
        continue
      }
      const head = readHead(this.#unread)
      if (!head) break
      const control = head.opcode >= Opcode.close
      if (control && this.#unread.length < head.bytes + head.length) break
      const payload = this.#unread.subarray(head.bytes, head.bytes + (control ? head.length : 0))
      this.#unread = this.#unread.subarray(head.bytes + payload.length)
      if (head.opcode === Opcode.ping) this.#socket.write(frame(Opcode.pong, true, payload))
      if (head.opcode === Opcode.close) return void this.destroy()
      if (!control) this.#left = head.length
    }
    if (!room) this.#socket.pause()
  }
}

function readHead(bytes: Buffer): { opcode: number; length: number; bytes: number } | undefined {
  if (bytes.length < 2) return undefined
  const short = bytes[1]! & 0x7f
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0
  if (bytes.length < 2 + extra) return undefined
  const length = extra === 0 ? short : extra === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  return { opcode: bytes[0]! & 0xf, length, bytes: 2 + extra }
}

/** One write may hold several packets of SSH. */
function packets(chunk: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < chunk.length; at += packet_bytes) {
    const packet = chunk.subarray(at, at + packet_bytes)
    frames.push(...message(packet.subarray(0, fragment_bytes)))
    if (packet.length > fragment_bytes) frames.push(...message(packet.subarray(fragment_bytes)))
  }
  return frames
}

function message(payload: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at === 0 || at < payload.length; at += fragment_bytes) {
    const last = at + fragment_bytes >= payload.length
    frames.push(
      frame(at === 0 ? Opcode.binary : Opcode.more, last, payload.subarray(at, at + fragment_bytes)),
    )
  }
  return frames
}

function frame(opcode: number, last: boolean, payload: Buffer): Buffer {
  const extra = payload.length < 126 ? 0 : 2
  const head = 2 + extra + 4
  const bytes = Buffer.alloc(head + payload.length)
  bytes[0] = (last ? 0x80 : 0) | opcode
  bytes[1] = 0x80 | (extra === 0 ? payload.length : 126)
  if (extra === 2) bytes.writeUInt16BE(payload.length, 2)
  const mask = randomBytes(4)
  mask.copy(bytes, head - 4)
  payload.copy(bytes, head)
  let at = head
  const word = mask.readInt32LE(0)
  for (; at + 4 <= bytes.length; at += 4) bytes.writeInt32LE(bytes.readInt32LE(at) ^ word, at)
  for (; at < bytes.length; at += 1) bytes[at]! ^= mask[(at - head) % 4]!
  return bytes
}
