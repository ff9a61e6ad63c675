// Streams that outlive their carriers: whatever the moment of a cut, both readers get every byte once and in
// order. Carriers are cut between any two bytes; the ends find each other again as an owner would do it.
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { duplexPair, Transform, type Duplex } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import {
  ProtocolError,
  ResumableMemory,
  ResumableStream,
  resumableWindow_bytes,
  StreamEvicted,
  StreamLost,
  StreamReset,
} from '../src/index.ts'
import { times } from '../../tests/harness/tier.ts'
import { takeAll, takeBytes } from './pairs.ts'

const grace_ms = 60_000

/** A carrier whose bytes take a turn of the event loop each way, so that cuts lose some. */
function carrierPair(): [Duplex, Duplex] {
  return duplexPair({ highWaterMark: 32 * 1024 })
}

interface Ends {
  readonly one: ResumableStream
  readonly other: ResumableStream
  /** Cuts the present carrier. */
  cut(): void
  /** Gives both the next one. */
  join(): void
}

function ends(options: Partial<ConstructorParameters<typeof ResumableStream>[0]> = {}): Ends {
  const one = new ResumableStream({ grace_ms, ...options })
  const other = new ResumableStream({ grace_ms, ...options })
  let carriers = carrierPair()
  one.attach(carriers[0])
  other.attach(carriers[1])
  return {
    one,
    other,
    cut() {
      for (const carrier of carriers) carrier.destroy()
    },
    join() {
      carriers = carrierPair()
      const counts = [one.detach(), other.detach()] as const
      one.attach(carriers[0], counts[1])
      other.attach(carriers[1], counts[0])
    },
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** With an error or without one. */
const closed = (stream: Duplex): Promise<void> =>
  new Promise((resolve) => (stream.closed ? resolve() : void stream.once('close', resolve)))

/** Writes in pieces of any size, waiting when told to. */
async function say(stream: Duplex, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const size = randomInt(1, randomInt(2, 100_000))
    if (!stream.write(bytes.subarray(at, at + size))) await once(stream, 'drain')
    at += size
  }
  stream.end()
}

/** Reads everything, and stops reading now and then. */
async function hear(stream: Duplex): Promise<Buffer> {
  const pieces: Buffer[] = []
  stream.on('data', (piece: Buffer) => {
    pieces.push(piece)
    if (randomInt(20) > 0) return
    stream.pause()
    setImmediate(() => stream.resume())
  })
  await once(stream, 'end')
  return Buffer.concat(pieces)
}

test('bytes pass both ways, each direction ends by itself, and nothing is left behind', async () => {
  const memory = new ResumableMemory(1024 * 1024)
  const { one, other } = ends({ memory })
  one.end('question')
  expect((await takeAll(other)).toString()).toBe('question')
  other.end('answer')
  expect((await takeAll(one)).toString()).toBe('answer')
  await eventually(() => expect(one.closed && other.closed).toBe(true))
  expect(one.errored ?? other.errored).toBeNull()
  expect([memory.replay_bytes, memory.unread_bytes]).toEqual([0, 0])
})

test('cuts at any moment lose, double and reorder nothing', { timeout: 120_000 }, async () => {
  for (let run = 0; run < times(20, 400); run++) {
    const sent = [randomBytes(randomInt(3_000_000)), randomBytes(randomInt(3_000_000))] as const
    const { one, other, cut, join } = ends()
    const work = Promise.all([hear(one), hear(other), say(one, sent[0]), say(other, sent[1])])
    const state = { over: false }
    const done = work.finally(() => (state.over = true))
    const cutting = async (): Promise<void> => {
      while (!state.over) {
        for (let turns = randomInt(60); turns > 0 && !state.over; turns--) await turn()
        if (state.over) return
        cut()
        for (let turns = randomInt(3); turns > 0; turns--) await turn()
        join()
      }
    }
    const [[fromOther, fromOne]] = await Promise.all([done, cutting()])
    expect(fromOne.equals(sent[0]) && fromOther.equals(sent[1]), `run ${run}`).toBe(true)
  }
})

test('what is written while the carrier is away waits, and the writer is held back when it is too much', async () => {
  const { one, other, cut, join } = ends()
  cut()
  await once(one, 'away')
  const block = randomBytes(256 * 1024)
  let written = 0
  for (; written < 32 && one.write(block); written++) await turn()
  // One window, and what Node itself keeps before it says that it is too much.
  expect(written * block.length).toBeLessThanOrEqual(resumableWindow_bytes + 2 * block.length)
  join()
  const got = await takeBytes(other, (written + 1) * block.length)
  expect(got.subarray(-block.length).equals(block)).toBe(true)
})

test('a reader that stopped costs one window, and does not keep its own end from sending', async () => {
  const memory = new ResumableMemory(64 * 1024 * 1024)
  const { one, other } = ends({ memory })
  const block = Buffer.alloc(64 * 1024)
  for (let index = 0; index < 64; index++) one.write(block)
  for (let turns = 0; turns < 200; turns++) await turn()
  expect(memory.unread_bytes).toBeLessThanOrEqual(resumableWindow_bytes + block.length)
  expect(memory.replay_bytes).toBeLessThanOrEqual(2 * resumableWindow_bytes)
  const all = randomBytes(3 * 1024 * 1024)
  other.end(all)
  expect((await takeAll(one)).equals(all)).toBe(true)
})

test('many readers that stopped cost together what their memory allows; the largest ends', async () => {
  const memory = new ResumableMemory(1024 * 1024)
  const pairs = Array.from({ length: 20 }, () => ends({ memory }))
  for (const { one } of pairs) for (let index = 0; index < 8; index++) one.write(Buffer.alloc(64 * 1024))
  for (let turns = 0; turns < 400; turns++) await turn()
  expect(memory.unread_bytes).toBeLessThanOrEqual(memory.most_bytes)
  // Each may keep its share to be sent again, however many there are.
  expect(memory.replay_bytes).toBeLessThanOrEqual(memory.most_bytes + 20 * 3 * 64 * 1024)
  expect(pairs.some(({ other }) => other.errored instanceof StreamEvicted)).toBe(true)
})

test('without the next carrier in time both ends give up', async () => {
  const { one, other, cut } = ends({ grace_ms: 50 })
  one.write('lost')
  cut()
  await Promise.all([closed(one), closed(other)])
  expect([one.errored, other.errored].every((error) => error instanceof StreamLost)).toBe(true)
})

test('an end that is destroyed tells the other one at once', async () => {
  const { one, other } = ends()
  one.destroy()
  await closed(other)
  expect(other.errored).toBeInstanceOf(StreamReset)
})

test('what was read is said once in a while, not for each packet', async () => {
  const { one, other } = ends()
  other.resume()
  const [near, far] = carrierPair()
  let frames = 0
  const counting = new Transform({
    transform(chunk: Buffer, _, done) {
      frames += 1
      done(null, chunk)
    },
  })
  const counts = [one.detach(), other.detach()] as const
  other.attach(near, counts[0])
  far.pipe(counting).resume()
  one.destroy()
  for (let index = 0; index < 100; index++) {
    far.write(Buffer.from([0, 0, 0, 1, 0x41]))
    await turn()
  }
  await eventually(() => expect(frames).toBe(1))
})

test('an end that hears nothing although it should asks whether the connection is alive', async () => {
  const stalled = vi.fn<() => void>()
  const one = new ResumableStream({ grace_ms, onStalled: stalled, stalled_ms: 20 })
  const [near, far] = carrierPair()
  one.attach(near)
  far.resume()
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(stalled).not.toHaveBeenCalled()
  one.write('x')
  await eventually(() => expect(stalled.mock.calls.length).toBeGreaterThan(1))
  far.write(Buffer.from([1, 0, 0, 1]))
  await turn()
  stalled.mockClear()
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(stalled).not.toHaveBeenCalled()
})

test.each([
  ['acknowledges more than was sent', '0100000a', 'credit'],
  ['sends more than a window', '00100001', 'window'],
  ['ends twice', '0200000002000000', 'finished twice'],
  ['sends after its end', '020000000000000141', 'finished twice'],
  ['sends a frame of no type', '09000000', 'type'],
])('a peer that %s is cut off', async (_, hex, rule) => {
  const one = new ResumableStream({ grace_ms })
  const [near, far] = carrierPair()
  one.attach(near)
  one.write('hello')
  far.write(Buffer.from(hex, 'hex'))
  await closed(one)
  expect((one.errored as ProtocolError).rule).toBe(rule)
})

test.each([
  { received: 6, read: 0 },
  { received: -1, read: -1 },
  { received: 3, read: 4 },
  { received: 0.5, read: 0 },
  { received: Number.NaN, read: 0 },
])('a peer that resumes with %o is refused', (counts) => {
  const one = new ResumableStream({ grace_ms })
  one.attach(carrierPair()[0])
  one.write('hello')
  one.detach()
  expect(() => one.attach(carrierPair()[0], counts)).toThrow(ProtocolError)
  expect(one.destroyed).toBe(true)
})

test('a peer that takes back what it has acknowledged is refused', async () => {
  const one = new ResumableStream({ grace_ms })
  const [near, far] = carrierPair()
  one.attach(near)
  one.write('hello')
  far.write(Buffer.from('01000005', 'hex'))
  await turn()
  await turn()
  one.detach()
  expect(() => one.attach(carrierPair()[0], { received: 2, read: 2 })).toThrow(ProtocolError)
})

test('a peer that acknowledges what has not left yet gets no bytes of other streams', async () => {
  // A carrier that keeps its bytes: it was told to send them and has not.
  const kept: Buffer[] = []
  const carrier = new Transform({
    writableHighWaterMark: 1024 * 1024,
    transform(chunk: Buffer) {
      kept.push(chunk)
    },
  })
  const victim = new ResumableStream({ grace_ms })
  const rogue = new ResumableStream({ grace_ms })
  rogue.attach(carrier)
  rogue.write(Buffer.alloc(200 * 1024, 0x41))
  rogue.write(Buffer.alloc(100 * 1024, 0x41))
  await turn()
  carrier.push(Buffer.from('01030000', 'hex'))
  await turn()
  const [near] = carrierPair()
  victim.attach(near)
  victim.write(Buffer.alloc(600 * 1024, 0x42))
  await turn()
  expect(kept.length).toBeGreaterThan(0)
  expect(kept.some((chunk) => chunk.length > 4 && chunk.includes(0x42))).toBe(false)
  rogue.destroy()
})
