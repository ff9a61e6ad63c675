// What the attacks on the SSH door share: a server with one device that is online, and our own client, which
// does what an honest one does not.
import { once } from 'node:events'
import net from 'node:net'
import { sample } from '@hawser/contract/examples'
import { openClient, publicKeyLine, type PrivateKey, type Unauthenticated } from '@hawser/ssh'
import { startOldAgent, type OldAgent } from '../harness/old-agent.ts'
import { startService, type Service } from '../harness/service.ts'
import { buildWorld, type World } from '../harness/world.ts'

export interface Door extends AsyncDisposable {
  readonly service: Service
  readonly world: World
  readonly agent: OldAgent
  /** Registers a public key with the namespace. */
  register(key: PrivateKey, change?: object): Promise<void>
  /** A TCP connection, from this address if the server trusts the PROXY header. */
  dial(from?: string): Promise<net.Socket>
  /** A client after its key exchange. */
  knock(options?: Knocking): Promise<Unauthenticated>
  /** Closes every connection. */
  leave(): void
}

export interface Knocking {
  readonly from?: string
  readonly banners?: string[]
}

/** A sentence to a client without its reference, which is another each time. */
export const withoutReference = (sentence: string): string =>
  sentence.replaceAll(/ \(reference [2-9A-Z]{4}-[2-9A-Z]{4}\)/g, '')

export const onlineDevice = `${sample.namespace}.crane-9`
export const sshid = `pilot@${onlineDevice}`

export async function startDoor(env: Record<string, string> = {}, folder?: string): Promise<Door> {
  await using opened = new AsyncDisposableStack()
  const service = opened.use(await startService(folder === undefined ? { env } : { env, folder }))
  const world = await buildWorld(service)
  const agent = opened.use(
    await startOldAgent(service, { version: 2, tenant_id: sample.tenant, hostname: 'crane-9' }),
  )
  const owner = service.api({ token: await world.token('owner') })
  await owner.devices.accept({ params: { uid: agent.uid } })
  const sockets = new Set<net.Socket>()

  async function dial(from?: string): Promise<net.Socket> {
    const socket = net.connect(service.sshPort, '127.0.0.1')
    sockets.add(socket.on('error', () => undefined))
    socket.once('close', () => sockets.delete(socket))
    await once(socket, 'connect')
    if (from !== undefined)
      socket.write(`PROXY ${net.isIPv6(from) ? 'TCP6' : 'TCP4'} ${from} ${from} 4242 22\r\n`)
    return socket
  }

  const leave = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  opened.defer(leave)
  const whole = opened.move()
  return {
    service,
    world,
    agent,
    async register(key, change = {}) {
      const data = Buffer.from(publicKeyLine(key.type, key.blob)).toString('base64')
      await owner.publicKeys.create({
        body: { data, name: 'key', username: '.*', filter: { hostname: '.*' }, ...change },
      })
    },
    dial,
    leave,
    knock: async ({ from, banners } = {}) =>
      openClient(await dial(from), {
        checkHostKey: () => true,
        onBanner: (text) => void banners?.push(text),
        handshake_ms: 20_000,
      }),
    [Symbol.asyncDispose]: async () => whole.disposeAsync(),
  }
}
