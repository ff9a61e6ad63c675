// The SSH listener. It accepts connections within limits (see startups.ts). Each has a limited time to log in
// and then becomes a session, or the tunnel of a device without an agent. When the server stops, the listener
// accepts no more connections, and sessions get some time to end.
import net, { type AddressInfo, type BlockList, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  acceptConnection,
  ConnectionEnded,
  NothingInCommon,
  SshError,
  type Algorithms,
  type PrivateKey,
} from '@hawser/ssh'
import { Failure } from '@hawser/contract/failures'
import type { KeptScreen } from '../recording/kept-screen.ts'
import type { Size } from '../recording/journal.ts'
import type { HeldFor, OpenSession } from '../domain/sessions/revocation.ts'
import { neighbourhood, plainAddress } from '../kit/address.ts'
import { Counter } from '../kit/counter.ts'
import type { Clock } from '../kit/clock.ts'
import { newUid } from '../kit/ids.ts'
import type { LineLimiter, Log } from '../kit/log.ts'
import type { Agentless } from './agentless.ts'
import { giveTerminal, type RemoteAttachRequest } from './carried-terminal.ts'
import { clientChannels, clientRequests } from './channels.ts'
import type { RemoteSessions } from './coming-back.ts'
import type { HashThread } from './hash-thread.ts'
import { heldSessions, type HeldSessions } from './held-sessions.ts'
import { handshake, methods, type HandshakeParts } from './handshake.ts'
import { BadHeader, readProxyHeader, type Origin } from './proxy-header.ts'
import { restoredSessions, type RestoredSessionParts, type RestoredSessions } from './restored-sessions.ts'
import { runSession, type PolicySource, type Recording, type SessionParts } from './session.ts'
import { whyRefused, type Startups, type WhyRefused } from './startups.ts'
import { typistPlaces } from './sharing.ts'
import {
  attachTerminal,
  openTerminal,
  type AttachRequest,
  type Terminal,
  type TerminalRequest,
} from './terminal.ts'

export interface GatewayParts extends HandshakeParts {
  listen: { readonly host: string; readonly port: number }
  hostKeys: readonly PrivateKey[]
  algorithms: Algorithms
  /** The proxies whose PROXY header counts. */
  trusted: BlockList
  startups: Startups
  idle_ms: number
  recording: Recording
  lostRight: SessionParts['lostRight']
  /** Whether a session may wait for its person. */
  mayWait(held: HeldFor): Promise<boolean>
  standing: SessionParts['standing']
  /** Sessions of other nodes; undefined: there are no others. */
  remote: RemoteSessions | undefined
  /** The user can continue the session in a browser, until this is disposed. */
  attachable(session_uid: string, user_id: string): Disposable
  /** The screen of a terminal that may be held. */
  screen(size: Size, tenant_id: string): KeptScreen
  /** The time between two keepalives to a silent client. After some without an answer the client is lost. */
  keepalive_ms: number
  clock: Clock
  policies: PolicySource
  /** Sessions whose terminals agents keep while the server is away, and by which it continues them. */
  kept: RestoredSessionParts['kept']
  keepSecret: SessionParts['keepSecret']
  hashing: HashThread
  agentless: Agentless
  /** Limits lines that strangers cause. */
  lines: LineLimiter
  log: Log
}

export interface Gateway {
  readonly port: number
  readonly sessions: ReadonlyMap<string, OpenSession>
  /** Sessions that go on without their client. */
  readonly held: HeldSessions
  /** Connections that were refused before they could try anything. */
  readonly refused: Counter<WhyRefused>
  /**
   * A session for a browser at this address; the signal ends it. Throws a Failure with a sentence for the
   * user.
   */
  terminal(request: TerminalRequest, source: string, signal: AbortSignal): Promise<Terminal>
  /** Continues a session of this node in a browser; as `terminal`. */
  attach(request: AttachRequest, source: string, signal: AbortSignal): Promise<Terminal>
  /** Gives a session of this node to a client at another node, at the other end of the stream. */
  give(request: RemoteAttachRequest): Promise<Duplex>
  /** A device says which terminals it has kept. */
  readonly restore: Pick<RestoredSessions, 'arrived' | 'reported' | 'left'>
  /** Accepts no more connections; resolves when the sessions have ended, at the latest after this time. */
  stop(grace_ms: number): Promise<void>
}

const login_ms = 120_000
/**
 * Agents' SFTP servers use OpenSSH's order of the two names of a symbolic link, not the draft's. Clients look
 * for `OpenSSH` in this text to find out.
 */
const software = 'Hawser_OpenSSH'
/** Refused connections share one line of the log in this time, so that nobody can fill the log with them. */
const logRefused_ms = 10_000

const leavingSentence =
  'The server is stopping. Your session goes on: log in again in a moment to continue it.'

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { log } = parts
  const open = new Map<string, OpenSession>()
  const served = new Set<Promise<void>>()
  /** One for each connection that has not logged in; `stop` aborts them. */
  const unauthenticated = new Set<AbortController>()

  const track = (work: Promise<void>): void => {
    const task = work.finally(() => served.delete(task))
    served.add(task)
  }

  const isTrusted = (address: string): boolean => {
    const family = net.isIP(address)
    return family !== 0 && parts.trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  const held = heldSessions(parts.clock)
  const typistPlace = typistPlaces()
  const refused = refusals(log)
  const sessionParts = {
    open,
    idle_ms: parts.idle_ms,
    isThere: parts.logins.isThere,
    mayReach: async (...login: Parameters<SessionParts['mayReach']>) =>
      (await parts.logins.firewall(...login)).allowed,
    recording: parts.recording,
    held,
    remote: parts.remote,
    screen: parts.screen,
    typistPlace,
    lostRight: parts.lostRight,
    mayWait: parts.mayWait,
    standing: parts.standing,
    attachable: parts.attachable,
    policies: parts.policies,
    keepSecret: parts.keepSecret,
    restoring: (device_uid: string) => restored.pending(device_uid),
    hashing: parts.hashing,
  }
  let stopping = false
  const restored = restoredSessions({ ...parts, ...sessionParts, begun: track })

  async function terminal(request: TerminalRequest, source: string, signal: AbortSignal): Promise<Terminal> {
    if (stopping) throw new Failure('unavailable', { message: 'The server is stopping.' })
    using stack = new DisposableStack()
    if (!stack.use(parts.startups.session(source))) {
      using report = parts.reports.open({ source, via: 'web', by: request.person.name })
      report.asked(`${request.username}@${request.device_uid}`)
      report.refused({ reason: 'too-many-sessions' })
      throw new Failure('tooMany', { message: 'Too many sessions from your address.' })
    }
    const pending = new AbortController()
    unauthenticated.add(pending)
    const limit = AbortSignal.any([signal, pending.signal])
    try {
      const begun = (done: Promise<void>): void => {
        const held = stack.move()
        track(done.finally(() => held.dispose()))
      }
      return await openTerminal({ ...parts, ...sessionParts, begun }, request, source, limit)
    } finally {
      unauthenticated.delete(pending)
    }
  }

  async function serve(socket: Socket): Promise<void> {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const trusted = isTrusted(peer)
    const proxied = trusted ? await readProxyHeader(socket) : undefined
    const origin: Origin = proxied ?? { address: peer, port: socket.remotePort ?? 0 }
    const entered = parts.startups.enter(origin.address, trusted && !proxied)
    if (typeof entered === 'string') {
      refused.add(origin.address, entered)
      return void socket.destroy()
    }
    using startup = entered
    const pending = new AbortController()
    unauthenticated.add(pending)
    const gone = new AbortController()
    const leave = (): void => gone.abort()
    socket.once('close', leave)
    try {
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
        if (cause instanceof NothingInCommon && parts.lines.allows(neighbourhood(origin.address)))
          log.info({
            event: 'negotiation.failed',
            source: origin.address,
            missing: cause.missing,
            offered: cause.offered.join(','),
          })
        throw error
      })
      const joining = enrolment.joining()
      // The connection counts as unauthenticated until it is a tunnel, which the registry counts and ends.
      if (joining) {
        await parts.agentless.join(near, joining, socket)
        return startup.loggedIn()
      }
      startup.loggedIn()
      unauthenticated.delete(pending)
      // From now on the session may outlive its client.
      socket.off('close', leave)
      await runSession(sessionParts, near, login.outcome(), origin, log)
    } finally {
      unauthenticated.delete(pending)
    }
  }

  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 },
    (socket) => {
      socket.on('error', () => undefined)
      track(
        serve(socket).catch((error: unknown) => {
          socket.destroy()
          // A client that disconnects or does not speak SSH is no error: load balancers do so all day.
          const usual =
            error instanceof ConnectionEnded || error instanceof SshError || error instanceof BadHeader
          if (usual) log.debug({ event: 'connection.ended', why: error.message })
          else log.error({ event: 'connection.failed', err: error })
        }),
      )
    },
  )
  listener.listen(parts.listen)
  await new Promise<void>((resolve, reject) => void listener.once('listening', resolve).once('error', reject))

  return {
    port: (listener.address() as AddressInfo).port,
    sessions: open,
    held,
    refused: refused.counts,
    terminal,
    async attach(request, source, signal) {
      if (stopping) throw new Failure('unavailable', { message: 'The server is stopping.' })
      return attachTerminal({ logins: parts.logins, held }, request, source, signal)
    },
    async give(request) {
      if (stopping) throw new Failure('unavailable', { message: 'The server is stopping.' })
      return giveTerminal(held, request)
    },
    restore: restored,
    async stop(grace_ms) {
      stopping = true
      listener.close()
      restored.stop()
      for (const pending of unauthenticated) pending.abort()
      // A session whose terminal an agent keeps goes on when a server is there again. Every other one ends here.
      const left = new Set<string>()
      const letGo = ({ uid, end }: OpenSession): void => {
        if (held.find(uid)?.leave(leavingSentence) === true) left.add(uid)
        else end('The server is stopping.')
      }
      for (const session of open.values())
        if (held.find(session.uid)?.held_until !== undefined) letGo(session)
      const late = setTimeout(() => {
        const sessions = [...open.values()].map((session) => ({
          session,
          continues: held.find(session.uid)?.continues,
        }))
        for (const { session, continues } of sessions) if (continues === undefined) letGo(session)
        // Whoever has come back to a session is told what becomes of that one; if it is not here, another node has it.
        for (const { session, continues } of sessions)
          if (continues !== undefined)
            session.end(
              left.has(continues) || !open.has(continues) ? leavingSentence : 'The server is stopping.',
            )
      }, grace_ms)
      await Promise.all(served)
      clearTimeout(late)
    },
  }
}

/** Counts refused connections, and logs them at most once in `logRefused_ms`. */
function refusals(log: Log) {
  const counts = new Counter(whyRefused)
  let count = 0
  let logged = { at: -Infinity, count: 0 }
  return {
    counts,
    add(source: string, why: WhyRefused): void {
      counts.add(why)
      count += 1
      if (performance.now() - logged.at < logRefused_ms) return
      log.warn({ event: 'connection.refused', source, why, sinceLast: count - logged.count })
      logged = { at: performance.now(), count }
    },
  }
}
