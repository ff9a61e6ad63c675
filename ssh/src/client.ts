// The client's face. `connect` does all of it; `openClient` stops before authentication, for callers that get
// the proofs one by one while the connection stands, as a gateway does.
//   await using connection = await connect(socket, { user, proofs: [{ method: 'password', password }], checkHostKey })
//   const { channel, exit } = await startSession(connection, { program: { type: 'exec', command: 'uname -a' } })
import type { Duplex } from 'node:stream'
import { clientAlgorithms } from './algorithms.ts'
import { clientAuth, type Answer, type Proof } from './auth/client.ts'
import { openConnection, type Connection } from './connection/connection.ts'
import { AuthenticationFailed, Reason, SshError } from './errors.ts'
import { defaults, disableNagle, endOnAbort, withTimeout, type CommonOptions } from './options.ts'
import { openTransport, type Transport } from './transport/transport.ts'

/** How a client connects. */
export interface ClientOptions extends CommonOptions {
  /** Whether this is the right server; nothing is sent to it before. The key is a blob. */
  checkHostKey(key: Buffer): boolean | Promise<boolean>
  onBanner?(text: string): void
  /** Send nothing before the server has: some tunnels need it. */
  readonly speakSecond?: boolean
  /**
   * Saves round trips to a server that uses this package, with `earlyChannels`: the key exchange begins on a
   * guess, a proof does not wait for the authentication service, and `openEarly` does not wait for a channel.
   * Other servers may not expect it.
   */
  readonly pipelining?: boolean
}

/** A server that is identified, before the login. */
export interface Unauthenticated {
  readonly transport: Transport
  attempt(user: string, proof: Proof): Promise<Answer>
  /** After an attempt was accepted. */
  connection(): Connection
}

/** Stops before the login; each attempt is then a call of its own. */
export async function openClient(socket: Duplex, options: ClientOptions): Promise<Unauthenticated> {
  const settings = { ...defaults, algorithms: clientAlgorithms, speakSecond: false, ...options }
  disableNagle(socket)
  const { pipelining = false } = options
  const transport = openTransport(socket, { ...settings, role: 'client', hostKeys: [], guess: pipelining })
  endOnAbort(transport, options.signal)
  await withTimeout(transport, settings.handshake_ms, async () => {
    await transport.established
    if (await options.checkHostKey(transport.hostKey)) return
    throw new SshError(Reason.hostKeyNotVerifiable, 'The host key is not the one that was expected.')
  })
  const auth = clientAuth(transport, (text) => options.onBanner?.(text), pipelining)
  let accepted = false
  let connection: Connection | undefined
  return {
    transport,
    async attempt(user, proof) {
      return withTimeout(transport, settings.handshake_ms, async () => {
        const answer = await auth.attempt(user, proof)
        accepted ||= answer.accepted
        return answer
      })
    },
    connection() {
      if (!accepted) throw new Error('The server has not accepted anybody yet.')
      return (connection ??= openConnection(transport, { ...settings, earlyChannels: pipelining }))
    },
  }
}

/** How a client connects and logs in. */
export interface ConnectOptions extends ClientOptions {
  readonly user: string
  /** Tried in this order, as far as the server accepts the methods. */
  readonly proofs: readonly Proof[]
}

/** Throws AuthenticationFailed when the server accepts no proof. */
export async function connect(socket: Duplex, options: ConnectOptions): Promise<Connection> {
  const client = await openClient(socket, options)
  let methods: readonly string[] | undefined
  for (const proof of options.proofs) {
    if (methods && !methods.includes(proof.method)) continue
    const answer = await client.attempt(options.user, proof)
    if (answer.accepted) return client.connection()
    methods = answer.methods
  }
  const failure = new AuthenticationFailed('The server accepted none of the proofs.', methods ?? [])
  client.transport.end(failure)
  throw failure
}
