// zlib@openssh.com (OpenSSH's PROTOCOL file, section 1.2): zlib as RFC 4253 section 6.2 has it, from the
// login on. The method `zlib`, which begins with the first keys, is never offered: strangers would get memory
// and work for nothing. All payloads of a direction are one stream of zlib, flushed with each packet. A
// payload that is not worth compressing goes as stored blocks (RFC 1951 section 3.2.4), which need no
// context. Every packet of ours ends at a whole byte, and a context only ever refers to bytes that it has
// packed itself, so that it can be dropped behind any packet and begun anew: idle connections hold no memory
// for what they send.
import { ProtocolError } from '../errors.ts'
import { Message } from '../messages.ts'
import { payloadOf, type Writer } from '../wire.ts'
import type { Compression, Compressor, CompressionContext, Decompressor } from './compression.ts'
import { packed, unpackingRoom } from './packing.ts'
import { Sample, small_bytes } from './sample.ts'
import { receivingContext, sendingContext, zlibHead, type ZlibContext } from './zlib-context.ts'

const longestStored_bytes = 0xffff
/**
 * The windows of channels bound data. Other messages are never so large and so much larger than their packet.
 */
const [largeMessage_bytes, mostExpansion] = [35_000, 50]

class ZlibCompressor implements Compressor {
  readonly #context: CompressionContext
  readonly #sample = new Sample()
  #hasBegun = false
  /** Undefined: payloads are stored. */
  #deflate: ZlibContext | undefined

  constructor(context: CompressionContext) {
    this.#context = context
  }

  pack(written: Writer): Writer {
    if (!this.#context.loggedIn) return written
    const payload = payloadOf(written)
    return packed(payload.length, (room) => {
      const at = this.#hasBegun ? 0 : zlibHead.copy(room)
      this.#hasBegun = true
      return at + this.#write(payload, room.subarray(at))
    })
  }

  free(): void {
    this.#deflate?.free()
    this.#deflate = undefined
  }

  #write(payload: Buffer, room: Buffer): number {
    const isSmall = payload.length < small_bytes
    // While there is a context small payloads go through it, too, so that it knows all output.
    if (!(isSmall ? this.#deflate && !this.#sample.isIdle : this.#sample.isWorth(payload.length))) this.free()
    else this.#deflate ??= sendingContext('deflate')
    if (!this.#deflate) return store(payload, room)
    const outcome = this.#deflate.run(payload, room)
    if (!outcome.done) throw new Error(`zlib failed: ${outcome.why}.`)
    this.#sample.tried(payload.length, outcome.bytes)
    return outcome.bytes
  }
}

/** As stored blocks, none of them the last of the stream. */
function store(payload: Buffer, room: Buffer): number {
  let at = 0
  for (let from = 0; from < payload.length; from += longestStored_bytes) {
    const length = Math.min(longestStored_bytes, payload.length - from)
    room[at] = 0
    room.writeUInt16LE(length, at + 1)
    room.writeUInt16LE(length ^ 0xffff, at + 3)
    payload.copy(room, at + 5, from, from + length)
    at += 5 + length
  }
  return at
}

class ZlibDecompressor implements Decompressor {
  readonly #context: CompressionContext
  #inflate: ZlibContext | undefined

  constructor(context: CompressionContext) {
    this.#context = context
  }

  unpack(payload: Buffer, most_bytes: number): Buffer {
    if (!this.#context.loggedIn) return payload
    this.#inflate ??= receivingContext('inflate')
    const room = unpackingRoom(most_bytes)
    const outcome = this.#inflate.run(payload, room)
    if (!outcome.done) throw new ProtocolError(refusals[outcome.why])
    const { bytes } = outcome
    if (bytes === 0) throw new ProtocolError(refusals.broken)
    const isData = room[0] === Message.channelData || room[0] === Message.channelExtendedData
    if (!isData && bytes > largeMessage_bytes && bytes > payload.length * mostExpansion)
      throw new ProtocolError(refusals['too large'])
    return room.subarray(0, bytes)
  }

  free(): void {
    this.#inflate?.free()
    this.#inflate = undefined
  }
}

export const refusals = {
  broken: 'A packet cannot be decompressed.',
  'too large': 'A packet is too large once it is decompressed.',
} as const

export const zlibOpenssh: Compression = {
  name: 'zlib@openssh.com',
  compressor: (context) => new ZlibCompressor(context),
  decompressor: (context) => new ZlibDecompressor(context),
}
