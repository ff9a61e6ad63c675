// Three nodes, and what is taken away from them: a node, NATS, the database. Live sessions that do not need
// it go on, what is lost is noted, and everything is back by itself.
import { once } from 'node:events'
import os from 'node:os'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, freePort, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { eventually } from '../harness/eventually.ts'
import { startPostgres, type Postgres } from '../harness/postgres.ts'
import { startCluster, type Balancer, type Cluster } from './cluster.ts'
import { startNode } from './node.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** As `eventually` of the clients' tests, for what may take the time after which a node counts as lost. */
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> => eventually(check, 60_000)

let postgres: Postgres
let cluster: Cluster
let where: Folder
let gate: Balancer
let agent: Agent
let user = ''
let owners: Client[]
const opened = new AsyncDisposableStack()

const args = (port: number, key = 'olga'): string[] =>
  quietArgs(port, `IdentityFile=${where.file(key)}`, 'BatchMode=yes')
const target = (): string => `${user}@${sample.namespace}.${agent.name}@127.0.0.1`
const ssh = async (at: number, command: string) =>
  run('ssh', [...args(cluster.nodes[at]!.sshPort), target(), command])
/** What somebody reads who tries an empty password at the second node. */
const guess = async (device: string): Promise<string> => {
  const settings = ['LogLevel=INFO', 'IdentityFile=none', 'NumberOfPasswordPrompts=1']
  const to = `${user}@${sample.namespace}.${device}@127.0.0.1`
  const env = { SSH_ASKPASS: '/bin/true', SSH_ASKPASS_REQUIRE: 'force' }
  const words = [...quietArgs(cluster.nodes[1]!.sshPort, ...settings), to, 'true']
  return (await run('ssh', words, undefined, env)).stderr
}

const health = async (at: number): Promise<[number, string]> => {
  const answer = await fetch(`${cluster.nodes[at]!.url}/healthcheck`)
  return [answer.status, await answer.text()]
}

/** A shell that echoes what it is told, through one node to the device of another. */
const session = (port: number, key?: string) =>
  watch('ssh', [...args(port, key), target(), 'while read line; do echo "got $line"; done'])

beforeAll(async () => {
  postgres = opened.use(await startPostgres())
  cluster = opened.use(await startCluster(2, { database: await postgres.url('cluster') }))
  where = opened.use(folder())
  gate = opened.use(await cluster.balancer())
  const person = isRoot ? opened.use(await makePerson()) : undefined
  user = person?.name ?? os.userInfo().username
  const token = await cluster.world.token('owner')
  owners = cluster.nodes.map((service) => service.api({ token }))
  await keygen(where, 'olga', '-t', 'ed25519')
  const data = Buffer.from(where.read('olga.pub')).toString('base64')
  await owners[0]!.publicKeys.create({
    body: { data, name: 'olga', username: '.*', filter: { hostname: '.*' } },
  })
  gate.to(cluster.nodes[0]!.url)
  const accept = (uid: string) => owners[0]!.devices.accept({ params: { uid } })
  agent = opened.use(await startAgent({ url: gate.url, tenant_id: sample.tenant, accept }))
})
afterAll(() => opened.disposeAsync())

test('NATS goes and comes back: sessions go on, health says what is wrong, and the devices are found again', async () => {
  await using running = session(cluster.nodes[1]!.sshPort)
  running.child.stdin.write('one\n')
  await running.until(/(got one)/)
  await cluster.nats.stop()
  await inTime(async () => expect(await health(0)).toEqual([503, expect.stringContaining('NATS')]))
  running.child.stdin.write('two\n')
  await running.until(/(got two)/)
  // What this node has itself it still reaches; what others have it cannot find.
  expect((await ssh(0, 'true')).status).toBe(0)
  const { status, stderr } = await ssh(1, 'true')
  expect([status, stderr]).toEqual([
    255,
    expect.stringMatching(/\S+ cannot be located right now; try again in a moment/),
  ])
  // Whoever has proved nothing reads the same of every name.
  for (const name of [agent.name, 'nobody-has-this'])
    expect(await guess(name)).toContain(
      `.${name} may be on a server node that cannot be reached right now, or does not let you in`,
    )
  await cluster.nats.start()
  await inTime(async () => expect((await health(0))[0]).toBe(200))
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
  running.child.stdin.end('three\n')
  await running.until(/(got three)/)
  expect(await running.status).toBe(0)
})

test('while NATS is away a session ends when it was closed, or when its person is removed, at another node', async () => {
  const { operator } = sample
  await keygen(where, 'pavel', '-t', 'ed25519')
  const data = Buffer.from(where.read('pavel.pub')).toString('base64')
  await owners[0]!.publicKeys.create({
    body: { data, name: 'pavel', username: '.*', filter: { hostname: '.*' }, owner: operator.username },
  })
  await using closed = session(cluster.nodes[1]!.sshPort)
  await using removed = session(cluster.nodes[1]!.sshPort, 'pavel')
  for (const running of [closed, removed]) {
    running.child.stdin.write('one\n')
    await running.until(/(got one)/)
  }
  const [going] = (await owners[0]!.sessions.list()).body.filter(
    ({ active, person }) => active && person?.kind !== 'user',
  )
  await cluster.nats.stop()
  await owners[0]!.sessions.close({ params: { uid: going!.uid }, body: { device: agent.uid } })
  await owners[0]!.namespaces.removeMember({ params: { tenant: sample.tenant, uid: operator.id } })
  expect(await closed.status).toBe(255)
  expect(await removed.status).toBe(255)
  expect(removed.stderr()).toContain('You are no longer a member of the namespace.')
  await cluster.nats.start()
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
})

test('the node of a device hangs: a login by way of another says so, and the device comes back there', async () => {
  await using hung = await startNode(cluster)
  gate.to(hung.url)
  for (const tunnel of cluster.nodes.flatMap(({ reach }) => [...reach.tunnels.all()]))
    tunnel.close('for the test')
  await agent.logged('tunnel.up')
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
  gate.to(cluster.nodes[0]!.url)
  const back = agent.logged('tunnel.up')
  hung.child.kill('SIGSTOP')
  const { status, stderr } = await ssh(1, 'true')
  expect([status, stderr]).toEqual([
    255,
    expect.stringMatching(/is not responding; the device should be back within (a minute|\d+ minutes)/),
  ])
  await back
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
})

test('the main thread of a node hangs: the node ends, and its device comes back at another', async () => {
  const port = await freePort()
  const env = { ...cluster.env, NODE_OPTIONS: `--inspect=127.0.0.1:${port}` }
  await using hung = await startNode({ ...cluster, env })
  gate.to(hung.url)
  for (const tunnel of cluster.nodes.flatMap(({ reach }) => [...reach.tunnels.all()]))
    tunnel.close('for the test')
  await agent.logged('tunnel.up')
  gate.to(cluster.nodes[0]!.url)
  const back = agent.logged('tunnel.up')
  const ended = once(hung.child, 'exit')
  const [main] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as [
    { webSocketDebuggerUrl: string },
  ]
  const debugging = new WebSocket(main.webSocketDebuggerUrl)
  await once(debugging, 'open')
  debugging.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'for (;;);' } }))
  expect(await ended).toEqual([null, 'SIGKILL'])
  debugging.close()
  await back
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
})

test('the database goes and comes back: sessions go on, calls are told to come back, nothing that was answered is lost', async () => {
  await using running = session(cluster.nodes[1]!.sshPort)
  running.child.stdin.write('one\n')
  await running.until(/(got one)/)
  await owners[0]!.devices.addTag({ params: { uid: agent.uid }, body: { tag: 'answered' } })
  await postgres.down()
  const answer = await inTime(async () => {
    const asked = await fetch(`${cluster.nodes[0]!.url}/healthcheck`)
    expect(asked.status).toBe(503)
    return asked
  })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  running.child.stdin.write('two\n')
  await running.until(/(got two)/)
  await postgres.up()
  await inTime(async () => expect((await health(0))[0]).toBe(200))
  expect((await owners[1]!.devices.get({ params: { uid: agent.uid } })).body.tags).toContain('answered')
  running.child.stdin.end('three\n')
  await running.until(/(got three)/)
  expect(await running.status).toBe(0)
  const left = async () =>
    (await owners[1]!.sessions.list()).body.filter(
      ({ active, device_uid }) => active && device_uid === agent.uid,
    )
  await inTime(async () => expect(await left()).toEqual([]))
})

test('a device that is lost while the database is away is offline on every node when it is back', async () => {
  await using lost = await secondDevice('davit')
  const said = () =>
    Promise.all(
      owners.map(async (owner) => [
        (await owner.devices.get({ params: { uid: lost.uid } })).body.online,
        (await owner.system.stats()).body.online_devices,
      ]),
    )
  await inTime(async () =>
    expect(await said()).toEqual([
      [true, 2],
      [true, 2],
    ]),
  )
  await postgres.down()
  lost.kill('SIGKILL')
  await inTime(() =>
    expect(cluster.nodes.some(({ reach }) => reach.tunnels.find(lost.uid) !== undefined)).toBe(false),
  )
  await postgres.up()
  await inTime(async () =>
    expect(await said()).toEqual([
      [false, 1],
      [false, 1],
    ]),
  )
})

test('a node is killed: its agents are back on another, its sessions are closed in the records, those of others go on', async () => {
  await using doomed = await startNode(cluster)
  gate.to(doomed.url)
  for (const tunnel of cluster.nodes.flatMap(({ reach }) => [...reach.tunnels.all()]))
    tunnel.close('for the test')
  await agent.logged('tunnel.up')
  await using elsewhere = await secondDevice('bollard')
  await using untouched = watch('ssh', [
    ...args(cluster.nodes[1]!.sshPort),
    `${user}@${sample.namespace}.${elsewhere.name}@127.0.0.1`,
    'while read line; do echo "got $line"; done',
  ])
  untouched.child.stdin.write('one\n')
  await untouched.until(/(got one)/)
  await using lost = session(doomed.sshPort)
  lost.child.stdin.write('one\n')
  await lost.until(/(got one)/)
  const [record] = (await owners[0]!.sessions.list()).body.filter(
    ({ active, device_uid }) => active && device_uid === agent.uid,
  )

  gate.to(cluster.nodes[0]!.url)
  const back = agent.logged('tunnel.up')
  const began = performance.now()
  doomed.child.kill('SIGKILL')
  expect(await lost.status).toBe(255)
  await back
  expect(performance.now() - began).toBeLessThan(15_000)
  expect((await ssh(1, 'true')).status).toBe(0)
  untouched.child.stdin.write('two\n')
  await untouched.until(/(got two)/)
  await inTime(async () =>
    expect((await owners[1]!.sessions.get({ params: { uid: record!.uid } })).body.active).toBe(false),
  )
  expect((await owners[1]!.devices.get({ params: { uid: agent.uid } })).body.online).toBe(true)
})

/** A device that is on the first node, whatever happens to the other one. */
async function secondDevice(hostname: string): Promise<Agent> {
  const accept = (uid: string) => owners[0]!.devices.accept({ params: { uid } })
  return startAgent({ url: cluster.nodes[0]!.url, tenant_id: sample.tenant, accept }, { hostname })
}
