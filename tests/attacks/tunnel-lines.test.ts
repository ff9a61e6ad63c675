// The control line of a version 1 tunnel, held by a rogue device with a good token: it begins lines that it
// does not end, sends longer ones than agents do, and does not read ours.
import { expect, test, vi } from 'vitest'
import { pickUps, revdialTunnel } from '../../server/src/tunnel/accept/revdial.ts'
import { Meter } from '../../server/src/tunnel/meter.ts'
import { held_bytes, mib } from './held.ts'
import { rogueDevice, turns, wsBinary, type RogueDevice } from './mux-device.ts'

const device = { uid: 'd', tenant_id: 't', public_key: '', mustProve: false }
const waiting = pickUps(() => ({ known: () => Promise.resolve(), [Symbol.dispose]: () => undefined }))

function tunnel(): { rogue: RogueDevice; tunnel: ReturnType<typeof revdialTunnel> } {
  const rogue = rogueDevice()
  return { rogue, tunnel: revdialTunnel(device, rogue.carrier, waiting, new Meter()) }
}

test('the beginning of a line keeps no more than itself', async () => {
  const before = await held_bytes()
  const all = Array.from({ length: 200 }, tunnel)
  for (const { rogue } of all) {
    rogue.line.resume()
    // Not in Latin: text of two bytes a letter where text is kept.
    const lines = `${'{"command":"keep-alive"}\n'.repeat(2_600)}{"command":"\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436\u0436`
    await rogue.say(wsBinary(Buffer.from(lines)))
  }
  await turns()
  expect((await held_bytes()) - before).toBeLessThan(200 * 20 * 1024 + 2 * mib)
  for (const { tunnel: one, rogue } of all) {
    expect(rogue.carrier.destroyed).toBe(false)
    one.close('That was all.')
  }
})

test('a line that is longer than those of agents ends the tunnel, however it comes', async () => {
  const long = `{"command":"keep-alive","filling":"${'x'.repeat(4_096)}"}\n`
  for (const size of [long.length, 1_000]) {
    const { rogue, tunnel: one } = tunnel()
    rogue.line.resume()
    for (let at = 0; at < long.length; at += size)
      void rogue.say(wsBinary(Buffer.from(long.slice(at, at + size))))
    await one.ended
    expect(rogue.carrier.errored?.message).toMatch(/too long/)
  }
})

test('a device that does not read its tunnel, but keeps talking, loses it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const { rogue, tunnel: one } = tunnel()
    await turns()
    // Half a year of keep-alives.
    for (let count = 0; count < 500_000 && !rogue.carrier.destroyed; count++) vi.advanceTimersByTime(30_000)
    expect(rogue.carrier.destroyed).toBe(true)
    await one.ended
  } finally {
    vi.useRealTimers()
  }
})
