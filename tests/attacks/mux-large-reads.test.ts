// A rogue device puts a little of what counts into large reads of what does not: each read of 64 KiB has some
// bytes of payload, and pings. Whoever does not read yet keeps the bytes that count, and not the reads behind
// them.
import { expect, test } from 'vitest'
import { openMux } from '@hawser/mux'
import { held_bytes, mib } from './held.ts'
import { repeated, rogueDevice, turns, wsBinary, yamux } from './mux-device.ts'

const read_bytes = 64 * 1024
const longPing = Buffer.concat([Buffer.from('89fd00000000', 'hex'), Buffer.alloc(125)])

/** As the kernel would hand it over: one piece of memory. */
function read(first: Buffer, filling: Buffer): Buffer {
  const bytes = Buffer.allocUnsafeSlow(read_bytes)
  const rest = Math.floor((read_bytes - first.length) / filling.length)
  first.copy(bytes)
  repeated(filling, rest).copy(bytes, first.length)
  return bytes.subarray(0, first.length + rest * filling.length)
}

test('a stream of bytes that nobody reads keeps single bytes, not the reads they came in', async () => {
  const device = rogueDevice()
  device.line.resume()
  const before = await held_bytes()
  const reads = 600
  for (let count = 0; count < reads; count++) {
    await device.say(read(wsBinary(Buffer.of(count & 0xff)), longPing))
    await turns(1)
  }
  expect((await held_bytes()) - before).toBeLessThan(4 * mib)
  let got = 0
  for await (const piece of device.carrier.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    got += piece.length
    if (got === reads) break
  }
  expect(got).toBe(reads)
})

test('streams of a session that nobody reads keep at most twice what their windows allow', async () => {
  const device = rogueDevice()
  device.line.resume()
  const mux = openMux(device.carrier, { role: 'client', mostIncoming: 0 })
  const before = await held_bytes()
  const streams = Array.from({ length: 16 }, () => mux.open())
  await turns()
  const piece = 17 * 1024
  for (const [index] of streams.entries())
    for (let sent = 0; sent + piece <= mib; sent += piece) {
      const frame = Buffer.concat([yamux(0, 0, 2 * index + 1, piece), Buffer.alloc(piece)])
      const filled = read(frame, yamux(2, 2, 0, 7))
      await device.say(wsBinary(filled))
      await turns(1)
    }
  expect((await held_bytes()) - before).toBeLessThan(2 * streams.length * mib + 4 * mib)
  mux.close()
})

test('a stream whose reader waits for more keeps its one byte, not the read it came in', async () => {
  const device = rogueDevice()
  device.line.resume()
  const mux = openMux(device.carrier, { role: 'client', mostIncoming: 0 })
  const before = await held_bytes()
  const streams = Array.from({ length: 250 }, () => mux.open())
  for (const stream of streams) stream.on('readable', () => undefined)
  await turns()
  for (const [index] of streams.entries()) {
    await device.say(
      wsBinary(read(Buffer.concat([yamux(0, 0, 2 * index + 1, 1), Buffer.of(1)]), yamux(2, 2, 0, 7))),
    )
    await turns(1)
  }
  expect(streams.every((stream) => stream.readableLength === 1)).toBe(true)
  expect((await held_bytes()) - before).toBeLessThan(6 * mib)
  mux.close()
})
