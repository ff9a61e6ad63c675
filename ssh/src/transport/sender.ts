// Packets on their way out: sealed and handed to the outbox at once, or held back while keys are exchanged.
import type { Duplex } from 'node:stream'
import { ProtocolError } from '../errors.ts'
import { object_bytes } from '../memory.ts'
import type { Writer } from '../wire.ts'
import { dataPacket, type DataSealer } from './data-packet.ts'
import { mostUnsent_bytes, outbox, type Outbox } from './outbox.ts'
import { packetWriter } from './packets.ts'
import type { KeyUsage } from './rekeying.ts'

/** Unread answers to a peer that has not logged in. */
const strangersUnsent_bytes = 64 * 1024
/** Memory of answers that wait for the end of an exchange; data is held back before. */
const mostHeld_bytes = 1024 * 1024

export class PacketSender implements DataSealer {
  readonly writer = packetWriter()
  readonly #outbox: Outbox
  /** Counts the use of the keys. */
  readonly #keyUsage: KeyUsage
  readonly #onError: (error: unknown) => void
  /** Messages that wait for our NEWKEYS, and their memory. */
  #held: Writer[] = []
  #held_bytes = 0

  constructor(socket: Duplex, keyUsage: KeyUsage, onRoom: () => void, onError: (error: unknown) => void) {
    this.#keyUsage = keyUsage
    this.#onError = onError
    this.#outbox = outbox(socket, onRoom, () => dataPacket.seal(this))
    this.#outbox.allow(strangersUnsent_bytes)
  }

  send(written: Writer): void {
    dataPacket.seal(this)
    this.#seal(written)
  }

  /** Data of a channel; it is copied, and leaves at the end of the turn at the latest. */
  sendData(channel: number, stream: number, bytes: Uint8Array, most_bytes: number): void {
    dataPacket.add(this, channel, stream, bytes, most_bytes)
    this.#outbox.schedule()
  }

  sealData(written: Writer): void {
    try {
      this.#seal(written)
    } catch (error) {
      // Another connection may have made us seal it.
      this.#onError(error)
    }
  }

  #seal(written: Writer): void {
    const sealed = this.writer.seal(written, this.#outbox.room)
    for (const part of sealed) this.#keyUsage.bytes += part.length
    this.#keyUsage.packets += 1
    this.#outbox.push(sealed)
  }

  hold(written: Writer): void {
    this.#held.push(written)
    this.#held_bytes += written.capacity + object_bytes
    if (this.#held_bytes > mostHeld_bytes)
      throw new ProtocolError('The peer does not finish the key exchange.')
  }

  /** Returns the held messages, in order. */
  takeHeld(): readonly Writer[] {
    const held = this.#held
    this.#held = []
    this.#held_bytes = 0
    return held
  }

  /** The peer has logged in: it may leave more unread. */
  trustPeer(): void {
    this.#outbox.allow(mostUnsent_bytes)
  }

  /** Data should wait. */
  get congested(): boolean {
    return this.#outbox.congested
  }

  /** Sealed, and still here. */
  get unsent_bytes(): number {
    return this.#outbox.unsent_bytes
  }

  /** Now instead of at the end of the turn. */
  flush(): void {
    this.#outbox.flush()
  }

  /** Nothing is sent after this. */
  end(): void {
    dataPacket.drop(this)
    this.#held = []
    this.writer.free()
  }
}
