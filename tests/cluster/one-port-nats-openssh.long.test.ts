// Two nodes on one machine that listen on the same ports, with Unix sockets between them: the kernel sends a
// connection to either, and every device is there. A node that stops takes no new connection, while its
// sessions get their time to end.
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { eventually, isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { startNode, type Node } from './node.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const opened = new AsyncDisposableStack()
let where: Folder
let cluster: Cluster
let second: Node
let owner: Client
let agent: Agent
let user = ''
let sshPort = 0

beforeAll(async () => {
  where = opened.use(folder())
  const [http, ssh] = [await freePort(), await freePort()]
  sshPort = ssh
  const env = {
    HAWSER_REUSE_PORT: 'on',
    HAWSER_HTTP: `127.0.0.1:${http}`,
    HAWSER_SSH: `127.0.0.1:${ssh}`,
    HAWSER_DRAIN: '60',
  }
  const link = (name: string) => ({ HAWSER_NODE_ADDRESS: `unix:${where.file(name)}` })
  cluster = opened.use(await startCluster(1, { env: { ...env, ...link('1.sock') } }))
  second = opened.use(await startNode({ ...cluster, env: { ...cluster.env, ...link('2.sock') } }))
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? process.env['USER'] ?? ''
  owner = first().api({ token: await cluster.world.token('owner') })
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owner.publicKeys.create({ body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } } })
  agent = opened.use(
    await startAgent({
      url: first().url,
      tenant_id: sample.tenant,
      accept: (uid) => owner.devices.accept({ params: { uid } }),
    }),
  )
})
afterAll(() => opened.disposeAsync())

const first = () => cluster.nodes[0]!
const args = (): string[] => [
  ...quietArgs(sshPort, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes'),
  `${user}@${sample.namespace}.${agent.name}@127.0.0.1`,
]
/** Logins that the first node has accepted. */
const accepted = (): number => [...first().reach.logins.accepted].reduce((sum, [, count]) => sum + count, 0)

test('either node takes connections on the one port, and reaches the device', async () => {
  let logins = 0
  // The kernel chooses by the client's port, which is another one each time.
  while (accepted() === 0 || accepted() === logins) {
    expect(logins).toBeLessThan(40)
    const { status, stdout, stderr } = await run('ssh', [...args(), 'echo here; exit 3'])
    expect([stdout.toString(), status, stderr]).toEqual(['here\n', 3, ''])
    logins += 1
  }
  const { body } = await owner.sessions.list({ query: { per_page: 100 } })
  expect(body.filter(({ device_uid }) => device_uid === agent.uid)).toHaveLength(logins)
})

test('a node that stops leaves new connections to the other, and lets its session end', async () => {
  const sessions: ReturnType<typeof watch>[] = []
  // Until the kernel has sent one to the node that is to stop.
  while (first().reach.sessions.size === 0) {
    expect(sessions.length).toBeLessThan(40)
    const session = opened.use(watch('ssh', [...args(), 'echo begun; cat']))
    await session.until(/(begun)/)
    sessions.push(session)
  }
  const stopped = first()[Symbol.asyncDispose]()
  await eventually(async () => expect((await health()).every((status) => status === 200)).toBe(true))
  for (let turn = 0; turn < 6; turn += 1) {
    const { status, stdout, stderr } = await run('ssh', [...args(), 'echo again'])
    expect([stdout.toString(), status, stderr]).toEqual(['again\n', 0, ''])
  }
  for (const session of sessions) {
    session.child.stdin?.end('goodbye\n')
    expect(await session.status).toBe(0)
    expect(session.stdout()).toBe('begun\ngoodbye\n')
  }
  await stopped
})

/** What the port says to ten new connections. A node that is stopping and still listens would say 503. */
const health = (): Promise<(number | undefined)[]> =>
  Promise.all(
    Array.from({ length: 10 }, async () => {
      const request = get(`${second.url}/healthcheck`, { agent: false })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }),
  )
