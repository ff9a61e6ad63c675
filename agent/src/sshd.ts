// The SSH server of the agent: one call serves one connection from the gateway, from the key exchange until
// it ends, and leaves nothing behind. It wires together who may log in (authenticator.ts), what runs
// (session-channel.ts) and what is forwarded (forward.ts).
import type { Duplex } from 'node:stream'
import { spareLeg_ms } from '@hawser/contract/tunnel'
import {
  acceptConnection,
  ownCompression,
  Reason,
  serverAlgorithms,
  SshError,
  type CompressionMode,
  type Opening,
  type PrivateKey,
  type ServerConnection,
} from '@hawser/ssh'
import { openAgentSocket, type AgentSocket } from './agent-socket.ts'
import { authenticator } from './authenticator.ts'
import type { Endpoint } from './environment.ts'
import { forwardChannels, forwardRequests, forwardsOf, type Forwards } from './forward.ts'
import type { ApproveKey } from './key-approval.ts'
import type { KeptTerminals } from './kept-terminals.ts'
import { serveSession } from './session-channel.ts'
import type { Account, Users } from './users.ts'
import type { LoginFiles } from './utmp.ts'

export interface SshdOptions {
  readonly hostKeys: readonly PrivateKey[]
  readonly users: Users
  readonly deviceName: string
  /** Asks the server whether the holder of a key may log in. */
  readonly approveKey: ApproveKey
  /** 0: nothing is asked of a silent gateway. */
  readonly keepalive_ms: number
  /** When the agent compresses what it sends; `auto` unless stated. */
  readonly compression?: CompressionMode | 'never'
  /** Ends the connection. */
  readonly signal?: AbortSignal
  /** Somebody has logged in; disposed of when the connection is over. A gateway may connect long before. */
  loggedIn?(): Disposable
  /** Terminals that outlive the gateway; absent: none does. */
  readonly kept?: KeptTerminals | undefined
  /** Since when the gateway is out of reach; undefined: it is not. */
  awaySince?(): number | undefined
  log(event: Record<string, unknown>): void
  /** The ends of the connection as far as they are known; the gateway tells each session better. */
  readonly facts?: { readonly client?: Endpoint; readonly server?: Endpoint }
  /** Where logins are recorded, if not in the files of the system. */
  readonly records?: LoginFiles
}

/** Listed to clients in this order. */
const methods = ['password', 'publickey']
const mostFailures = 6
/** Sessions and forwarded connections together. */
const mostChannels = 512
/** The largest packet that a gateway may send: fewer packets cost less. */
const packet_bytes = 128 * 1024
/** The gateway keeps a connection for the next login before it logs in. */
const handshake_ms = spareLeg_ms + 120_000
/** Whatever begins with `keepalive` is answered by every gateway and refreshes its session. */
const keepalive = 'keepalive@hawser'

const unknownClient: Endpoint = { address: '127.0.0.1', port: 0 }
const unknownServer: Endpoint = { address: '127.0.0.1', port: 22 }

/** Resolves when the connection has ended and all that it ran; never rejects. */
export async function serveSsh(stream: Duplex, options: SshdOptions): Promise<void> {
  const { hostKeys, keepalive_ms, compression = 'auto', signal, log } = options
  const logins = authenticator(options)
  let connection: ServerConnection
  try {
    connection = await acceptConnection(stream, {
      hostKeys,
      methods,
      mostFailures,
      mostChannels,
      packet_bytes,
      earlyChannels: true,
      handshake_ms,
      keepalive_ms,
      algorithms: { ...serverAlgorithms, compression: compression === 'never' ? ['none'] : ownCompression },
      ...(compression === 'never' ? {} : { compress: compression }),
      authenticate: logins.authenticate,
      channelTypes: ['session', ...forwardChannels],
      globalRequests: forwardRequests,
      ...(signal ? { signal } : {}),
    })
  } catch (error) {
    log({ event: 'connection.refused', error: (error as Error).message })
    return
  }
  const beat =
    keepalive_ms > 0
      ? setInterval(() => void connection.request(keepalive).catch(() => undefined), keepalive_ms)
      : undefined
  using _ = options.loggedIn?.()
  try {
    await serve(connection, logins.account(), options)
  } catch (error) {
    log({ event: 'connection.failed', error: (error as Error).message })
  } finally {
    clearInterval(beat)
    const { message } = await connection.ended
    log({ event: 'connection.ended', user: connection.user, message })
  }
}

async function serve(connection: ServerConnection, account: Account, options: SshdOptions): Promise<void> {
  const { deviceName, facts = {}, records, log } = options
  await using held = new AsyncDisposableStack()
  held.use(connection)
  const forwards = held.use(forwardsOf(connection, account, log))

  let socket: Promise<AgentSocket | undefined> | undefined
  held.defer(async () => (await socket)?.[Symbol.asyncDispose]())
  /** One for the connection: all its sessions have the same agent behind them. */
  const agentSocket = async (): Promise<string | undefined> => {
    socket ??= openAgentSocket(connection, account).catch((error: unknown) => {
      log({ event: 'agent.failed', error: (error as Error).message })
      return undefined
    })
    return (await socket)?.path
  }

  const leg = {
    ended: connection.ended,
    awaySince: () => options.awaySince?.(),
    giveUp: () => connection.transport.end(new SshError(Reason.byApplication, 'Another gateway has it now.')),
  }
  const session = {
    account,
    kept: options.kept,
    leg,
    keeps: options.loggedIn,
    deviceName,
    client: facts.client ?? unknownClient,
    server: facts.server ?? unknownServer,
    agentSocket,
    records,
    log,
  }
  const work = new Set<Promise<void>>()
  const track = (working: Promise<void>): void => {
    const tracked = working
      .catch((error: unknown) => log({ event: 'channel.failed', error: (error as Error).message }))
      .finally(() => work.delete(tracked))
    work.add(tracked)
  }
  const onOpening = async (opening: Opening): Promise<void> =>
    opening.type === 'session' ? serveSession(opening.accept(), session) : forwards.open(opening)

  track(answerRequests(connection, forwards))
  for await (const opening of connection.channels) track(onOpening(opening))
  while (work.size > 0) await Promise.all(work)
}

async function answerRequests(connection: ServerConnection, forwards: Forwards): Promise<void> {
  for await (const request of connection.requests) await forwards.request(request)
}
