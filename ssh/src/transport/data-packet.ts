// The packet of data that is being put together. Data of one channel and stream that is sent in one turn of the
// event loop leaves in as few packets as the peer's largest packet allows, because a packet costs as much as
// encrypting 16 KiB. There is one such packet in the whole process, in memory that is used again and again:
// when another connection begins one, this one is sealed.
import { Message } from '../messages.ts'
import { headerBytes, Writer } from '../wire.ts'

/** Room for the largest packet of data that is ever sent, and some. */
const memory = Buffer.allocUnsafeSlow(160 * 1024)

/** Whose it is, and how it is sealed. */
export interface PacketOwner {
  sealData(written: Writer): void
}

let owner: PacketOwner | undefined
let written = new Writer(memory)
let channel = 0
let stream = 0
let data_bytes = 0

/** Adds data to the packet, or to a new one where it does not belong into this one; `most_bytes` fit into one. */
export function addData(
  by: PacketOwner,
  to: number,
  on: number,
  bytes: Uint8Array,
  most_bytes: number,
): void {
  const fits = owner === by && channel === to && stream === on && data_bytes + bytes.length <= most_bytes
  if (!fits) {
    if (owner) sealData(owner)
    begin(by, to, on)
  }
  written.raw(bytes)
  data_bytes += bytes.length
  if (data_bytes === most_bytes) sealData(by)
}

/** Has the packet sealed if it is of this owner. */
export function sealData(by: PacketOwner): void {
  if (owner !== by) return
  owner = undefined
  const length_at = written.length - data_bytes - 4
  written.bytes().writeUInt32BE(data_bytes, length_at)
  by.sealData(written)
}

/** Forgets the packet if it is of this owner. */
export function dropData(by: PacketOwner): void {
  if (owner === by) owner = undefined
}

function begin(by: PacketOwner, to: number, on: number): void {
  owner = by
  channel = to
  stream = on
  data_bytes = 0
  written = new Writer(memory)
  written.gap(headerBytes)
  written.byte(on === 0 ? Message.channelData : Message.channelExtendedData).uint32(to)
  if (on !== 0) written.uint32(on)
  // For the length of the data, once it is known.
  written.uint32(0)
}
