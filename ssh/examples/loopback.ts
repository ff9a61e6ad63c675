// The parts that the examples share: a pair of sockets over loopback, and a client that is logged in to a
// server on them. The server lets everybody in, which no real one may do.
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import {
  acceptConnection,
  connect,
  generatePrivateKey,
  type Connection,
  type ServerConnection,
  type ServerOptions,
} from '@hawser/ssh'

/** Both ends of one TCP connection: that of the client, and that of the server. */
export async function socketPair(): Promise<[Socket, Socket]> {
  const listener = net.createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const near = net.connect((listener.address() as AddressInfo).port, '127.0.0.1')
  const [far] = (await once(listener, 'connection')) as [Socket]
  listener.close()
  return [near, far]
}

export interface Connected extends AsyncDisposable {
  readonly client: Connection
  readonly server: ServerConnection
}

/** Both ends of one SSH connection. */
export async function connected(options: Partial<ServerOptions> = {}): Promise<Connected> {
  const [near, far] = await socketPair()
  const accepting = acceptConnection(far, {
    hostKeys: [generatePrivateKey()],
    methods: ['none'],
    authenticate: async () => 'accept',
    channelTypes: 'all',
    globalRequests: 'all',
    ...options,
  })
  const client = await connect(near, {
    user: 'olga',
    proofs: [{ method: 'none' }],
    checkHostKey: () => true,
    channelTypes: 'all',
  })
  const server = await accepting
  return { client, server, [Symbol.asyncDispose]: () => client.end() }
}
