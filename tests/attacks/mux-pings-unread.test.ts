// A rogue device asks for answers and does not read them. Two bytes of an answer are a buffer, an entry of a
// queue and a callback: a queue that is bounded by its bytes is not bounded.
import { expect, test } from 'vitest'
import { openMux } from '@hawser/mux'
import { held_bytes, mib } from './held.ts'
import { repeated, rogueDevice, turns, wsBinary, wsPing, yamux } from './mux-device.ts'

const devices = 8

test('400,000 pings of a WebSocket whose answers are not read hold nothing', async () => {
  const device = rogueDevice()
  device.carrier.resume()
  await device.say(wsPing)
  const before = await held_bytes()
  for (let count = 0; count < 40; count++) {
    await device.say(repeated(wsPing, 10_000))
    await turns(1)
  }
  expect((await held_bytes()) - before).toBeLessThan(4 * mib)
  // It is not told that it did wrong, but gets one answer for all of them when it reads.
  expect(device.carrier.destroyed).toBe(false)
  device.line.resume()
})

test('pings of a WebSocket that come in one read get one answer', async () => {
  const device = rogueDevice()
  device.carrier.resume()
  await turns()
  device.line.read()
  const answers: Buffer[] = []
  device.line.on('data', (chunk: Buffer) => answers.push(chunk))
  const newest = Buffer.from('89840000000061626364', 'hex')
  await device.say(Buffer.concat([repeated(wsPing, 10_000), newest]))
  await turns()
  expect(Buffer.concat(answers).toString('hex', 0, 12)).toBe('8a0461626364')
})

test.each([
  ['pings', (): Buffer => yamux(2, 1, 0, 42)],
  ['openings', (index: number): Buffer => yamux(1, 1, 2 * index + 2, 0)],
])(
  'yamux %s, one to a read, whose answers are not read hold little more than their bytes',
  async (_, frameOf) => {
    const before = await held_bytes()
    const all = Array.from({ length: devices }, () => {
      const device = rogueDevice()
      return { device, mux: openMux(device.carrier, { role: 'client', mostIncoming: 0 }) }
    })
    let index = 0
    for (let count = 0; count < 25_000; count++) {
      index += 1
      for (const { device } of all) void device.line.write(wsBinary(frameOf(index)))
      if (count % 100 === 0) await turns(1)
    }
    await turns()
    const held = (await held_bytes()) - before
    expect(held).toBeLessThan(devices * mib)
    for (const { mux } of all) mux.close()
  },
)
