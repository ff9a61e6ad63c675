// News of a node that is cut off from NATS reach nobody. When it is back, the others must know that they
// missed some: they were connected all the time and cannot tell by themselves.
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { startNats } from '../../../tests/harness/nats.ts'
import { natsBus } from './nats.ts'

vi.setConfig({ testTimeout: 60_000 })

const soon = { timeout: 20_000, interval: 20 }

/** A way to NATS that can be cut. */
async function wayTo(url: string) {
  const sockets = new Set<net.Socket>()
  let cut = false
  const server = net.createServer((near) => {
    if (cut) {
      near.destroy()
      return
    }
    const far = net.connect(Number(new URL(url).port), '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => undefined).on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(): void {
      cut = true
      for (const socket of sockets) socket.destroy()
    },
    restore: () => void (cut = false),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

test('the others check again when a node is back that had news for them, and not without', async () => {
  await using nats = await startNats()
  using way = await wayTo(nats.url)
  const common = { prefix: 'hawser.test', masterKey: randomBytes(32), onEvent: () => undefined }
  await using alone = await natsBus({ ...common, servers: way.url, name: 'alone' })
  await using other = await natsBus({ ...common, servers: nats.url, name: 'other' })
  const heard = vi.fn<() => void>()
  const missed = vi.fn<() => void>()
  other.hear('user.changed', heard)
  other.missed(missed)

  way.cut()
  await vi.waitFor(() => expect(alone.connected).toBe(false), soon)
  alone.tell('limit.counted', { node: 'alone', limit: 'l', keys: [] })
  way.restore()
  await vi.waitFor(() => expect(alone.connected).toBe(true), soon)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(missed).not.toHaveBeenCalled()

  way.cut()
  await vi.waitFor(() => expect(alone.connected).toBe(false), soon)
  alone.tell('user.changed', { user_id: 'u' })
  way.restore()
  await vi.waitFor(() => expect(missed).toHaveBeenCalledOnce(), soon)
  expect(heard).not.toHaveBeenCalled()
  expect(other.refused).toBe(0)
})
