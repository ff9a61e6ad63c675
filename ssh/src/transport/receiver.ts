// Packets as they come in: bytes of the socket become messages, one after the other. A message that takes
// time makes those after it wait, so that they keep their order. Until somebody takes over, messages of
// services wait in the inbox. Whenever something has to wait, the socket is not read.
import type { Duplex } from 'node:stream'
import { Inbox } from './inbox.ts'
import { largestPacket_bytes, packetReader } from './packets.ts'

/** Unpacked bytes in one turn of the event loop: a millisecond of work. */
const unpackedAtOnce_bytes = 1024 * 1024
/** Messages in one turn. The smallest take half a millisecond together; full packets are 8 MiB. */
const takenAtOnce = 256

export interface ReceiverEvents {
  /** Later messages wait for the returned promise. */
  onMessage(payload: Buffer): Promise<void> | void
  /** All messages that could be read were. */
  onIdle(): void
  onError(error: unknown): void
}

export type Deliver = (payload: Buffer) => Promise<void> | void

export class PacketReceiver {
  readonly reader = packetReader()
  readonly #socket: Duplex
  readonly #events: ReceiverEvents
  /** Messages from before the takeover. */
  readonly #inbox = new Inbox()
  /** The taker of messages. */
  #deliver: Deliver | undefined
  /**
   * Reasons not to read: the inbox is full, our side has paused, messages are being handled, or it is over.
   */
  #inboxIsFull = false
  #isPaused = false
  #pending = 0
  /** Messages since the last pause for the event loop. */
  #taken = 0
  #isOver = false

  constructor(socket: Duplex, events: ReceiverEvents) {
    this.#socket = socket
    this.#events = events
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  push(bytes: Buffer): void {
    this.reader.push(bytes)
    this.#read()
  }

  /** To the taker, or into the inbox. */
  deliver(payload: Buffer): Promise<void> | void {
    if (this.#deliver) return this.#deliver(payload)
    this.#inbox.push(payload)
    if (!this.#inbox.isFull) return
    this.#inboxIsFull = true
    this.#socket.pause()
  }

  async next(): Promise<Buffer> {
    const waiting = this.#inbox.shift()
    if (!waiting) return this.#inbox.next()
    if (this.#inboxIsFull && !this.#inbox.isFull) {
      this.#inboxIsFull = false
      this.#continue()
    }
    return waiting
  }

  /** Passes messages of services to this function; the peer may send large packets from here on. */
  takeOver(deliver: Deliver): void {
    this.reader.allow(largestPacket_bytes)
    this.#deliver = deliver
    this.#inboxIsFull = false
    this.#continue()
  }

  pause(): void {
    if (this.#isOver) return
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // Later: the caller may be in the middle of a message.
    setImmediate(() => this.#continue())
  }

  /** Nothing is taken after this. */
  end(error: Error): void {
    this.#isOver = true
    this.#inbox.end(error)
    this.reader.free()
  }

  get #mayRead(): boolean {
    return !this.#isOver && !this.#inboxIsFull && !this.#isPaused && this.#pending === 0
  }

  #read(): void {
    try {
      while (this.#mayRead) {
        // Messages from before the takeover come first.
        const waiting = this.#deliver ? this.#inbox.shift() : undefined
        if (waiting) {
          this.#await(this.#deliver?.(waiting))
          continue
        }
        const payload = this.reader.next()
        if (!payload) break
        this.#await(this.#events.onMessage(payload))
        this.#taken += 1
        if (this.#taken >= takenAtOnce || this.reader.unpacked_bytes > unpackedAtOnce_bytes) {
          this.#taken = 0
          this.reader.unpacked_bytes = 0
          // Other connections come first: a small packet can cost as much as a large one, or be one of very
          // many.
          this.#await(new Promise((resolve) => void setImmediate(resolve)))
        }
      }
      this.#events.onIdle()
    } catch (error) {
      this.#events.onError(error)
    }
  }

  #continue(): void {
    if (!this.#mayRead) return
    this.#read()
    if (this.#mayRead) this.#socket.resume()
  }

  #await(work: Promise<void> | void): void {
    if (!work) return
    this.#pending += 1
    this.#socket.pause()
    work.then(
      () => {
        this.#pending -= 1
        this.#continue()
      },
      (error: unknown) => this.#events.onError(error),
    )
  }
}
