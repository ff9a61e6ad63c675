// The cost of compression for a packet, and its effect: both methods there and back, on text and on random
// data, in packets of several sizes; next to them a packet that nobody compresses. First the memory
// of a context, from the growth of the process while it makes many.
//   npm run bench -- compression [text file]
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Compression, CompressionContext } from '../ssh/src/compression/compression.ts'
import { ZlibContext, zlibHead, type ContextKind } from '../ssh/src/compression/zlib-context.ts'
import { zlibOpenssh } from '../ssh/src/compression/zlib.ts'
import { zstdHawser } from '../ssh/src/compression/zstd.ts'
import { Message } from '../ssh/src/messages.ts'
import { message, payloadOf } from '../ssh/src/wire.ts'
import { median, table, type Row } from './kit.ts'
import { root } from './programs.ts'

const sizes = [200, 1_024, 32_768, 131_072]
const rounds = 7
const most_bytes = 256 * 1024
const contexts = 200

const contextOf = (mode: CompressionContext['mode']): CompressionContext => ({
  mode,
  loggedIn: true,
  peerWants: false,
  isPlain: () => false,
  isSlow: () => false,
})

export default function compression(file = path.join(root, 'package-lock.json')): void {
  // First, and all of them at once: freed memory would be reused.
  const kept: ZlibContext[] = []
  const contextKinds = ['deflate', 'inflate', 'zstd', 'unzstd'] as const
  table(contextKinds.map((kind) => ({ context: kind, KiB: memoryOf(kind, kept) })))
  for (const context of kept) context.free()
  console.log()
  const text = readFileSync(file)
  const kinds = { text, random: randomBytes(text.length) }
  const methods: readonly [string, Compression, CompressionContext['mode']][] = [
    ['zlib@openssh.com', zlibOpenssh, 'always'],
    ['zstd@hawser', zstdHawser, 'always'],
    ['zstd@hawser, left alone', zstdHawser, 'auto'],
  ]
  const rows: Row[] = []
  for (const [name, method, mode] of methods)
    for (const [kind, bytes] of Object.entries(kinds))
      for (const size of sizes) rows.push({ method: name, kind, size, ...costOf(method, mode, bytes, size) })
  table(rows)
}

/** Medians over the rounds: of a packet there and back, and of its compressed part. */
function costOf(method: Compression, mode: CompressionContext['mode'], bytes: Buffer, size: number) {
  const count = Math.min(400, Math.floor(bytes.length / size))
  const [pack_us, unpack_us, left]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < rounds; round += 1) {
    const compressor = method.compressor(contextOf(mode))
    const decompressor = method.decompressor(contextOf(mode))
    let [packing_ms, unpacking_ms, wire_bytes] = [0, 0, 0]
    for (let at = 0; at < count; at += 1) {
      const written = message(Message.channelData, size + 16)
        .uint32(0)
        .string(bytes.subarray(at * size, (at + 1) * size))
      const before = performance.now()
      const packed = compressor.pack(written)
      packing_ms += performance.now() - before
      const wire = Buffer.from(payloadOf(packed))
      wire_bytes += wire.length
      const between = performance.now()
      decompressor.unpack(wire, most_bytes)
      unpacking_ms += performance.now() - between
    }
    compressor.free()
    decompressor.free()
    pack_us.push((packing_ms * 1_000) / count)
    unpack_us.push((unpacking_ms * 1_000) / count)
    left.push(wire_bytes / (count * size))
  }
  return {
    'pack µs': median(pack_us),
    'unpack µs': median(unpack_us),
    '% left': median(left) * 100,
  }
}

/** By the growth of resident memory, once each context was used. */
function memoryOf(kind: ContextKind, kept: ZlibContext[]): number {
  const input = used(kind)
  const output = Buffer.alloc(most_bytes)
  const before = process.memoryUsage().rss
  for (let count = 0; count < contexts; count += 1) {
    const context = new ZlibContext(kind)
    context.run(input, output)
    kept.push(context)
  }
  return (process.memoryUsage().rss - before) / contexts / 1024
}

function used(kind: ContextKind): Buffer {
  const text = Buffer.from(
    Array.from({ length: 20_000 }, (_, at) => `${(at * 7_919) % 9_973} ropes\n`).join(''),
  )
  if (kind === 'deflate' || kind === 'zstd') return text
  using packer = new ZlibContext(kind === 'inflate' ? 'deflate' : 'zstd')
  const room = Buffer.alloc(most_bytes)
  const outcome = packer.run(text, room)
  if (!outcome.done) throw new Error('nothing was packed')
  return Buffer.concat([kind === 'inflate' ? zlibHead : Buffer.alloc(0), room.subarray(0, outcome.bytes)])
}
