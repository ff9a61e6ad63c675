// Memory for outputs of programs and for sockets of services. All are read into the same buffer, so that silent
// ones hold none: a new buffer for each read costs the agent more than the read. Bytes that the reader does not
// take at once are copied before the next read, into memory that is used again.

export const read_bytes = 64 * 1024
/** Spare copies: enough for a transfer or two. */
const mostSpare = 4

/** A read is good until the call that brings it returns. */
export const readBuffer = Buffer.allocUnsafeSlow(read_bytes)
const spare: Buffer[] = []

/** Few bytes get memory of their own size: many readers may wait with a line each. */
export function copyOf(bytes: Buffer): Buffer {
  const isLarge = bytes.length * 2 >= read_bytes && bytes.length <= read_bytes
  const copy =
    (isLarge ? spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(isLarge ? read_bytes : bytes.length)
  bytes.copy(copy)
  return copy.subarray(0, bytes.length)
}

/** The reader is done with the copy, and holds no part of it. */
export function giveBack(copy: Buffer): void {
  if (copy.buffer.byteLength === read_bytes && spare.length < mostSpare) spare.push(Buffer.from(copy.buffer))
}
