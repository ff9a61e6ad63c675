// The takeover of a device by its MAC address, on two nodes: the tunnel of the device is on one, and the
// newcomer is accepted on the other. The node that is asked finds the tunnel wherever it is; cut off from the
// others it does not guess.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startCluster } from '../cluster/cluster.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'

vi.setConfig({ testTimeout: 120_000 })

const newKey = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey

test('a device that is connected to another node is not replaced', async () => {
  await using cluster = await startCluster(2)
  const [here, there] = [cluster.nodes[0]!, cluster.nodes[1]!]
  const owner = here.api({ token: await cluster.world.token('owner') })
  await using victim = await startOldAgent(there, {
    version: 2,
    tenant_id: sample.tenant,
    hostname: 'crane',
    key: newKey(),
  })
  await eventually(() => expect(there.reach.tunnels.find(victim.uid)).toBeDefined())
  await owner.devices.accept({ params: { uid: victim.uid } })
  await using thief = await startOldAgent(here, {
    version: 2,
    tenant_id: sample.tenant,
    hostname: 'crane',
    key: newKey(),
  })
  const accepting = () => owner.devices.accept({ params: { uid: thief.uid } })
  await expect(accepting()).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('crane') as string,
  })

  await cluster.nats.stop()
  await eventually(() => expect(here.rooms.bus.connected).toBe(false))
  await expect(accepting()).rejects.toMatchObject({ status: 503 })
  await cluster.nats.start()
  await eventually(() => expect([here, there].every(({ rooms }) => rooms.bus.connected)).toBe(true))
  await expect(accepting()).rejects.toMatchObject({ status: 409 })

  victim.cut()
  await victim.lost
  await eventually(async () => expect((await accepting()).headers.get('x-replaced-device')).toBe('crane'))
  expect((await owner.devices.get({ params: { uid: thief.uid } })).body).toMatchObject({
    status: 'accepted',
    name: 'crane',
  })
})
