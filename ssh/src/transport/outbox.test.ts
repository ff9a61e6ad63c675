// Pushed data arrives as it was, in its order, although the memory that it lay in is used again and
// again: with sockets that take their time, that fail, and with streams that must not be trusted to have let
// go of it.
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Duplex, duplexPair } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { releasesBuffers } from '../releases-buffers.ts'
import { outbox, type Outbox } from './outbox.ts'

const sizes = [40, 900, 4_096, 33_000, 131_200, 131_200, 200_000, 330_000]
const anything = randomBytes(sizes.at(-1)!)

/** Pushes packets of all sizes, a few in each turn, and waits where it has to; returns the sum. */
async function pushAll(near: Duplex, packets: number): Promise<string> {
  let goOn: (() => void) | undefined
  const out = outbox(near, () => goOn?.())
  const hash = createHash('sha256')
  for (let left = packets; left > 0;) {
    for (let now = Math.min(left, randomInt(1, 6)); now > 0; now -= 1, left -= 1) {
      const packet = out.room(sizes[randomInt(sizes.length)]!)
      packet.set(anything.subarray(0, packet.length))
      packet.writeUInt32BE(left, 0)
      hash.update(packet)
      out.push([packet])
    }
    if (out.congested) await new Promise<void>((resolve) => (goOn = resolve))
    else if (randomInt(3) > 0) await turn()
  }
  out.flush()
  near.end()
  return hash.digest('hex')
}

/** Reads bytes as late as possible: just before the callback. */
class LateSocket extends Duplex {
  readonly [releasesBuffers] = true
  readonly #hash = createHash('sha256')
  readonly sum = Promise.withResolvers<string>()

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    void (async () => {
      for (let turns = randomInt(1, 5); turns > 0; turns -= 1) await turn()
      for (const { chunk } of chunks) this.#hash.update(chunk)
      done()
    })()
  }

  override _final(done: () => void): void {
    this.sum.resolve(this.#hash.digest('hex'))
    done()
  }

  override _read(): void {}
}

test('to a socket that takes bytes late', async () => {
  const socket = new LateSocket()
  expect(await pushAll(socket, 300)).toBe(await socket.sum.promise)
})

test('to many of them at the same time, out of the same memory', async () => {
  const sums = Array.from({ length: 8 }, async () => {
    const socket = new LateSocket()
    return Promise.all([pushAll(socket, 100), socket.sum.promise])
  })
  for (const [pushed, taken] of await Promise.all(sums)) expect(taken).toBe(pushed)
})

test('to a socket of the kernel', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as unknown as [
    [Socket],
  ]
  const hash = createHash('sha256')
  far.on('data', (chunk: Buffer) => hash.update(chunk))
  const [pushed] = await Promise.all([pushAll(near, 200), once(far, 'end')])
  expect(hash.digest('hex')).toBe(pushed)
  far.end()
  server.close()
  await once(server, 'close')
})

test('through a stream that hands on what it was given, to a reader who keeps it', async () => {
  const [near, far] = duplexPair()
  const chunks: Buffer[] = []
  far.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [pushed] = await Promise.all([pushAll(near, 100), once(far, 'end')])
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  expect(hash.digest('hex')).toBe(pushed)
})

test('what a socket had when it failed is not written over', async () => {
  const had: Buffer[] = []
  const failing = new (class extends LateSocket {
    override _writev(chunks: { chunk: Buffer }[], done: (error?: Error) => void): void {
      had.push(...chunks.map(({ chunk }) => chunk))
      done(new Error('It broke.'))
    }
  })()
  failing.on('error', () => undefined)
  const out = outbox(failing, () => undefined)
  const packet = out.room(60_000)
  packet.fill(7)
  out.push([packet])
  out.flush()
  await new Promise((resolve) => failing.once('close', resolve))
  await pushAll(new LateSocket(), 100)
  expect(had.every((bytes) => bytes.every((byte) => byte === 7))).toBe(true)
  expect(had).toHaveLength(1)
})

test('memory that was given back belongs to whoever took it next', () => {
  const dones: (() => void)[] = []
  const socket = (): Duplex =>
    Object.assign(new Duplex({ read() {}, write: (_, __, done) => void dones.push(done) }), {
      [releasesBuffers]: true,
    })
  const [first, second, third] = [socket(), socket(), socket()].map((one) =>
    outbox(one, () => undefined),
  ) as [Outbox, Outbox, Outbox]
  first.push([first.room(200_000)])
  first.flush()
  // There is no room for this one behind the other.
  first.push([first.room(200_000)])
  dones.shift()!()
  const packet = second.room(200_000).fill(1)
  first.flush()
  dones.shift()!()
  for (let count = 0; count < 10; count += 1) third.room(200_000).fill(2)
  expect(packet.every((byte) => byte === 1)).toBe(true)
})
