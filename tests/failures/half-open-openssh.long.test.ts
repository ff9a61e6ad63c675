// A line that is dead and does not say so: packets vanish in both directions, and no connection is closed.
// Server and agent find out by their pings; the device is offline then, whoever had a session is told, and
// everything is back by itself when the line is.
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startAgent } from '../harness/agent.ts'
import { openWay } from '../clients/way.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: 150_000, interval: 200 })

/** In front of a server: everything passes, until it is frozen; new connections then hang, too. */
async function startLine(port: number) {
  const open = new Set<Socket>()
  let frozen = false
  const server = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.on('data', (chunk: Buffer) => {
        if (!frozen) other.write(chunk)
      })
      one.on('error', () => undefined)
      // The end of one side is a packet, too.
      one.on('close', () => {
        open.delete(one)
        if (!frozen) other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    freeze: () => void (frozen = true),
    thaw: () => void (frozen = false),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a line that swallows everything is noticed at both ends, and the device comes back when it does not any more', async () => {
  await using way = await openWay()
  await using line = await startLine(Number(new URL(way.service.url).port))
  const accept = (uid: string) => way.owner.devices.accept({ params: { uid } })
  await using agent = await startAgent(
    { url: line.url, tenant_id: sample.tenant, accept },
    { hostname: 'remote' },
  )
  await using session = way.start('echo begun; exec cat', { device: 'remote' })
  await session.until(/(begun)/)
  line.freeze()
  const online = async () => (await way.owner.devices.get({ params: { uid: agent.uid } })).body.online
  expect(await session.status).toBe(255)
  expect(session.stderr()).toContain('was lost')
  await inTime(async () => expect(await online()).toBe(false))
  expect((await way.ssh('true', { device: 'remote' })).stderr).toContain('offline')
  const [record] = (await way.owner.sessions.list()).body.filter(({ device_uid }) => device_uid === agent.uid)
  expect(record?.active).toBe(false)
  line.thaw()
  await inTime(async () => expect(await online()).toBe(true))
  expect((await way.ssh('echo back', { device: 'remote' })).stdout.toString()).toBe('back\n')
})
