// Packets as they come in: bytes of the socket become messages, one after the other. A message that takes
// time makes those after it wait, so that they keep their order. Until somebody takes over, messages of
// services wait in the inbox. Whenever something has to wait, the socket is not read.
import type { Duplex } from 'node:stream'
import { Inbox } from './inbox.ts'
import { largestPacket_bytes, packetReader } from './packets.ts'

/** What packets may become in one turn of the event loop. Decompressing so much takes a millisecond. */
const unpackedAtOnce_bytes = 1024 * 1024
/** Messages in one turn. The smallest take half a millisecond together; full packets are 8 MiB. */
const takenAtOnce = 256

/** What the receiver tells its transport. */
export interface ReceiverEvents {
  /** A message; those after it wait for what this returns. */
  onMessage(payload: Buffer): Promise<void> | void
  /** All messages that could be read were. */
  onIdle(): void
  onError(error: unknown): void
}

/** Takes the messages of services. */
export type Deliver = (payload: Buffer) => Promise<void> | void

/** The receiving half of a transport. */
export class PacketReceiver {
  /** Opens packets with the keys in force. */
  readonly reader = packetReader()
  readonly #socket: Duplex
  readonly #events: ReceiverEvents
  /** Messages that came before somebody took over. */
  readonly #inbox = new Inbox()
  /** Who took over. */
  #deliver: Deliver | undefined
  /** Why nothing is read: the inbox is full, our side has paused, messages are worked on, or it is over. */
  #inboxIsFull = false
  #isPaused = false
  #pending = 0
  /** Messages since others on the event loop had their turn. */
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

  /** A message of a service goes to whoever took over, or into the inbox. */
  deliver(payload: Buffer): Promise<void> | void {
    if (this.#deliver) return this.#deliver(payload)
    this.#inbox.push(payload)
    if (!this.#inbox.isFull) return
    this.#inboxIsFull = true
    this.#socket.pause()
  }

  /** The next message of a service, before somebody takes over. */
  async next(): Promise<Buffer> {
    const waiting = this.#inbox.shift()
    if (!waiting) return this.#inbox.next()
    if (this.#inboxIsFull && !this.#inbox.isFull) {
      this.#inboxIsFull = false
      this.#continue()
    }
    return waiting
  }

  /** From now on messages of services go to this function, and the peer may send large packets. */
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
    // Later: whoever has room now may be in the middle of a message.
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
        // What came before somebody took over comes first.
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
          // Other connections come first: a small packet can take a large one's work, or be one of very many.
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

  /** Nothing more is taken until this is done. */
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
