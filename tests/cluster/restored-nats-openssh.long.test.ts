// Nodes that are killed while somebody works in a terminal: the agent has kept it, and the session goes on at
// the node that the device has reached, for whoever comes back through it.
import os from 'node:os'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import type { Session } from '@hawser/contract/sessions'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, type Folder } from '../../ssh/test/programs.ts'
import { begin, question } from '../clients/restarts.ts'
import { openTerminal, type Terminal } from '../clients/terminal.ts'
import { isRoot } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startCluster, type Balancer, type Cluster } from './cluster.ts'
import { startNode } from './node.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** For what may take the time after which a node counts as lost. */
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 60_000)

const opened = new AsyncDisposableStack()
let cluster: Cluster
let where: Folder
let gate: Balancer
let agent: Agent
let owner: Client
let user = ''

beforeAll(async () => {
  cluster = opened.use(await startCluster(1))
  where = opened.use(folder())
  gate = opened.use(await cluster.balancer())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? os.userInfo().username
  owner = cluster.nodes[0]!.api({ token: await cluster.world.token('owner') })
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  gate.to(cluster.nodes[0]!.url)
  const accept = (uid: string) => owner.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: gate.url, tenant_id: sample.tenant, accept }))
})
afterAll(() => opened.disposeAsync())

const sit = (at: { sshPort: number }): Terminal =>
  openTerminal('ssh', [
    ...quietArgs(at.sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
    `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
  ])
const list = async (): Promise<Session[]> =>
  (await owner.sessions.list({ query: { active: true, device_uid: agent.uid } })).body
afterEach(async () => {
  for (const { uid, device_uid } of await list())
    await owner.sessions.close({ params: { uid }, body: { device: device_uid } })
})

test.each(['which has the device', 'which does not have the device'])(
  'the node of the session is killed, %s',
  async (how) => {
    const [survivor] = cluster.nodes
    await using node = await startNode(cluster)
    const isWithDevice = how === 'which has the device'
    if (isWithDevice) {
      gate.to(node.url)
      survivor!.reach.tunnels.find(agent.uid)!.close('Another node is wanted.')
      await inTime(async () => expect(survivor!.reach.tunnels.find(agent.uid)).toBeUndefined())
      await agent.logged('tunnel.up')
    }
    using terminal = sit(node)
    const pid = await begin(terminal)
    terminal.type('VALUE=here; echo "set $VALUE"\n')
    await terminal.until(/set here\r\n/)
    await inTime(async () => expect(await list()).toHaveLength(1))
    const [{ uid } = { uid: '' }] = await list()
    gate.to(survivor!.url)
    await node.kill()
    expect(await terminal.ended).toBe(255)
    await inTime(async () => expect(survivor!.reach.sessions.has(uid)).toBe(true))
    await inTime(async () => expect(await list()).toMatchObject([{ uid, held: true }]))
    using back = sit(survivor!)
    await back.until(question)
    back.type('\r')
    await back.until(/set here\r\n/)
    back.type('echo "still $$ $VALUE"\n')
    await back.until(new RegExp(`still ${pid} here\r\n`))
    back.type('exit\n')
    expect(await back.ended).toBe(0)
    await inTime(async () => expect(await list()).toEqual([]))
  },
)
