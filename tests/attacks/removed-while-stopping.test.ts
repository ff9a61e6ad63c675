// A server that stops gives open sessions time to end, up to an hour. Who is removed from the namespace in
// that time loses a terminal at once, as at any other time.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { apiOf, openQuarters, terminal } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 60_000 })

test('a member who is removed while the server stops loses the terminal before the time is up', async () => {
  await using quarters = await openQuarters({ env: { HAWSER_DRAIN: '20' } })
  const { service } = quarters
  const [shell, uid] = await terminal(quarters)
  using _ = shell
  const owner = await apiOf(quarters, 'owner')
  const stopping = service.reach.stop()
  await owner.namespaces.removeMember({ params: { tenant: sample.tenant, uid: sample.observer.id } })
  await eventually(() => expect(service.reach.sessions.has(uid)).toBe(false))
  expect(await shell.hear('end')).toBe('You may no longer use this terminal.')
  await stopping
})
