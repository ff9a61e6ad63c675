// A link that is dead and does not say so: packets vanish in both directions, and no connection is closed.
// Whoever uses it finds out within seconds, instead of at the next ping: the device is offline then, sessions
// wait, and everything goes on by itself when the link is back.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startAgent } from '../harness/agent.ts'
import { startLink } from '../harness/link.ts'
import { openWay } from '../clients/way.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 150_000)

test('a link that swallows everything is noticed by use, and the session goes on when it does not any more', async () => {
  await using way = await openWay()
  await using link = await startLink({ port: Number(new URL(way.service.url).port) })
  const accept = (uid: string) => way.owner.devices.accept({ params: { uid } })
  await using agent = await startAgent(
    { url: `http://127.0.0.1:${link.port}`, tenant_id: sample.tenant, accept },
    { hostname: 'remote' },
  )
  await using session = way.start('echo begun; exec cat', { device: 'remote' })
  await session.until(/(begun)/)
  const lost = agent.logged('tunnel.lost')
  link.silence()
  session.child.stdin.write('typed into the void')
  const online = async () => (await way.owner.devices.get({ params: { uid: agent.uid } })).body.online
  const gateway = way.service.reach.tunnels
  await inTime(() => expect(gateway.find(agent.uid)).toBeUndefined())
  await inTime(async () => expect(await online()).toBe(false))
  expect((await way.ssh('true', { device: 'remote' })).stderr).toContain('offline')
  // The device has a session, so it looks after its tunnel though it has nothing to say.
  await lost
  link.resume()
  await inTime(async () => expect(await online()).toBe(true))
  session.child.stdin.end()
  expect(await session.status).toBe(0)
  expect(session.stdout()).toBe('begun\ntyped into the void')
  expect((await way.ssh('echo back', { device: 'remote' })).stdout.toString()).toBe('back\n')
})
