// The server's face: a socket and the rules go in, an authenticated connection comes out.
//   await using connection = await acceptConnection(socket, { hostKeys, methods: ['publickey'], authenticate })
//   for await (const opening of connection.channels) …
import type { Duplex } from 'node:stream'
import { serverAlgorithms } from './algorithms.ts'
import { authenticateClient, type ServerAuthOptions } from './auth/server.ts'
import { openConnection, type Connection } from './connection/connection.ts'
import { hostKeyProofs, hostKeysName, proveName, writeHostKeys } from './connection/host-keys.ts'
import { isCertificate } from './keys/certificate.ts'
import type { PrivateKey } from './keys/private-key.ts'
import { defaults, disableNagle, endOnAbort, withTimeout, type CommonOptions } from './options.ts'
import { openTransport } from './transport/transport.ts'

/** How a server accepts connections, and from which clients. */
export interface ServerOptions extends CommonOptions, Omit<ServerAuthOptions, 'mostFailures'> {
  /** One of each type; a client's preference decides. */
  readonly hostKeys: readonly PrivateKey[]
  readonly mostFailures?: number
}

/** The connection of a client that has logged in. */
export interface ServerConnection extends Connection {
  readonly user: string
}

/** Throws when the login fails; the connection is then over. */
export async function acceptConnection(socket: Duplex, options: ServerOptions): Promise<ServerConnection> {
  const settings = { ...defaults, algorithms: serverAlgorithms, mostFailures: 6, ...options }
  disableNagle(socket)
  const transport = openTransport(socket, { ...settings, role: 'server', speakSecond: false })
  endOnAbort(transport, options.signal)
  return withTimeout(transport, settings.handshake_ms, async () => {
    await transport.established
    const user = await authenticateClient(transport, settings)
    // Clients learn plain keys; a client that trusts an authority needs no list of certificates.
    const plainKeys = options.hostKeys.filter(({ blob }) => !isCertificate(blob))
    const prove = hostKeyProofs(plainKeys, transport.sessionId)
    const connection = openConnection(transport, {
      ...settings,
      answer: (name, payload) =>
        name === proveName ? prove(payload, transport.negotiated.hostKey) : undefined,
    })
    connection.tell(hostKeysName, writeHostKeys(plainKeys))
    return Object.assign(connection, { user })
  })
}
