// The SSH server of the agent: one call serves one connection from the gateway to its end, and leaves nothing
// behind. It wires together logins (authenticator.ts), programs (session-channel.ts) and forwarding
// (forward.ts).
import type { Duplex } from 'node:stream'
import { defined } from '@hawser/contract/defined'
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
import type { DetachedTerminals } from './detached-terminals.ts'
import { serveSession } from './session-channel.ts'
import type { Account, Users } from './users.ts'
import type { LoginFiles } from './utmp.ts'

export interface SshdOptions {
  readonly hostKeys: readonly PrivateKey[]
  readonly users: Users
  readonly deviceName: string
  readonly approveKey: ApproveKey
  /** 0: a silent gateway is not checked. */
  readonly keepalive_ms: number
  /** `auto` unless stated. */
  readonly compression?: CompressionMode | 'never'
  readonly signal?: AbortSignal
  /** Called at the login, and disposed of when the connection is over. A gateway may connect long before. */
  loggedIn?(): Disposable
  /** Absent: no terminal outlives the gateway. */
  readonly detached?: DetachedTerminals | undefined
  /** Since when the gateway is out of reach; undefined: it is not. */
  awaySince?(): number | undefined
  log(event: Record<string, unknown>): void
  /** Known ends of the connection; the gateway names them better for each session. */
  readonly facts?: { readonly client?: Endpoint; readonly server?: Endpoint }
  /** Absent: in the files of the system. */
  readonly records?: LoginFiles
}

/** In the order for clients. */
const methods = ['password', 'publickey']
const mostFailures = 6
/** Sessions and forwarded connections together. */
const mostChannels = 512
/** Large packets cost less. */
const packet_bytes = 128 * 1024
/** The gateway holds a connection for the next login before it logs in. */
const handshake_ms = spareLeg_ms + 120_000
/** Every gateway answers names that begin with `keepalive` and refreshes its session. */
const keepalive = 'keepalive@hawser'

const unknownClient: Endpoint = { address: '127.0.0.1', port: 0 }
const unknownServer: Endpoint = { address: '127.0.0.1', port: 22 }

/** Resolves when the connection and all its programs have ended; never rejects. */
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
      authenticate: logins.authenticate,
      channelTypes: ['session', ...forwardChannels],
      globalRequests: forwardRequests,
      ...defined({ compress: compression === 'never' ? undefined : compression, signal }),
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
  /** One for the connection: its sessions share the agent behind them. */
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
    detached: options.detached,
    leg,
    detaching: options.loggedIn,
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
