// Back-pressure and fairness: a slow reader stops its sender and nobody else, and nothing piles up.
import { duplexPair, Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { openMux, StreamRefused } from '../src/index.ts'
import { accept, bytePair, closed, muxPair, rudePeer, takeAll, takeBytes, turns, written } from './pairs.ts'

const KiB = 1024

/** Writes until a write has to wait, and says how much went through. */
async function fill(stream: Duplex, chunk_bytes: number): Promise<number> {
  let through = 0
  for (;;) {
    let done = false
    stream.write(Buffer.alloc(chunk_bytes), () => (done = true))
    await turns()
    if (!done) return through
    through += chunk_bytes
  }
}

test.each([256 * KiB, 1024 * KiB])(
  'a reader that stops lets %i bytes come and no more, and others go on',
  async (window_bytes) => {
    const { client, server } = muxPair({}, { window_bytes })
    const stuck = client.open()
    const unread = await accept(server)
    expect(await fill(stuck, 16 * KiB)).toBe(window_bytes)
    expect(unread.readableLength).toBeLessThanOrEqual(window_bytes)

    const other = client.open()
    const taken = takeAll(await accept(server))
    await written(other, Buffer.alloc(3_000_000, 1))
    other.end()
    expect((await taken).length).toBe(3_000_000)

    // Reading goes on where it stopped, and so does writing.
    stuck.end()
    expect((await takeAll(unread)).length).toBe(window_bytes + 16 * KiB)
  },
)

test('streams release buffers, as @hawser/ssh asks for it, if what carries them does', async () => {
  const releases = Symbol.for('hawser.releasesBuffers')
  const { client, server } = muxPair()
  const overMemory = client.open()
  await accept(server)
  expect(Reflect.get(overMemory, releases)).toBe(false)
  await using sockets = await bytePair()
  expect(Reflect.get(sockets.server, releases)).toBe(true)
  using mux = openMux(sockets.server, { role: 'server' })
  expect(Reflect.get(mux.open(), releases)).toBe(true)
})

test('the window is given in the opening and in its answer', async () => {
  const peer = rudePeer({ role: 'client', window_bytes: 512 * KiB })
  peer.mux.open()
  expect(await peer.hear(12)).toBe('000100010000000100040000')

  const other = rudePeer({ role: 'server', window_bytes: 256 * KiB })
  other.say('000100010000000100000000')
  await accept(other.mux)
  expect(await other.hear(12)).toBe('000100020000000100000000')
})

test('credit is given for what was read, when it is half of the window', async () => {
  const peer = rudePeer({ role: 'server', window_bytes: 256 * KiB })
  peer.say('000100010000000100000000')
  const stream = await accept(peer.mux)
  await peer.hear(12)
  peer.say(`000000000000000100040000${'00'.repeat(256 * KiB)}`)
  await takeBytes(stream, 128 * KiB - 1)
  await turns()
  expect(peer.line.readableLength).toBe(0)
  await takeBytes(stream, 1)
  expect(await peer.hear(12)).toBe('000100000000000100020000')
  await takeBytes(stream, 128 * KiB)
  expect(await peer.hear(12)).toBe('000100000000000100020000')
})

test('a reader may ask for a whole window at once, again and again', async () => {
  const { client, server } = muxPair({}, { window_bytes: 256 * KiB })
  const stream = client.open()
  const reader = await accept(server)
  stream.end(Buffer.alloc(5 * 256 * KiB))
  for (let round = 0; round < 5;) {
    if (reader.read(256 * KiB) === null) await turns(1)
    else round++
  }
})

test('streams that wait to send get a frame each in turn', async () => {
  const [line, ours] = duplexPair()
  const mux = openMux(ours, { role: 'client' })
  const streams = [mux.open(), mux.open(), mux.open()]
  await takeBytes(line, 36)
  for (const stream of streams) stream.write(Buffer.alloc(250 * KiB))
  const order: number[] = []
  for (let left = 3 * 250 * KiB; left > 0;) {
    const header = await takeBytes(line, 12)
    const length = header.readUInt32BE(8)
    expect(length).toBeLessThanOrEqual(64 * KiB)
    await takeBytes(line, length)
    order.push(header.readUInt32BE(4))
    left -= length
  }
  // The first has a start, because it came when nobody waited.
  expect(order.slice(0, 10)).toEqual([1, 1, 3, 5, 1, 3, 5, 1, 3, 5])
})

test('a small write does not wait for a large one to finish', async () => {
  const { client, server } = muxPair()
  const large = client.open()
  const largeReader = await accept(server)
  const small = client.open()
  const smallReader = await accept(server)
  let largeTaken = 0
  largeReader.on('data', (chunk: Buffer) => (largeTaken += chunk.length))
  const takenBefore = new Promise<number>((resolve) => smallReader.once('data', () => resolve(largeTaken)))
  large.end(Buffer.alloc(20_000_000))
  small.write('x')
  expect(await takenBefore).toBeLessThan(1_000_000)
  await closedAfter(largeReader)
  expect(largeTaken).toBe(20_000_000)
})

async function closedAfter(reader: Duplex): Promise<void> {
  reader.end()
  expect(await closed(reader)).toBeUndefined()
}

test('a carrier that takes nothing makes writers wait, and little is kept', async () => {
  let kept = 0
  const carrier = new Duplex({ read: () => undefined, write: (chunk: Buffer) => void (kept += chunk.length) })
  const mux = openMux(carrier, { role: 'client' })
  const streams = Array.from({ length: 50 }, () => mux.open())
  let done = 0
  for (const stream of streams) stream.write(Buffer.alloc(200 * KiB), () => done++)
  await turns()
  expect(done).toBe(0)
  expect(kept + carrier.writableLength).toBeLessThan(256 * KiB)
})

test('a write is done when the carrier has let go of its bytes, and not before', async () => {
  const held: (() => void)[] = []
  const carrier = new Duplex({ read: () => undefined, writev: (_, done) => void held.push(done) })
  const stream = openMux(carrier, { role: 'client' }).open()
  held.shift()!()
  let done = false
  stream.write(Buffer.alloc(100 * KiB), () => (done = true))
  // In two frames.
  for (let left = 2; left > 0; left -= 1) {
    await turns()
    expect(done).toBe(false)
    held.shift()!()
  }
  await turns()
  expect(done).toBe(true)
})

test('opening on a carrier that takes nothing fails before much is kept, and does not end the session', async () => {
  const carrier = new Duplex({ read: () => undefined, write: () => undefined })
  const mux = openMux(carrier, { role: 'client' })
  const streams = Array.from({ length: 20 }, () => mux.open(Buffer.alloc(16 * KiB)))
  await turns()
  expect(streams.filter((stream) => stream.errored instanceof StreamRefused).length).toBeGreaterThan(10)
  expect(carrier.writableLength).toBeLessThan(160 * KiB)
  expect(mux.streams).toBeGreaterThan(0)
})

test('first bytes of any size arrive, and leave with the opening as far as they fit', async () => {
  const { client, server } = muxPair()
  const first = Buffer.alloc(300 * KiB, 7)
  const stream = client.open(first)
  stream.end()
  expect((await takeAll(await accept(server))).equals(first)).toBe(true)

  const writes: number[] = []
  const carrier = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _, done) => (writes.push(chunk.length), done()),
  })
  openMux(carrier, { role: 'client' }).open(Buffer.from('first'))
  expect(writes).toEqual([12 + 12 + 5])
})

test('small writes that wait leave together', async () => {
  const frames: number[] = []
  let release: (() => void) | undefined
  const carrier = new Duplex({
    writableHighWaterMark: 1,
    read: () => undefined,
    writev: (chunks, done) => {
      frames.push(chunks.reduce((sum, { chunk }: { chunk: Buffer }) => sum + chunk.length, 0))
      release = done
    },
  })
  const stream = openMux(carrier, { role: 'client' }).open()
  for (let count = 0; count < 100; count++) stream.write('x')
  release?.()
  await turns()
  release?.()
  await turns()
  release?.()
  await turns()
  expect(frames).toEqual([12, 13, 12 + 99])
})
