// Somebody has a token of another person and works with it: a terminal and a live view are open, a ticket
// waits. The person ends that sign-in, on another node. The thief is out at once everywhere, cannot renew the
// token, and cannot end the person's own sign-ins. What belongs to the person's other sign-in stays, also a
// session whose client is lost; that one ends with a new password.
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { dialWebSocket } from '@hawser/mux'
import { dial } from '../clients/web.ts'
import { startCluster } from '../cluster/cluster.ts'
import { statusOf } from '../contract/people.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'

vi.setConfig({ testTimeout: 120_000 })

test('a stolen sign-in that is ended is over on every node', async () => {
  await using cluster = await startCluster(2)
  const [here, there] = [cluster.nodes[0]!, cluster.nodes[1]!]
  const stolen = await cluster.world.token('administrator')
  const { username, password } = sample.administrator
  const own = (await there.api().users.login({ body: { username, password } })).body.token
  const [thief, person] = [here.api({ token: stolen }), there.api({ token: own })]
  await using agent = await startOldAgent(here, { version: 2, tenant_id: sample.tenant })
  await person.devices.accept({ params: { uid: agent.uid } })
  await eventually(() => expect(here.reach.tunnels.find(agent.uid)).toBeDefined())
  const body = { device: agent.uid, username: 'root', password: 'pilot' }
  using shell = await dial(here, (await thief.terminals.open({ body })).body.token)
  const session = await shell.hear('session')
  using kept = await dial(here, (await here.api({ token: own }).terminals.open({ body })).body.token)
  const ownSession = await kept.hear('session')
  const watch = (token: string) =>
    dialWebSocket(`${here.url.replace('http', 'ws')}/api/sessions/${ownSession}/live`, {
      headers: { authorization: `Bearer ${token}` },
    })
  const viewer = await eventually(() => watch(stolen))
  const said: string[] = []
  viewer.on('message', (data, binary) => void (binary || said.push((data as Buffer).toString())))
  viewer.on('error', () => undefined)
  viewer.resume()
  await eventually(() => expect(said[0]).toContain('"screen"'))
  const waiting = (await thief.sessions.ticket({ params: { uid: ownSession } })).body
  const renewed = (await thief.users.refresh()).body.token

  const mine = (await person.signIns.list()).body
  expect(mine.filter(({ current }) => current)).toHaveLength(1)
  kept[Symbol.dispose]()
  const isHeld = async () => (await person.sessions.get({ params: { uid: ownSession } })).body.held
  await eventually(async () => expect(await isHeld()).toBe(true))
  // All but the one that asks: the thief's is among them.
  await person.signIns.endOthers()

  for (const node of [here, there])
    for (const token of [stolen, renewed]) {
      const api = node.api({ token })
      expect(await statusOf(api.devices.list())).toBe(401)
      expect(await statusOf(api.users.refresh())).toBe(401)
      expect(await statusOf(api.users.namespaceToken({ params: { tenant: sample.tenant } }))).toBe(401)
      expect(await statusOf(api.signIns.endOthers())).toBe(401)
    }
  await eventually(() => expect(said.at(-1)).toContain('You may no longer watch this session.'))
  expect(await shell.hear('end')).toBe('You may no longer use this terminal.')
  await eventually(() => expect(here.reach.sessions.has(session)).toBe(false))
  await expect(
    dialWebSocket(
      `${here.url.replace('http', 'ws')}/api/sessions/${ownSession}/live?ticket=${waiting.token}`,
      {
        headers: {},
      },
    ),
  ).rejects.toThrow()
  expect(here.reach.sessions.has(ownSession)).toBe(true)
  expect(await isHeld()).toBe(true)
  expect((await person.devices.list()).status).toBe(200)
  await person.users.update({ body: { current_password: password, password: 'another-secret' } })
  await eventually(() => expect(here.reach.sessions.has(ownSession)).toBe(false))
  viewer.terminate()
})

test('somebody else’s sign-ins cannot be ended, by their id or otherwise', async () => {
  await using cluster = await startCluster(1)
  const [node] = cluster.nodes
  const owner = node!.api({ token: await cluster.world.token('owner') })
  const observer = node!.api({ token: await cluster.world.token('observer') })
  const [victim] = (await owner.signIns.list()).body
  for (const api of [observer, node!.api({ apiKey: sample.apiKey }), node!.api()])
    expect(await statusOf(api.signIns.end({ params: { id: victim!.id } }))).toBeOneOf([401, 403, 404])
  expect(await statusOf(owner.devices.list())).toBe(200)
  expect((await observer.signIns.list()).body.map(({ id }) => id)).not.toContain(victim!.id)
})
