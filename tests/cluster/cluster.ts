// Several nodes for tests: services on one PostgreSQL database and one NATS server, with the small world in
// the database, and in front of them a load balancer that sends new connections to whichever node it is told
// to.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { startNats, type Nats } from '../harness/nats.ts'
import { migratedDatabase } from '../harness/postgres.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

export interface Balancer extends AsyncDisposable {
  readonly url: string
  /** Where new connections go from now on; those that are open stay. */
  to(url: string): void
}

export interface Cluster extends AsyncDisposable {
  readonly nodes: readonly Service[]
  readonly world: World
  readonly nats: Nats
  readonly database: string
  /** The settings of another node of it. */
  readonly env: Record<string, string>
  balancer(): Promise<Balancer>
}

export async function startCluster(
  count: number,
  options: { env?: Record<string, string>; database?: string } = {},
): Promise<Cluster> {
  await using opened = new AsyncDisposableStack()
  const nats = opened.use(await startNats())
  const database = options.database ?? (await migratedDatabase())
  const env = {
    HAWSER_NATS: nats.url,
    HAWSER_NODE_ADDRESS: '127.0.0.1:0',
    HAWSER_SECRET: randomBytes(32).toString('hex'),
    HAWSER_SSH_FAILURE_LIMIT: '0/60',
    HAWSER_SSH_RATE_LIMIT: '0/10',
    ...options.env,
  }
  const nodes: Service[] = []
  for (let at = 0; at < count; at += 1) nodes.push(opened.use(await startService({ env, database })))
  const world = await buildWorld(nodes[0]!)
  const kept = opened.move()
  return { nodes, world, nats, database, env, balancer, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

async function balancer(): Promise<Balancer> {
  let target: URL | undefined
  const open = new Set<Socket>()
  const server = net.createServer((near) => {
    const far = net.connect(Number(target?.port ?? 1), '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on('error', () => undefined)
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    to(url) {
      target = new URL(url)
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
