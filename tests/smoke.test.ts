import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startService } from './harness/service.ts'
import { buildWorld } from './harness/world.ts'

test('an observer signs in and sees the devices', async () => {
  await using service = await startService()
  const world = await buildWorld(service)
  const api = service.api({ token: await world.token('observer') })
  const list = await api.devices.list({ query: { status: 'accepted' } })
  expect(list.total).toBe(1)
  expect(list.body[0]?.uid).toBe(sample.device)
  const careful = service.api({ token: await world.token('careful') })
  expect((await careful.users.refresh({})).body.mfa).toBe(true)
})
