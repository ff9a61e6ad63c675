// A WebSocket as a stream of bytes. Messages are binary and their borders mean nothing to us, but they do to some peers,
// so one promise is kept: a chunk that is written while nothing else waits is a message of its own, and nothing that is
// written after its callback shares a message with it. Chunks that wait for their turn are joined. Back-pressure is real
// both ways: one batch at a time is handed to `ws`, and the next when the kernel has taken it; when our reader is slow the
// socket is not read. What had come before the socket was lost is still read, then comes the error.
import { Duplex } from 'node:stream'
import { WebSocket, type RawData } from 'ws'
import { SocketLost } from './errors.ts'

/** Waiting chunks are joined up to this; a frame of yamux of ours fits. */
const mostJoined_bytes = 64 * 1024
/** A larger chunk becomes several messages: peers have limits. */
const mostMessage_bytes = 256 * 1024
const buffer_bytes = 128 * 1024
/** For the peer's close frame after ours. */
const closing_ms = 5_000

const goodbyes = new Set([1000, 1001, 1005])

/**
 * The socket must be open, and paused or only just opened: messages that nobody listens for are lost.
 * `end()` says goodbye with 1000; a text message, another close code or a lost connection is an error.
 */
export function webSocketStream(socket: WebSocket): Duplex {
  return new SocketStream(socket)
}

const ignore = (): void => undefined

class SocketStream extends Duplex {
  readonly #socket: WebSocket
  #unsent: ((error?: Error | null) => void) | undefined
  #closing: NodeJS.Timeout | undefined
  #ended = false

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false, readableHighWaterMark: buffer_bytes, writableHighWaterMark: buffer_bytes })
    this.#socket = socket
    // Fragments as they came: joining them would be a copy for nothing.
    socket.binaryType = 'fragments'
    socket.on('message', (pieces, isBinary) => this.#receive(pieces, isBinary))
    socket.on('error', (cause) => this.#lost(new SocketLost(1002, 'The peer broke the WebSocket protocol.', { cause })))
    socket.on('close', (code) => this.#closed(code))
    // An error that comes before the stream has found its user must not end the process.
    this.on('error', ignore)
    if (socket.readyState === WebSocket.CLOSED) process.nextTick(() => this.#closed(1006))
  }

  override _read(): void {
    if (this.#socket.isPaused) this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const messages: Buffer[] = []
    let joined: Buffer[] = []
    let bytes = 0
    const close = (): void => {
      if (joined.length > 0) messages.push(joined.length === 1 ? joined[0]! : Buffer.concat(joined, bytes))
      joined = []
      bytes = 0
    }
    for (const { chunk } of chunks) {
      if (bytes + chunk.length > mostJoined_bytes) close()
      joined.push(chunk)
      bytes += chunk.length
    }
    close()
    this.#send(messages, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.readyState !== WebSocket.CLOSED) {
      this.#socket.close(1000)
      this.#closing = setTimeout(() => this.destroy(), closing_ms)
      this.#closing.unref()
      // The peer's goodbye can be heard only if somebody listens, and maybe nobody reads.
      if (this.readableLength < buffer_bytes) this.#socket.resume()
    }
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#closing)
    this.#socket.terminate()
    this.#unsent?.(error ?? new SocketLost(1006, 'The socket was destroyed.'))
    this.#unsent = undefined
    done(error)
  }

  #receive(pieces: RawData, isBinary: boolean): void {
    if (this.destroyed || this.#ended) return
    if (!isBinary) {
      this.#socket.close(1003)
      return void this.destroy(new SocketLost(1003, 'The peer sent a text message.'))
    }
    let room = true
    for (const piece of pieces as Buffer[]) if (piece.length > 0) room = this.push(piece)
    if (!room) this.#socket.pause()
  }

  #send(messages: readonly Buffer[], done: (error?: Error | null) => void): void {
    const parts = messages.flatMap(split)
    if (parts.length === 0) return done()
    this.#unsent = done
    this.#sendFrom(parts, 0)
  }

  /** One after the other, each when the kernel has taken the one before. */
  #sendFrom(parts: readonly Buffer[], index: number): void {
    this.#socket.send(parts[index]!, (cause) => {
      if (this.destroyed) return
      if (cause) return this.#lost(new SocketLost(1006, 'The socket took no more.', { cause }))
      if (index + 1 < parts.length) return this.#sendFrom(parts, index + 1)
      const done = this.#unsent
      this.#unsent = undefined
      done?.()
    })
  }

  #closed(code: number): void {
    clearTimeout(this.#closing)
    if (!goodbyes.has(code)) return this.#lost(new SocketLost(code, `The socket was closed with code ${code}.`))
    if (this.destroyed || this.#ended) return
    this.#end()
  }

  #lost(error: SocketLost): void {
    if (this.destroyed) return
    if (this.readableLength === 0) return void this.destroy(error)
    this.once('end', () => this.destroy(error))
    if (!this.#ended) this.#end()
  }

  #end(): void {
    this.#ended = true
    this.push(null)
    // Without a reader, and with nothing to read, the end is to come all the same.
    if (this.readableLength === 0) this.read(0)
  }
}

function split(message: Buffer): Buffer | Buffer[] {
  if (message.length <= mostMessage_bytes) return message.length > 0 ? message : []
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += mostMessage_bytes) parts.push(message.subarray(at, at + mostMessage_bytes))
  return parts
}
