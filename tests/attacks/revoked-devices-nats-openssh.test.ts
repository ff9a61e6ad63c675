// A device is rejected on one node while another one has its tunnel and both have sessions of people on it. No
// program stays on the device.
import { expect, test } from 'vitest'
import { begin } from '../clients/restarts.ts'
import { agent, cluster, home, isHeld, other, sit } from '../cluster/continuing.ts'
import { areGone, isRunning } from './revoked.ts'

test('rejected on another node than that of the tunnel: no program stays', async () => {
  using near = sit(home)
  const left = Number(await begin(near))
  near.kill('SIGKILL')
  await near.ended
  await isHeld()
  using far = sit(other)
  far.type('n')
  const pids = [left, Number(await begin(far))]
  expect(pids.filter(isRunning)).toEqual(pids)
  const there = other.api({ token: await cluster.world.token('owner') })
  await there.devices.setStatus({ params: { uid: agent.uid, status: 'reject' } })
  await areGone(pids)
})
