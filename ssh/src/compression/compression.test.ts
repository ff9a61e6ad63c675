// Both methods, packet by packet: what goes in comes out, whatever it is; what is not worth it passes; memory
// is counted and given back.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Message } from '../messages.ts'
import { message, payloadOf, type Writer } from '../wire.ts'
import type { Compression, CompressionContext, CompressionMode } from './compression.ts'
import { zlibOpenssh } from './zlib.ts'
import { available, contextMemory, ZlibContext } from './zlib-context.ts'
import { zstdHawser } from './zstd.ts'

const methods = [zlibOpenssh, zstdHawser]
const most_bytes = 256 * 1024
const { limit_bytes } = contextMemory
let before_bytes = 0

beforeEach(() => {
  before_bytes = contextMemory.held_bytes
})
afterEach(() => {
  vi.useRealTimers()
  contextMemory.limit_bytes = limit_bytes
  if (contextMemory.held_bytes !== before_bytes) throw new Error('The memory of a context is still counted.')
})

interface Settings {
  readonly mode?: CompressionMode
  readonly loggedIn?: boolean
  readonly slow?: boolean
  readonly plain?: readonly number[]
}

function contextOf({ mode = 'always', loggedIn = true, slow = false, plain = [] }: Settings) {
  const context = {
    mode,
    loggedIn,
    peerWants: false,
    isPlain: (channel: number) => plain.includes(channel),
    isSlow: () => slow,
  }
  return context satisfies CompressionContext
}

/** Both ends of one direction. */
function line(method: Compression, settings: Settings = {}) {
  const [ours, theirs] = [contextOf(settings), contextOf(settings)]
  const [compressor, decompressor] = [method.compressor(ours), method.decompressor(theirs)]
  return {
    ours,
    theirs,
    /** Returns the bytes on the wire, and checks that the other end reads the input. */
    pass(written: Writer): Buffer {
      const payload = Buffer.from(payloadOf(written))
      const wire = Buffer.from(payloadOf(compressor.pack(written)))
      expect(decompressor.unpack(wire, most_bytes).equals(payload)).toBe(true)
      return wire
    },
    [Symbol.dispose]() {
      compressor.free()
      decompressor.free()
    },
  }
}

const data = (bytes: Uint8Array, channel = 0): Writer =>
  message(Message.channelData, bytes.length + 16)
    .uint32(channel)
    .string(bytes)
const text = (bytes: number): Buffer =>
  Buffer.from('a rope that holds is a good rope; '.repeat(bytes / 34 + 1)).subarray(0, bytes)

test('this Node has both', () => expect(available()).toEqual({ zlib: true, zstd: true }))

test.each(methods)('$name: any row of packets comes out as it went in', (method) => {
  // Small values, which a failure can print.
  const kinds = { random: randomBytes, text, zeros: (bytes: number) => Buffer.alloc(bytes) }
  const piece = fc.record({
    kind: fc.constantFrom('random', 'text', 'zeros'),
    bytes: fc.oneof(fc.nat(300), fc.nat(140_000)),
    isData: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      using both = line(method)
      for (const { kind, bytes, isData } of pieces)
        if (isData) both.pass(data(kinds[kind](bytes)))
        else both.pass(message(Message.globalRequest, bytes + 8).raw(kinds[kind](Math.min(bytes, 34_000))))
    }),
    { numRuns: 50 },
  )
})

test.each(methods)('$name: text gets smaller, and more so when it was said before', (method) => {
  using both = line(method)
  const words = Buffer.from(randomBytes(6_000).toString('hex'))
  const [first, again] = [both.pass(data(words)), both.pass(data(words))]
  expect(first.length).toBeLessThan(words.length * 0.7)
  expect(again.length).toBeLessThan(first.length / 10)
})

test.each(methods)(
  '$name: nothing is compressed before the login, and everybody agrees on that',
  (method) => {
    using both = line(method, { loggedIn: false })
    expect(both.pass(data(text(5_000))).length).toBeGreaterThan(5_000)
    both.ours.loggedIn = both.theirs.loggedIn = true
    expect(both.pass(data(text(5_000))).length).toBeLessThan(500)
  },
)

test.each(methods)(
  '$name: data that does not shrink is passed on, and text behind it is compressed',
  (method) => {
    using both = line(method)
    let more = 0
    for (let packets = 0; packets < 200; packets += 1) {
      const bytes = randomBytes(32_768)
      more += both.pass(data(bytes)).length - bytes.length
    }
    expect(more / 200).toBeLessThan(24)
    const sizes = Array.from({ length: 64 }, () => both.pass(data(text(32_768))).length)
    expect(sizes.at(-1)).toBeLessThan(2_000)
  },
)

test.each(methods)(
  '$name: a context that is not used gives its memory back with the next small packet',
  (method) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    using both = line(method)
    both.pass(data(text(5_000)))
    const busy_bytes = contextMemory.held_bytes
    vi.advanceTimersByTime(30_000)
    const small = both.pass(message(Message.globalRequest).string('keepalive@openssh.com'))
    expect(small.length).toBeLessThan(40)
    expect(contextMemory.held_bytes).toBeLessThan(busy_bytes - 150_000)
    expect(both.pass(data(text(5_000))).length).toBeLessThan(500)
  },
)

test.each(methods)('$name: without memory for more contexts data passes as it is', (method) => {
  contextMemory.limit_bytes = 64 * 1024
  using other = new ZlibContext('inflate')
  using more = new ZlibContext('inflate')
  using both = line(method)
  const wire = both.pass(data(text(140_000)))
  expect(wire.length).toBeGreaterThan(140_000)
  contextMemory.limit_bytes = limit_bytes
  expect(both.pass(data(text(140_000))).length).toBeLessThan(5_000)
  other.free()
  more.free()
})

test.each(methods)('$name: far above the limit nothing that is compressed is taken', (method) => {
  const [compressor, decompressor] = [method.compressor(contextOf({})), method.decompressor(contextOf({}))]
  const wire = Buffer.from(payloadOf(compressor.pack(data(text(5_000)))))
  contextMemory.limit_bytes = 0
  expect(() => decompressor.unpack(wire, most_bytes)).toThrow('no memory for compression')
  compressor.free()
})

test('zstd@hawser: nothing is compressed where the link is good, until the peer compresses', () => {
  using both = line(zstdHawser, { mode: 'auto' })
  expect(both.pass(data(text(5_000))).length).toBeGreaterThan(5_000)
  expect(contextMemory.held_bytes).toBe(before_bytes)
  expect(both.theirs.peerWants).toBe(false)
  both.ours.peerWants = true
  expect(both.pass(data(text(5_000))).length).toBeLessThan(500)
  expect(both.theirs.peerWants).toBe(true)
})

test('zstd@hawser: a slow link is enough', () => {
  using both = line(zstdHawser, { mode: 'auto', slow: true })
  expect(both.pass(data(text(5_000))).length).toBeLessThan(500)
})

test('zstd@hawser: forwarded connections, requests and keystrokes pass as they are', () => {
  using both = line(zstdHawser, { plain: [3] })
  expect(both.pass(data(text(5_000), 3)).length).toBeGreaterThan(5_000)
  expect(both.pass(message(Message.channelRequest, 5_000).raw(text(5_000))).length).toBeGreaterThan(5_000)
  expect(both.pass(data(Buffer.alloc(100))).length).toBeGreaterThan(100)
  expect(contextMemory.held_bytes).toBe(before_bytes)
  expect(both.pass(data(text(5_000), 4)).length).toBeLessThan(500)
})

test.each(methods)('$name: a payload larger than a packet may be is refused', (method) => {
  const context = contextOf({})
  const [compressor, decompressor] = [method.compressor(context), method.decompressor(context)]
  const wire = Buffer.from(payloadOf(compressor.pack(data(Buffer.alloc(50_000)))))
  expect(wire.length).toBeLessThan(500)
  expect(() => decompressor.unpack(wire, 40_000)).toThrow('too large once it is decompressed')
  compressor.free()
  decompressor.free()
})

test.each<[string, Compression, string, string]>([
  ['no flags', zstdHawser, '', 'cannot be decompressed'],
  ['flags alone', zstdHawser, '00', 'cannot be decompressed'],
  ['unknown flags', zstdHawser, '5e0000000008', 'cannot be decompressed'],
  ['no frame', zstdHawser, 'ffffffffffffffffff01', 'cannot be decompressed'],
  ['a window of 1 GiB', zstdHawser, '28b52ffd00a001000001', 'cannot be decompressed'],
  [
    'an empty frame and one more',
    zstdHawser,
    '28b52ffd000001000028b52ffd000001000001',
    'cannot be decompressed',
  ],
  ['something that is no data of a channel', zstdHawser, '28b52ffd00480b00000201', 'cannot be decompressed'],
  ['no zlib', zlibOpenssh, 'ffff', 'cannot be decompressed'],
  ['a head alone', zlibOpenssh, '789c', 'cannot be decompressed'],
  ['a dictionary', zlibOpenssh, '78bb00000001', 'cannot be decompressed'],
  ['bytes behind the end', zlibOpenssh, '789c030000000001ffff', 'cannot be decompressed'],
])('%s is refused', (_, method, hex, sentence) => {
  const decompressor = method.decompressor(contextOf({}))
  try {
    expect(() => decompressor.unpack(Buffer.from(hex, 'hex'), most_bytes)).toThrow(sentence)
  } finally {
    decompressor.free()
  }
})

test('zstd@hawser: a packed payload before the login is refused', () => {
  const decompressor = zstdHawser.decompressor(contextOf({ loggedIn: false }))
  expect(() => decompressor.unpack(Buffer.from('5e0001', 'hex'), most_bytes)).toThrow('before the login')
})
