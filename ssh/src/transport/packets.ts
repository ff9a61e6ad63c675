// Packets in and out of bytes (RFC 4253 section 6), under whatever cipher is in force.
//   uint32 packet_length    of all that follows but the MAC
//   byte   padding_length   at least 4
//   payload, padding, MAC
// Incoming bytes are used, and decrypted, where they lie, so that a chunk that was pushed belongs to the
// reader: only a packet that spans chunks is put together in memory of its own, which is used again if nobody
// kept anything of it. Padding comes from a pool of random bytes, because asking for a few at a time costs
// more than encrypting them.
import { randomFillSync } from 'node:crypto'
import { plainOpener, plainSealer } from '../ciphers/none.ts'
import type { Opener, Room, Sealer } from '../ciphers/cipher.ts'
import type { Compressor, Decompressor } from '../compression/compression.ts'
import { ProtocolError } from '../errors.ts'
import type { Writer } from '../wire.ts'

/**
 * The least that everybody must accept (RFC 4253 section 6.1), and the most that a stranger may make us hold.
 */
export const strangersPacket_bytes = 35_000
/** Also OpenSSH's limit. */
export const largestPacket_bytes = 256 * 1024
const shortestPadding_bytes = 4
const nothing = Buffer.alloc(0)
const pool = Buffer.alloc(16_384)
let poolAt = pool.length

/** Memory of large packets, for reuse by any connection; newest last. */
const spare: Buffer[] = []
const mostSpare = 8
const large_bytes = 16 * 1024

/** Not a part of a larger buffer: half a packet may wait for long. */
function memoryFor(count: number): Buffer {
  if (count < large_bytes) return Buffer.allocUnsafeSlow(count)
  const at = spare.findLastIndex(({ length }) => length >= count && length < 2 * count)
  return (
    spare.splice(at, at < 0 ? 0 : 1)[0] ??
    Buffer.allocUnsafeSlow(Math.ceil(count / large_bytes) * large_bytes)
  )
}

function giveBack(memory: Buffer): void {
  spare.push(memory)
  if (spare.length > mostSpare) spare.shift()
}

function pad(gap: Buffer): void {
  if (poolAt + gap.length > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  pool.copy(gap, 0, poolAt, (poolAt += gap.length))
}

export interface PacketWriter {
  seal(written: Writer, room?: Room): Buffer[]
  /** Sets keys and compression for later packets; the former ones are freed. */
  use(sealer: Sealer, resetSequence: boolean, compressor?: Compressor): void
  /** Frees the keys and the compression. Nothing is sealed after it. */
  free(): void
  readonly sequence: number
}

export function packetWriter(): PacketWriter {
  let sealer = plainSealer
  let compressor: Compressor | undefined
  let sequence = 0
  const free = (): void => {
    sealer.free()
    compressor?.free()
  }
  return {
    seal(message, room = Buffer.allocUnsafe) {
      const written = compressor ? compressor.pack(message) : message
      const counted = written.length - (sealer.padsLength ? 0 : 4)
      let padding = sealer.block - (counted % sealer.block)
      if (padding < shortestPadding_bytes) padding += sealer.block
      // The shortest packet has 16 bytes (RFC 4253 section 6); with a block of eight bytes it could come out
      // shorter.
      if (written.length + padding < 16) padding += sealer.block
      pad(written.gap(padding))
      const packet = written.bytes()
      packet.writeUInt32BE(packet.length - 4, 0)
      packet[4] = padding
      const sealed = sealer.seal(packet, sequence, room)
      sequence = (sequence + 1) >>> 0
      return sealed
    },
    use(next, resetSequence, nextCompressor) {
      free()
      sealer = next
      compressor = nextCompressor
      if (resetSequence) sequence = 0
    },
    free,
    get sequence() {
      return sequence
    },
  }
}

export interface PacketReader {
  push(chunk: Buffer): void
  /** The payload of the next whole packet. */
  next(): Buffer | undefined
  /** Declares that the last payload of `next` is no longer referenced. Its memory may be reused. */
  release(): void
  /** Sets keys and compression for later packets; the former ones are freed. */
  use(opener: Opener, resetSequence: boolean, decompressor?: Decompressor): void
  /** Frees the keys and the compression. Nothing is opened after it. */
  free(): void
  /** Bytes of packed payloads, since it was set to zero. */
  unpacked_bytes: number
  /** Sets the largest packet. */
  allow(largest_bytes: number): void
  /** The sequence number of the last packet of `next`. */
  readonly sequence: number
}

export function packetReader(): PacketReader {
  let opener: Opener = plainOpener
  let decompressor: Decompressor | undefined
  let sequence = 0
  let largest_bytes = strangersPacket_bytes
  /** The rest of the last chunk. */
  let chunk: Buffer = nothing
  /** The memory of a packet that spans chunks, and its length so far. */
  let partial: Buffer | undefined
  let filled = 0
  /** The memory of the last payload, if it is large and ours. */
  let lent: Buffer | undefined
  /** Bytes of the current packet with its MAC, once its length is known. */
  let whole = 0

  const skip = (count: number): void => {
    // An empty view would hold all the memory behind it, as long as the connection is idle.
    chunk = count === chunk.length ? nothing : chunk.subarray(count)
  }

  /** The first bytes that were not consumed yet, if they are all here. */
  const gather = (count: number): Buffer | undefined => {
    if (!partial) {
      if (chunk.length >= count) return chunk.subarray(0, count)
      if (chunk.length === 0) return undefined
      partial = memoryFor(count)
      filled = 0
    } else if (partial.length < count) {
      const larger = memoryFor(count)
      partial.copy(larger, 0, 0, filled)
      partial = larger
    }
    const copied = chunk.copy(partial, filled, 0, count - filled)
    filled += copied
    skip(copied)
    return filled === count ? partial.subarray(0, count) : undefined
  }

  const consume = (count: number): void => {
    if (partial) {
      if (partial.length >= large_bytes) lent = partial
      partial = undefined
    } else skip(count)
    whole = 0
  }

  const free = (): void => {
    opener.free()
    decompressor?.free()
  }

  /** In memory of its own, if it came packed; that of its packet is then free. */
  const unpack = (payload: Buffer): Buffer => {
    const unpacked = decompressor ? decompressor.unpack(payload, largest_bytes) : payload
    if (unpacked.buffer === payload.buffer) return unpacked
    reader.unpacked_bytes += unpacked.length
    if (lent) giveBack(lent)
    const memory = memoryFor(unpacked.length)
    unpacked.copy(memory)
    lent = memory.length >= large_bytes ? memory : undefined
    return memory.subarray(0, unpacked.length)
  }

  const reader: PacketReader = {
    unpacked_bytes: 0,
    push(more) {
      chunk = chunk.length === 0 ? more : Buffer.concat([chunk, more])
    },
    next() {
      lent = undefined
      if (whole === 0) {
        const head = gather(4)
        if (!head) return undefined
        const length = opener.length(head, sequence)
        // Five bytes of padding_length and padding are the least; the rest must be whole blocks.
        if (length < 1 + shortestPadding_bytes || length > largest_bytes)
          throw new ProtocolError('A packet has an impossible length.')
        if ((length + (opener.padsLength ? 4 : 0)) % opener.block !== 0)
          throw new ProtocolError('A packet is not padded to whole blocks.')
        whole = 4 + length + opener.tag
      }
      const packet = gather(whole)
      if (!packet) return undefined
      const body = opener.open(packet, sequence)
      consume(whole)
      const padding = body[0]!
      if (padding < shortestPadding_bytes || padding > body.length - 2)
        throw new ProtocolError('A packet has an impossible padding.')
      sequence = (sequence + 1) >>> 0
      const payload = body.subarray(1, body.length - padding)
      return decompressor ? unpack(payload) : payload
    },
    release() {
      if (lent) giveBack(lent)
      lent = undefined
    },
    use(next, resetSequence, nextDecompressor) {
      free()
      opener = next
      decompressor = nextDecompressor
      if (resetSequence) sequence = 0
    },
    free,
    allow(largest) {
      largest_bytes = largest
    },
    get sequence() {
      return (sequence - 1) >>> 0
    },
  }
  return reader
}
