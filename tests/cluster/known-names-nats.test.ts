// A node whose messages reach NATS late: what it gives out under a name of its own must be good on every other
// node from the first moment on. A browser that got its ticket from one node and came to another within a
// millisecond was refused with 401, and an agent that brought a stream to another node found nobody waiting.
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { connect, startSession } from '@hawser/ssh'
import { dial } from '../clients/web.ts'
import { eventually } from '../harness/eventually.ts'
import { startOldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { startCluster, type Cluster } from './cluster.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const late_ms = 400
const opened = new AsyncDisposableStack()
let cluster: Cluster
let quick: Service
let slow: Service

/** Passes on what its client says after `late_ms`, and what the client is told at once. */
async function lateLine(target: number): Promise<string> {
  const sockets = new Set<Socket>()
  const server = net.createServer((near) => {
    const far = net.connect(target, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one.on('error', () => undefined))
      one.on('close', () => other.destroy())
    }
    near.on('data', (chunk: Buffer) => void setTimeout(() => far.write(chunk), late_ms))
    far.pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.defer(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  cluster = opened.use(await startCluster(1))
  quick = cluster.nodes[0]!
  const HAWSER_NATS = await lateLine(Number(new URL(cluster.nats.url).port))
  slow = opened.use(await startService({ env: { ...cluster.env, HAWSER_NATS }, database: cluster.database }))
})
afterAll(() => opened.disposeAsync())

test('a ticket for a terminal is good on another node at once', async () => {
  const api = slow.api({ token: await cluster.world.token('observer') })
  const body = { device: sample.device, username: 'pilot', password: 'pilot' }
  const { token } = (await api.terminals.open({ body })).body
  using terminal = await dial(quick, token)
  // The node that has the ticket answers: the device has no tunnel.
  expect(await terminal.hear('end')).toMatch(/offline/)
})

test('a stream that an agent brings to another node is waited for there', async () => {
  await using balancer = await cluster.balancer()
  balancer.to(slow.url)
  await using agent = await startOldAgent(
    { url: balancer.url, api: (options) => slow.api(options) },
    { version: 1, tenant_id: sample.tenant, hostname: 'hoist-7' },
  )
  const owner = slow.api({ token: await cluster.world.token('owner') })
  await owner.devices.accept({ params: { uid: agent.uid } })
  await eventually(() => expect(slow.reach.tunnels.find(agent.uid)).toBeDefined())
  balancer.to(quick.url)
  const connection = await connect(net.connect(slow.sshPort, '127.0.0.1'), {
    user: `pilot@${sample.namespace}.${agent.name}`,
    proofs: [{ method: 'password', password: 'pilot' }],
    checkHostKey: () => true,
  })
  const { channel } = await startSession(connection, { program: { type: 'exec', command: 'echo brought' } })
  let text = ''
  for await (const { bytes } of channel) text += bytes.toString()
  expect(text).toBe('brought\n')
  await connection.end()
})
