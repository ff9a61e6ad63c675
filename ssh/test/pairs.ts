// Two ends of a line in memory, and our own client and server on them, for tests that need no program of
// anyone's.
import { duplexPair, type Duplex } from 'node:stream'
import { allAlgorithms, type Algorithms } from '../src/algorithms.ts'
import { connect } from '../src/client.ts'
import type { Connection } from '../src/connection/connection.ts'
import { acceptConnection, type ServerConnection, type ServerOptions } from '../src/server.ts'
import { openTransport, type Transport } from '../src/transport/transport.ts'
import { hostKey } from './server.ts'

export type TestedOptions = Partial<ServerOptions>

/** A server on one end; the other end is the test's. */
export function servedLine(options: TestedOptions = {}): { line: Duplex; server: Promise<ServerConnection> } {
  const [line, ours] = duplexPair()
  const server = acceptConnection(ours, {
    hostKeys: [hostKey],
    methods: ['none'],
    authenticate: async () => 'accept',
    channelTypes: ['session'],
    ...options,
  })
  server.catch(() => undefined)
  return { line, server }
}

/** A peer that has keys but keeps to no rule after that. */
export async function rudeClient(
  options: TestedOptions = {},
): Promise<{ transport: Transport; server: Promise<ServerConnection>; line: Duplex }> {
  const { line, server } = servedLine(options)
  return { transport: await rudeTransport(line), server, line }
}

/** The client's side of such a peer on any line; it asks for no new keys by itself. */
export async function rudeTransport(
  line: Duplex,
  algorithms: Algorithms = allAlgorithms,
): Promise<Transport> {
  const transport = openTransport(line, {
    role: 'client',
    software: 'Rude',
    algorithms,
    hostKeys: [],
    rekey_bytes: 2 ** 40,
    rekey_ms: 2 ** 30,
    speakSecond: false,
    answerKexInit: false,
  })
  await transport.established
  return transport
}

export async function pair(
  options: TestedOptions = {},
): Promise<{ client: Connection; server: ServerConnection } & AsyncDisposable> {
  const { line, server } = servedLine(options)
  const client = await connect(line, { user: 'olga', proofs: [{ method: 'none' }], checkHostKey: () => true })
  const accepted = await server
  return {
    client,
    server: accepted,
    async [Symbol.asyncDispose]() {
      await client.end()
      await accepted.end()
    },
  }
}
