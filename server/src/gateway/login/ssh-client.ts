// One connection of an SSH client, until it ends: it has a limited time to log in, and then is a session, or the tunnel
// of a device without an agent.
import net, { type BlockList, type Socket } from 'node:net'
import {
  acceptConnection,
  NothingInCommon,
  type Algorithms,
  type PrivateKey,
  type ServerConnection,
} from '@hawser/ssh'
import { neighbourhood, plainAddress } from '../../kit/address.ts'
import { newUid } from '../../kit/ids.ts'
import type { LineLimiter, Log } from '../../kit/log.ts'
import { clientChannels, clientRequests } from '../channels/channels.ts'
import type { LoggedIn, Origin } from '../channels/logged-in.ts'
import type { Agentless } from './agentless.ts'
import { handshake, methods, type HandshakeParts } from './handshake.ts'
import { readProxyHeader } from './proxy-header.ts'
import type { Startups, WhyRefused } from './startups.ts'

export interface SshClientParts extends HandshakeParts {
  hostKeys: readonly PrivateKey[]
  algorithms: Algorithms
  /** The proxies whose PROXY header counts. */
  trusted: BlockList
  startups: Startups
  /** The time between two keepalives to a silent client. After some without an answer the client is lost. */
  keepalive_ms: number
  agentless: Agentless
  /** Limits lines that strangers cause. */
  lines: LineLimiter
  log: Log
}

export interface SshClientDoor extends SshClientParts {
  /** Notes a connection that has not logged in; the signal is aborted when the server stops. */
  pending(): Disposable & { readonly signal: AbortSignal }
  onRefused(source: string, why: WhyRefused): void
  /** Runs the session of a client that has logged in. */
  run(client: ServerConnection, login: LoggedIn, origin: Origin): Promise<void>
}

const login_ms = 120_000
/**
 * Agents' SFTP servers use OpenSSH's order of the two names of a symbolic link, not the draft's. Clients look
 * for `OpenSSH` in this text to find out.
 */
const software = 'Hawser_OpenSSH'

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

export async function serveSshClient(parts: SshClientDoor, socket: Socket): Promise<void> {
  const { log } = parts
  const peer = plainAddress(socket.remoteAddress ?? '')
  const family = net.isIP(peer)
  const trusted = family !== 0 && parts.trusted.check(peer, family === 6 ? 'ipv6' : 'ipv4')
  const proxied = trusted ? await readProxyHeader(socket) : undefined
  const origin: Origin = proxied ?? { address: peer, port: socket.remotePort ?? 0 }
  const entered = parts.startups.enter(origin.address, trusted && !proxied)
  if (typeof entered === 'string') {
    parts.onRefused(origin.address, entered)
    return void socket.destroy()
  }
  using startup = entered
  using pending = parts.pending()
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  socket.once('close', leave)
  using login = handshake(parts, newUid(), origin.address, log, gone.signal)
  using enrolment = parts.agentless.login(origin.address)
  const accepting = acceptConnection(socket, {
    software,
    hostKeys: parts.hostKeys,
    algorithms: parts.algorithms,
    methods,
    async authenticate(attempt) {
      if (attempt.method === 'password' || attempt.method === 'publickey') startup.tried()
      const decision = await (enrolment.isFor(attempt.user) ? enrolment : login).authenticate(attempt)
      // A client that disconnects before it answers the question has tried nothing.
      if (attempt.method === 'keyboard-interactive') startup.tried()
      return decision
    },
    onBadSignature(user, key) {
      startup.tried()
      login.forged(user, key)
    },
    handshake_ms: login_ms,
    answerKexInit: !proxied && isLoopback(peer),
    channelTypes: clientChannels,
    globalRequests: clientRequests,
    keepalive_ms: parts.keepalive_ms,
    signal: pending.signal,
  })
  // readProxyHeader has paused the socket.
  socket.resume()
  const near = await accepting.catch((error: unknown) => {
    const { cause } = error as Error
    // The client is too old or too new, and shows its user only that the connection ended.
    if (cause instanceof NothingInCommon && parts.lines.allows(neighbourhood(origin.address))) {
      const { missing, offered } = cause
      log.info({ event: 'negotiation.failed', source: origin.address, missing, offered: offered.join(',') })
    }
    throw error
  })
  const joining = enrolment.joining()
  // The connection counts as unauthenticated until it is a tunnel, which the registry counts and ends.
  if (joining) {
    await parts.agentless.join(near, joining, socket)
    return startup.loggedIn()
  }
  startup.loggedIn()
  pending[Symbol.dispose]()
  // From now on the session may outlive its client.
  socket.off('close', leave)
  await parts.run(near, login.outcome(), origin)
}
