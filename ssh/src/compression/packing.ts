// Memory in which messages are packed and unpacked. The process has one of each: a message is sealed, or
// copied to where it is read, before the next one is touched.
import { headerBytes, Writer } from '../wire.ts'

/** Room for what follows a message: flags and padding. */
const trailer_bytes = 64
const step_bytes = 64 * 1024
const mostKept_bytes = 5 * step_bytes
let packing: Buffer = Buffer.alloc(0)
let unpacking: Buffer = Buffer.alloc(0)

/** More than any method makes of bytes that do not get smaller. */
const bound = (bytes: number): number => headerBytes + bytes + (bytes >> 3) + 1_024 + trailer_bytes

/** Grows in steps, so that it seldom has to; memory for the few larger messages is not held. */
function packingRoom(bytes: number): Buffer {
  if (bytes > mostKept_bytes) return Buffer.allocUnsafeSlow(bytes)
  if (packing.length < bytes) packing = Buffer.allocUnsafeSlow(Math.ceil(bytes / step_bytes) * step_bytes)
  return packing
}

/** `fill` writes a payload of about this size, and returns its length. */
export function packed(payload_bytes: number, fill: (room: Buffer) => number): Writer {
  const memory = packingRoom(bound(payload_bytes))
  const written = new Writer(memory)
  written.gap(headerBytes)
  written.gap(fill(memory.subarray(headerBytes, memory.length - trailer_bytes)))
  return written
}

/** Room for a payload, and one byte by which a larger one is noticed. */
export function unpackingRoom(most_bytes: number): Buffer {
  if (unpacking.length <= most_bytes) unpacking = Buffer.allocUnsafeSlow(most_bytes + 1)
  return unpacking.subarray(0, most_bytes + 1)
}
