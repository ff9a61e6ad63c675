// The SSH listener. It accepts connections within limits (startups.ts); ssh-client.ts serves each. When the server
// stops, the listener accepts no more connections, and sessions get `HAWSER_DRAIN` seconds. Then those whose terminals agents keep
// are left to the next server, and all others end (`endSessions`).
import net, { type AddressInfo } from 'node:net'
import { ConnectionEnded, SshError } from '@hawser/ssh'
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import type { Size } from '../../recording/journal.ts'
import type { SessionLogin, OpenSession } from '../../domain/sessions/revocation.ts'
import { Counter } from '../../kit/counter.ts'
import type { Clock } from '../../kit/clock.ts'
import type { HashThread } from '../channels/hash-thread.ts'
import { heldSessions, type HeldSessions } from '../terminal/held.ts'
import { BadHeader } from './proxy-header.ts'
import { serveSshClient, type SshClientDoor, type SshClientParts } from './ssh-client.ts'
import { restore, type Restore, type RestoreParts } from '../terminal/restore.ts'
import type { Reattached } from '../terminal/terminal.ts'
import {
  runRestored,
  runSession,
  type PolicySource,
  type Recording,
  type SessionParts,
} from '../channels/session.ts'
import { whyRefused, type WhyRefused } from './startups.ts'
import { typistPlaces } from '../terminal/sharing.ts'
import {
  attachTerminal,
  openTerminal,
  type AttachRequest,
  type BrowserTerminal,
  type TerminalRequest,
} from './browser.ts'

export interface GatewayParts extends SshClientParts {
  /** Sessions are here while they are open. */
  open: Map<string, OpenSession>
  listen: { readonly host: string; readonly port: number }
  idle_ms: number
  recording: Recording
  lostRight: SessionParts['lostRight']
  /** Whether a session may wait for its person. */
  mayBeHeld(held: SessionLogin): Promise<boolean>
  standing: SessionParts['standing']
  /** Whether there are other nodes. */
  isClustered: boolean
  letGo: RestoreParts['letGo']
  /** The user can continue the session in a browser, until this is disposed. */
  attachable(session_uid: string, user_id: string): Disposable
  /** The screen of a terminal that may be held. */
  screen(size: Size, tenant_id: string): TerminalScreen
  clock: Clock
  policies: PolicySource
  /** Finds sessions with detached terminals and takes them over. */
  detached: RestoreParts['detached']
  detachSecret: SessionParts['detachSecret']
  hashing: HashThread
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
  terminal(request: TerminalRequest, source: string, signal: AbortSignal): Promise<BrowserTerminal>
  /** Continues a session of this node in a browser; as `terminal`. */
  attach(request: AttachRequest, source: string, signal: AbortSignal): Promise<BrowserTerminal>
  /** Lets a session go to another node, where its person has reattached. */
  handOver(session_uid: string, by: Reattached): void
  /** Devices report their detached terminals here. */
  readonly restore: Pick<Restore, 'arrived' | 'reported' | 'left'>
  /** Accepts no more connections; resolves when all sessions have ended. They are ended after this time. */
  stop(grace_ms: number): Promise<void>
}

const stoppingSentence = 'The server is stopping.'
const leavingSentence =
  'The server is stopping. Your session goes on: log in again in a moment to continue it.'

export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { log, open } = parts
  const served = new Set<Promise<void>>()
  /** One for each connection that has not logged in; `stop` aborts them. */
  const unauthenticated = new Set<AbortController>()

  const track = (work: Promise<void>): void => {
    const task = work.finally(() => served.delete(task))
    served.add(task)
  }

  const pending = (): Disposable & { readonly signal: AbortSignal } => {
    const stop = new AbortController()
    unauthenticated.add(stop)
    return { signal: stop.signal, [Symbol.dispose]: () => void unauthenticated.delete(stop) }
  }

  const held = heldSessions(parts.clock)
  const typistPlace = typistPlaces()
  const refused = new Counter(whyRefused)
  const sessionParts = {
    open,
    idle_ms: parts.idle_ms,
    isThere: parts.logins.isThere,
    mayReach: async (...login: Parameters<SessionParts['mayReach']>) =>
      (await parts.logins.firewall(...login)).allowed,
    recording: parts.recording,
    held,
    elsewhere: parts.isClustered
      ? (...asked: Parameters<Restore['elsewhere']>) => restored.elsewhere(...asked)
      : undefined,
    screen: parts.screen,
    typistPlace,
    lostRight: parts.lostRight,
    mayBeHeld: parts.mayBeHeld,
    standing: parts.standing,
    attachable: parts.attachable,
    policies: parts.policies,
    detachSecret: parts.detachSecret,
    restoring: (device_uid: string) => restored.pending(device_uid),
    hashing: parts.hashing,
  }
  let stopping = false
  const restored = restore({
    ...parts,
    ...sessionParts,
    run: (...taken) => track(runRestored(sessionParts, ...taken, log)),
  })

  async function terminal(
    request: TerminalRequest,
    source: string,
    signal: AbortSignal,
  ): Promise<BrowserTerminal> {
    if (stopping) throw new Failure('unavailable', { message: stoppingSentence })
    using stack = new DisposableStack()
    if (!stack.use(parts.startups.session(source))) {
      using report = parts.reports.open({ source, via: 'web', by: request.person.name })
      report.asked(`${request.username}@${request.device_uid}`)
      report.refused({ reason: 'too-many-sessions' })
      throw beyond(sessionLimits.connections)
    }
    using loggingIn = pending()
    const limit = AbortSignal.any([signal, loggingIn.signal])
    const begun = (done: Promise<void>): void => {
      const held = stack.move()
      track(done.finally(() => held.dispose()))
    }
    return await openTerminal({ ...parts, ...sessionParts, begun }, request, source, limit)
  }

  const door: SshClientDoor = {
    ...parts,
    pending,
    onRefused(source, why) {
      refused.add(why)
      if (parts.lines.allows('connection.refused')) log.warn({ event: 'connection.refused', source, why })
    },
    run: async (client, login, origin) => runSession(sessionParts, client, login, origin, log),
  }
  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 },
    (socket) => {
      socket.on('error', () => undefined)
      track(
        serveSshClient(door, socket).catch((error: unknown) => {
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
    refused,
    terminal,
    async attach(request, source, signal) {
      if (stopping) throw new Failure('unavailable', { message: stoppingSentence })
      return attachTerminal({ logins: parts.logins, held }, request, source, signal)
    },
    handOver: (uid, by) => held.find(uid)?.handOver(by),
    restore: restored,
    async stop(grace_ms) {
      stopping = true
      listener.close()
      restored.stop()
      for (const pending of unauthenticated) pending.abort()
      const late = endSessions(open, held, grace_ms)
      await Promise.all(served)
      clearTimeout(late)
    },
  }
}

/**
 * Lets held sessions go at once, and all others after a while. A session whose terminal an agent keeps continues when
 * a server is there again; every other one ends.
 */
function endSessions(
  open: ReadonlyMap<string, OpenSession>,
  held: HeldSessions,
  grace_ms: number,
): NodeJS.Timeout {
  const left = new Set<string>()
  const leaveOrEnd = ({ uid, end }: OpenSession): void => {
    if (held.find(uid)?.leave(leavingSentence) === true) left.add(uid)
    else end(stoppingSentence)
  }
  for (const session of open.values()) if (session.heldFor?.()) leaveOrEnd(session)
  return setTimeout(() => {
    const sessions = [...open.values()].map((session) => ({
      session,
      continues: held.find(session.uid)?.continues,
    }))
    for (const { session, continues } of sessions) if (continues === undefined) leaveOrEnd(session)
    // A login that has reattached to a session shares its fate; if that session is not here, another node has it.
    for (const { session, continues } of sessions)
      if (continues !== undefined)
        session.end(left.has(continues) || !open.has(continues) ? leavingSentence : stoppingSentence)
  }, grace_ms)
}
