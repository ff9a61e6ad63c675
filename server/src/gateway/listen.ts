// The SSH door. Connections are taken while there is room for them (see startups.ts); each has its time to
// log in, and is then a session, or the tunnel of a device that has no agent. When the server stops, nobody
// new comes in and sessions get some time to end.
import net, { type AddressInfo, type BlockList, type Socket } from 'node:net'
import {
  acceptConnection,
  ConnectionEnded,
  NothingInCommon,
  SshError,
  type Algorithms,
  type PrivateKey,
} from '@hawser/ssh'
import { Failure } from '@hawser/contract/failures'
import { plainAddress } from '../kit/address.ts'
import { newUid } from '../kit/ids.ts'
import type { Log } from '../kit/log.ts'
import type { Agentless } from './agentless.ts'
import { clientChannels, clientRequests } from './channels.ts'
import { handshake, type HandshakeParts } from './handshake.ts'
import { BadHeader, readProxyHeader, type Origin } from './proxy-header.ts'
import { runSession, type OpenSession, type Recording } from './session.ts'
import type { Startups, WhyRefused } from './startups.ts'
import { openTerminal, type Terminal, type TerminalWish } from './terminal.ts'

export interface GatewayParts extends HandshakeParts {
  listen: { readonly host: string; readonly port: number }
  hostKeys: readonly PrivateKey[]
  algorithms: Algorithms
  /** Whose PROXY header is believed. */
  trusted: BlockList
  startups: Startups
  idle_ms: number
  recording: Recording
  agentless: Agentless
  log: Log
}

export interface Gateway {
  readonly port: number
  readonly sessions: ReadonlyMap<string, OpenSession>
  /** Connections that were not taken. */
  readonly refused: number
  /**
   * A session for somebody in a browser at this address; the signal ends it. Throws a Failure with a sentence
   * for them.
   */
  terminal(wish: TerminalWish, source: string, signal: AbortSignal): Promise<Terminal>
  /** Takes nobody new; resolves when the sessions are over, at the latest after this time. */
  stop(grace_ms: number): Promise<void>
}

const login_ms = 120_000
/**
 * Agents' file servers keep to OpenSSH's order of the names of a symbolic link, not to the draft's: clients
 * look for this.
 */
const software = 'Hawser_OpenSSH'
/** Refused connections are told to the log together: whoever makes them could otherwise fill it. */
const tellRefused_ms = 10_000

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { log } = parts
  const open = new Map<string, OpenSession>()
  const served = new Set<Promise<void>>()
  const strangers = new Set<AbortController>()

  const track = (work: Promise<void>): void => {
    const task = work.finally(() => served.delete(task))
    served.add(task)
  }

  const isTrusted = (address: string): boolean => {
    const family = net.isIP(address)
    return family !== 0 && parts.trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  const isThere = async (uid: string): Promise<boolean> => (await parts.logins.find(uid)) !== undefined

  let refused = 0
  let lastTold = { at: -Infinity, refused: 0 }
  function turnAway(source: string, why: WhyRefused): void {
    refused += 1
    if (performance.now() - lastTold.at < tellRefused_ms) return
    log.warn({ event: 'connection.refused', source, why, sinceLast: refused - lastTold.refused })
    lastTold = { at: performance.now(), refused }
  }

  const sessionParts = { open, idle_ms: parts.idle_ms, isThere, recording: parts.recording }
  let stopping = false

  async function terminal(wish: TerminalWish, source: string, signal: AbortSignal): Promise<Terminal> {
    if (stopping) throw new Failure('unavailable', { message: 'The server is stopping.' })
    using stack = new DisposableStack()
    if (!stack.use(parts.startups.session(source)))
      throw new Failure('tooMany', { message: 'Too many sessions from your address.' })
    const stranger = new AbortController()
    strangers.add(stranger)
    const limit = AbortSignal.any([signal, stranger.signal])
    try {
      const begun = (done: Promise<void>): void => {
        const held = stack.move()
        track(done.finally(() => held.dispose()))
      }
      return await openTerminal({ ...parts, ...sessionParts, begun }, wish, source, limit)
    } finally {
      strangers.delete(stranger)
    }
  }

  async function serve(socket: Socket): Promise<void> {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const trusted = isTrusted(peer)
    const told = trusted ? await readProxyHeader(socket) : undefined
    const origin: Origin = told ?? { address: peer, port: socket.remotePort ?? 0 }
    const entered = parts.startups.enter(origin.address, trusted && !told)
    if (typeof entered === 'string') {
      turnAway(origin.address, entered)
      return void socket.destroy()
    }
    using startup = entered
    const stranger = new AbortController()
    strangers.add(stranger)
    const gone = new AbortController()
    socket.once('close', () => gone.abort())
    try {
      using door = handshake(parts, newUid(), origin.address, log, gone.signal)
      const entrance = parts.agentless.entrance(origin.address)
      const accepting = acceptConnection(socket, {
        software,
        hostKeys: parts.hostKeys,
        algorithms: parts.algorithms,
        methods: ['password', 'publickey', 'keyboard-interactive'],
        async authenticate(attempt) {
          if (attempt.method === 'password' || attempt.method === 'publickey') startup.tried()
          const decision = await (entrance.isFor(attempt.user) ? entrance : door).authenticate(attempt)
          // Whoever leaves while the question stands has tried nothing.
          if (attempt.method === 'keyboard-interactive') startup.tried()
          return decision
        },
        onBadSignature(user) {
          startup.tried()
          door.forged(user)
        },
        handshake_ms: login_ms,
        answerKexInit: !told && isLoopback(peer),
        channelTypes: clientChannels,
        globalRequests: clientRequests,
        signal: stranger.signal,
      })
      // Whoever looked for a header has stopped the socket.
      socket.resume()
      const near = await accepting.catch((error: unknown) => {
        const { cause } = error as Error
        // Somebody's client is too old or too new for us, and all it shows them is that the connection ended.
        if (cause instanceof NothingInCommon)
          log.info({
            event: 'negotiation.failed',
            source: origin.address,
            missing: cause.missing,
            offered: cause.offered.join(','),
          })
        throw error
      })
      const joining = entrance.joining()
      // It is a stranger until it is a tunnel, and those are not ours to count and to end.
      if (joining) {
        await parts.agentless.bring(near, joining)
        return startup.loggedIn()
      }
      startup.loggedIn()
      strangers.delete(stranger)
      await runSession(sessionParts, near, door.outcome(), origin, log)
    } finally {
      strangers.delete(stranger)
    }
  }

  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 },
    (socket) => {
      socket.on('error', () => undefined)
      track(
        serve(socket).catch((error: unknown) => {
          socket.destroy()
          // Who leaves, or speaks something else than SSH, is no fault of ours: load balancers do it all day.
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
    get refused() {
      return refused
    },
    terminal,
    async stop(grace_ms) {
      stopping = true
      listener.close()
      for (const stranger of strangers) stranger.abort()
      const late = setTimeout(() => {
        for (const session of open.values()) session.end('The server is stopping.')
      }, grace_ms)
      await Promise.all(served)
      clearTimeout(late)
    },
  }
}
