// Three nodes, and what is taken away from them: a node, NATS, the database. Live sessions that do not need
// it go on, what is lost is noted, and everything is back by itself.
import os from 'node:os'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { makePerson } from '../../agent/test/person.ts'
import { folder, keygen, quietArgs, run, type Folder } from '../../ssh/test/programs.ts'
import { isRoot, watch } from '../clients/way.ts'
import { startAgent, type Agent } from '../harness/agent.ts'
import { startPostgres, type Postgres } from '../harness/postgres.ts'
import { startCluster, type Balancer, type Cluster } from './cluster.ts'
import { startNode } from './node.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** As `eventually` of the clients' tests, for what may take the time after which a node counts as lost. */
const inTime = async <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: 60_000, interval: 100 })

let postgres: Postgres
let cluster: Cluster
let where: Folder
let gate: Balancer
let agent: Agent
let user = ''
let owners: Client[]
const opened = new AsyncDisposableStack()

const args = (port: number): string[] =>
  quietArgs(port, `IdentityFile=${where.file('olga')}`, 'BatchMode=yes')
const target = (): string => `${user}@${sample.namespace}.${agent.name}@127.0.0.1`
const ssh = async (at: number, command: string) =>
  run('ssh', [...args(cluster.nodes[at]!.sshPort), target(), command])
const health = async (at: number): Promise<[number, string]> => {
  const answer = await fetch(`${cluster.nodes[at]!.url}/healthcheck`)
  return [answer.status, await answer.text()]
}

/** A shell that echoes what it is told, through one node to the device of another. */
const session = (port: number) =>
  watch('ssh', [...args(port), target(), 'while read line; do echo "got $line"; done'])

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
  expect((await ssh(1, 'true')).status).toBe(255)
  await cluster.nats.start()
  await inTime(async () => expect((await health(0))[0]).toBe(200))
  await inTime(async () => expect((await ssh(1, 'true')).status).toBe(0))
  running.child.stdin.end('three\n')
  await running.until(/(got three)/)
  expect(await running.status).toBe(0)
})

test('what happened while a node was cut off it finds out when it is back', async () => {
  await using running = session(cluster.nodes[1]!.sshPort)
  running.child.stdin.write('one\n')
  await running.until(/(got one)/)
  const [going] = (await owners[0]!.sessions.list()).body.filter(({ active }) => active)
  await cluster.nats.stop()
  await owners[0]!.sessions.close({ params: { uid: going!.uid }, body: { device: agent.uid } })
  running.child.stdin.write('two\n')
  await running.until(/(got two)/)
  await cluster.nats.start()
  expect(await running.status).toBe(255)
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

test('a node is killed: its agents are back on another, its sessions are closed in the records, those of others go on', async () => {
  await using doomed = await startNode(cluster)
  gate.to(doomed.url)
  for (const tunnel of cluster.nodes.flatMap(({ reach }) => [...reach.tunnels.all()]))
    tunnel.close('for the test')
  await agent.logged('tunnel.up')
  await using elsewhere = await secondDevice()
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
async function secondDevice(): Promise<Agent> {
  const accept = (uid: string) => owners[0]!.devices.accept({ params: { uid } })
  return startAgent({ url: cluster.nodes[0]!.url, tenant_id: sample.tenant, accept }, { hostname: 'bollard' })
}
