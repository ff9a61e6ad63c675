// zstd@hawser, between our own ends. A byte of flags follows the payload of every packet,
// from the NEWKEYS on:
//   1  the payload is packed: a piece of a zstd frame that continues with the next packed payload, flushed
//   2  the context of this direction was dropped; the next packed payload begins a new frame
//   4  the sender wants packed payloads itself
// Only data of channels is ever packed, and only after the login; what is not worth it passes as it is. The
// sender decides for each packet: whether it compresses at all depends on the mode, on the link and on flag
// 4; small payloads, data that does not shrink (sample.ts) and forwarded connections are left alone. The
// flags lie behind the payload, so that nothing has to be moved where it is left alone.
import { ProtocolError } from '../errors.ts'
import { Message } from '../messages.ts'
import { payloadOf, type Writer } from '../wire.ts'
import type { Compression, Compressor, CompressionContext, Decompressor } from './compression.ts'
import { packed, unpackingRoom } from './packing.ts'
import { Sample, small_bytes } from './sample.ts'
import { refusals } from './zlib.ts'
import { receivingContext, sendingContext, type ZlibContext } from './zlib-context.ts'

const Flag = { packed: 1, dropped: 2, wanted: 4 } as const
const anyFlag = Flag.packed | Flag.dropped | Flag.wanted

const isData = (type: number | undefined): boolean =>
  type === Message.channelData || type === Message.channelExtendedData

class ZstdCompressor implements Compressor {
  readonly #context: CompressionContext
  readonly #sample = new Sample()
  #isWanted = false
  #zstd: ZlibContext | undefined

  constructor(context: CompressionContext) {
    this.#context = context
  }

  pack(written: Writer): Writer {
    const payload = payloadOf(written)
    if (!this.#compresses(payload.length)) return written.byte(0)
    if (this.#zstd && payload.length < small_bytes && this.#sample.isIdle) {
      this.free()
      return written.byte(Flag.wanted | Flag.dropped)
    }
    if (!this.#isWorth(payload)) return written.byte(Flag.wanted)
    const zstd = (this.#zstd ??= sendingContext('zstd'))
    if (!zstd) return written.byte(Flag.wanted)
    return packed(payload.length, (room) => {
      const outcome = zstd.run(payload, room)
      if (!outcome.done) throw new Error(`zstd failed: ${outcome.why}.`)
      this.#sample.tried(payload.length, outcome.bytes)
      return outcome.bytes
    }).byte(Flag.wanted | Flag.packed)
  }

  free(): void {
    this.#zstd?.free()
    this.#zstd = undefined
  }

  #compresses(bytes: number): boolean {
    const { mode, loggedIn, peerWants } = this.#context
    if (!loggedIn) return false
    // Called for every packet, because that measures the link.
    this.#isWanted ||= this.#context.isSlow(bytes) || peerWants || mode === 'always'
    return this.#isWanted
  }

  #isWorth(payload: Buffer): boolean {
    return (
      payload.length >= small_bytes &&
      isData(payload[0]) &&
      !this.#context.isPlain(payload.readUInt32BE(1)) &&
      this.#sample.isWorth(payload.length)
    )
  }
}

class ZstdDecompressor implements Decompressor {
  readonly #context: CompressionContext
  #unzstd: ZlibContext | undefined

  constructor(context: CompressionContext) {
    this.#context = context
  }

  unpack(payload: Buffer, most_bytes: number): Buffer {
    const flags = payload[payload.length - 1]
    const rest = payload.subarray(0, -1)
    if (flags === undefined || (flags & ~anyFlag) !== 0 || rest.length === 0)
      throw new ProtocolError(refusals.broken)
    if (flags === 0) return rest
    if (!this.#context.loggedIn) throw new ProtocolError('A packet is compressed before the login.')
    if (flags & Flag.wanted) this.#context.peerWants = true
    if (flags & Flag.dropped) this.free()
    return flags & Flag.packed ? this.#unpack(rest, most_bytes) : rest
  }

  free(): void {
    this.#unzstd?.free()
    this.#unzstd = undefined
  }

  #unpack(payload: Buffer, most_bytes: number): Buffer {
    this.#unzstd ??= receivingContext('unzstd')
    const room = unpackingRoom(most_bytes)
    const outcome = this.#unzstd.run(payload, room)
    if (!outcome.done) throw new ProtocolError(refusals[outcome.why])
    if (outcome.bytes === 0 || !isData(room[0])) throw new ProtocolError(refusals.broken)
    return room.subarray(0, outcome.bytes)
  }
}

export const zstdHawser: Compression = {
  name: 'zstd@hawser',
  compressor: (context) => new ZstdCompressor(context),
  decompressor: (context) => new ZstdDecompressor(context),
}
