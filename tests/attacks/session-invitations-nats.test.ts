// An invitation is taken on one node, the session runs on another, and it is revoked on the first: the guest
// is in, and then out. Two who take it on two nodes at the same moment do not both have it.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { openGuest } from '../clients/shared.ts'
import { dial } from '../clients/web.ts'
import { startCluster } from '../cluster/cluster.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'

vi.setConfig({ testTimeout: 120_000 })

test('an invitation is one on all nodes', async () => {
  await using cluster = await startCluster(2)
  const [here, there] = [cluster.nodes[0]!, cluster.nodes[1]!]
  const token = await cluster.world.token('administrator')
  const [adam, far] = [here.api({ token }), there.api({ token })]
  await using agent = await startOldAgent(here, { version: 2, tenant_id: sample.tenant })
  await adam.devices.accept({ params: { uid: agent.uid } })
  await eventually(() => expect(here.reach.tunnels.find(agent.uid)).toBeDefined())
  const ticket = await adam.terminals.open({
    body: { device: agent.uid, username: 'root', password: 'pilot' },
  })
  using shell = await dial(here, ticket.body.token)
  const uid = await shell.hear('session')
  await eventually(() => expect(here.rooms.recordings.live(sample.tenant, uid)).toHaveLength(1))

  const { body: invitation } = await far.sessions.invite({ params: { uid }, body: { mode: 'watch' } })
  const people = await Promise.all(
    (['operator', 'observer'] as const).map(async (who) => cluster.world.token(who)),
  )
  const tries = await Promise.allSettled(
    people.flatMap((bearer) =>
      [here, there].map((node) =>
        node.api({ token: bearer }).sessions.acceptInvitation({ body: { token: invitation.token } }),
      ),
    ),
  )
  const taken = tries.map(({ status }) => status === 'fulfilled')
  expect(taken.filter(Boolean)).toHaveLength(2)
  expect(taken[0]).toBe(taken[1])

  const bearer = taken[0] ? people[0] : people[1]
  const { body } = await there
    .api({ token: bearer })
    .sessions.acceptInvitation({ body: { token: invitation.token } })
  using guest = await openGuest(there.url, uid, { query: `?ticket=${body.token}` })
  await eventually(() => expect(guest.said.map(({ kind }) => kind)).toContain('screen'))
  await far.sessions.uninvite({ params: { uid, id: invitation.id } })
  expect(await guest.ended).toBe('You may no longer watch this session.')
})
