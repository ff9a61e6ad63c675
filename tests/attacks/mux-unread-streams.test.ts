// A rogue device fills the windows of many streams that nobody reads yet: each is allowed, all together are
// not.
import { expect, test } from 'vitest'
import { openMux } from '@hawser/mux'
import { held_bytes, mib } from './held.ts'
import { rogueDevice, turns, wsBinary, yamux } from './mux-device.ts'

test('what all streams of a session hold together is bounded; those who hold most go, and who reads stays', async () => {
  const device = rogueDevice()
  device.line.resume()
  const mux = openMux(device.carrier, { role: 'client', mostIncoming: 0 })
  const reader = mux.open()
  let read = 0
  reader.on('data', (piece: Buffer) => (read += piece.length))
  const before = await held_bytes()
  const streams = Array.from({ length: 160 }, () => mux.open())
  await turns()
  const piece = 64 * 1024
  for (const [index] of streams.entries())
    for (let sent = 0; sent + piece <= mib; sent += piece) {
      await device.say(wsBinary(Buffer.concat([yamux(0, 0, 2 * index + 3, piece), Buffer.alloc(piece)])))
      await device.say(wsBinary(Buffer.concat([yamux(0, 0, 1, 1), Buffer.of(1)])))
    }
  await turns()
  expect((await held_bytes()) - before).toBeLessThan(48 * mib)
  expect(streams.filter((stream) => stream.destroyed).length).toBeGreaterThan(100)
  expect(streams.some((stream) => !stream.destroyed)).toBe(true)
  expect(reader.destroyed).toBe(false)
  expect(read).toBe(160 * 16)
  mux.close()
})
