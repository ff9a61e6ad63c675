// The packet of data that is being put together. Data of one channel and stream that is sent in one turn of
// the event loop leaves in as few packets as the peer's largest packet allows, because a packet costs as much
// as encrypting 16 KiB. There is one such packet in the whole process, in memory that is used again and
// again: when another connection begins one, this one is sealed.
import { Message } from '../messages.ts'
import { headerBytes, Writer } from '../wire.ts'

/** Room for the largest packet of data. */
const memory = Buffer.allocUnsafeSlow(160 * 1024)

export interface DataSealer {
  /** Must not throw: another connection may have requested it. */
  sealData(written: Writer): void
}

class DataPacket {
  /** Undefined: there is no packet. */
  #owner: DataSealer | undefined
  #written = new Writer(memory)
  /** The peer's number of the channel, and the stream: 0 for data, else that of extended data. */
  #channel = 0
  #stream = 0
  #data_bytes = 0

  /** Adds data, to a new packet if it does not fit into this one. A packet holds at most `most_bytes`. */
  add(owner: DataSealer, channel: number, stream: number, bytes: Uint8Array, most_bytes: number): void {
    const isSame = this.#owner === owner && this.#channel === channel && this.#stream === stream
    if (!isSame || this.#data_bytes + bytes.length > most_bytes) {
      if (this.#owner) this.seal(this.#owner)
      this.#begin(owner, channel, stream)
    }
    this.#written.raw(bytes)
    this.#data_bytes += bytes.length
    if (this.#data_bytes === most_bytes) this.seal(owner)
  }

  /** Seals the packet if it belongs to this owner. */
  seal(owner: DataSealer): void {
    if (this.#owner !== owner) return
    this.#owner = undefined
    const length_at = this.#written.length - this.#data_bytes - 4
    this.#written.bytes().writeUInt32BE(this.#data_bytes, length_at)
    owner.sealData(this.#written)
  }

  /** Forgets the packet if it belongs to this owner. */
  drop(owner: DataSealer): void {
    if (this.#owner === owner) this.#owner = undefined
  }

  #begin(owner: DataSealer, channel: number, stream: number): void {
    this.#owner = owner
    this.#channel = channel
    this.#stream = stream
    this.#data_bytes = 0
    const written = new Writer(memory)
    written.gap(headerBytes)
    written.byte(stream === 0 ? Message.channelData : Message.channelExtendedData).uint32(channel)
    if (stream !== 0) written.uint32(stream)
    // Filled in with the length of the data.
    written.uint32(0)
    this.#written = written
  }
}

/** The packet of this process. */
export const dataPacket = new DataPacket()
