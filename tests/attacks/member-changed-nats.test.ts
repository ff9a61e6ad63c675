// Somebody loses a role while a terminal and a viewer of theirs are open, on another node than the one where
// it is taken away. Both end with the news of it.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket } from '@hawser/mux'
import { dial } from '../clients/web.ts'
import { startCluster } from '../cluster/cluster.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'

vi.setConfig({ testTimeout: 120_000 })

test('a viewer ends when its role changes, a terminal when its membership ends', async () => {
  await using cluster = await startCluster(2)
  const [here, there] = [cluster.nodes[0]!, cluster.nodes[1]!]
  const owner = there.api({ token: await cluster.world.token('owner') })
  const token = await cluster.world.token('administrator')
  await using agent = await startOldAgent(here, { version: 2, tenant_id: sample.tenant })
  await owner.devices.accept({ params: { uid: agent.uid } })
  await eventually(() => expect(here.reach.tunnels.find(agent.uid)).toBeDefined())
  const ticket = await here
    .api({ token })
    .terminals.open({ body: { device: agent.uid, username: 'root', password: 'pilot' } })
  using shell = await dial(here, ticket.body.token)
  const session = await shell.hear('session')

  const viewer = await eventually(() =>
    dialWebSocket(`${here.url.replace('http', 'ws')}/api/sessions/${session}/live`, {
      headers: { authorization: `Bearer ${token}` },
    }),
  )
  const said: string[] = []
  viewer.on('message', (data, binary) => void (binary || said.push((data as Buffer).toString())))
  viewer.on('error', () => undefined)
  viewer.resume()
  await eventually(() => expect(said[0]).toContain('"screen"'))

  const params = { tenant: sample.tenant, uid: sample.administrator.id }
  await owner.namespaces.updateMember({ params, body: { role: 'operator' } })
  await eventually(() => expect(said.at(-1)).toContain('You may no longer watch this session.'))
  expect(here.reach.sessions.has(session)).toBe(true)

  await owner.namespaces.removeMember({ params })
  await eventually(() => expect(here.reach.sessions.has(session)).toBe(false))
  // The node of the person and the node of the session both end it; whichever is first says why.
  expect(await shell.hear('end')).toMatch(
    /^You (are no longer a member of the namespace|may no longer use this terminal)\.$/,
  )
  viewer.terminate()
})
