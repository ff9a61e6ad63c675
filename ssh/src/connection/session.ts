// A session (RFC 4254 section 6), from either side. A server learns what is wanted before the program starts
// (a terminal, variables, the program itself) and hears afterwards of resizes and signals; a client asks for
// the same and is told how it ended. Bytes are the channel's: what a client sends right behind its request
// waits in the channel until it is read.
import { ChannelClosed, ConnectionEnded } from '../errors.ts'
import type { Channel } from './channel.ts'
import type { Connection } from './connection.ts'
import {
  readRequest,
  writeRequest,
  type Exit,
  type Program,
  type Pty,
  type SessionRequest,
  type Size,
} from './requests.ts'

/** The state when the program is to start. */
export interface Session {
  readonly channel: Channel
  readonly program: Program
  readonly pty: Pty | undefined
  readonly env: ReadonlyMap<string, string>
  /** The client forwards its agent. */
  readonly agent: boolean
  readonly x11: (SessionRequest & { readonly type: 'x11-req' }) | undefined
  /** Events of the running program; ends with the channel. All other requests are refused. */
  readonly events: AsyncIterable<SessionEvent>
  /** Reports how the program ended and closes, after all output. */
  exit(exit: number | Exit): Promise<void>
}

/** A client's message to a running program. */
export type SessionEvent =
  | { readonly type: 'window-change'; readonly size: Size }
  | { readonly type: 'signal'; readonly signal: string }
  | { readonly type: 'break'; readonly duration_ms: number }

/** Far more than anybody has; every variable costs memory before there is a program. */
const mostVariables = 512
const mostVariables_bytes = 256 * 1024

/**
 * Waits for the program of a new session channel. A request that `allow` refuses is answered and forgotten.
 * Undefined: the client closed without a program.
 */
export async function receiveSession(
  channel: Channel,
  allow: (request: SessionRequest) => boolean,
): Promise<Session | undefined> {
  const env = new Map<string, string>()
  let env_bytes = 0
  let pty: Pty | undefined
  let agent = false
  let x11: Session['x11']
  for (;;) {
    const asked = await channel.requests.next()
    if (!asked) {
      // The channel's input is dropped, and must not be held.
      await channel.close()
      return undefined
    }
    const request = readRequest(asked.type, asked.payload)
    const hasRoom = env.size < mostVariables && env_bytes + asked.payload.length <= mostVariables_bytes
    const isKnown = request.type !== 'other' && request.type !== 'malformed'
    const allowed = isKnown && allow(request) && (request.type !== 'env' || hasRoom)
    if (allowed && request.type === 'env') {
      env_bytes += asked.payload.length
      env.set(request.name, request.value)
    }
    if (allowed && request.type === 'pty-req') pty = request.pty
    if (allowed && request.type === 'window-change' && pty) pty = { ...pty, ...request.size }
    if (allowed && request.type === 'auth-agent-req@openssh.com') agent = true
    if (allowed && request.type === 'x11-req') x11 = request
    asked.reply(allowed)
    if (allowed && (request.type === 'shell' || request.type === 'exec' || request.type === 'subsystem')) {
      return {
        channel,
        program: request,
        pty,
        env,
        agent,
        x11,
        events: eventsOf(channel),
        exit: async (how) => exit(channel, how),
      }
    }
  }
}

/** The signals that a client may send (RFC 4254 section 6.10). */
export const sendableSignals: ReadonlySet<string> = new Set(
  'ABRT ALRM FPE HUP INT KILL PIPE QUIT SEGV TERM USR1 USR2'.split(' '),
)

async function* eventsOf(channel: Channel): AsyncGenerator<SessionEvent> {
  for await (const asked of channel.requests) {
    const request = readRequest(asked.type, asked.payload)
    const known = request.type === 'window-change' || request.type === 'signal' || request.type === 'break'
    asked.reply(known)
    if (known) yield request
  }
}

async function exit(channel: Channel, how: number | Exit): Promise<void> {
  const { name, payload } = writeRequest(typeof how === 'number' ? { type: 'exit-status', status: how } : how)
  try {
    // First the status: a client may close at EOF, and would not receive it.
    await channel.request(name, payload)
    await channel.end()
  } catch (error) {
    // The client is gone.
    if (!(error instanceof ChannelClosed) && !(error instanceof ConnectionEnded)) throw error
  }
  await channel.close()
}

/** A client's request for a session. */
export interface SessionOptions {
  readonly program: Program
  readonly pty?: Pty
  readonly env?: Readonly<Record<string, string>>
  /** Lets the server use our agent, by channels that it opens. */
  readonly agent?: boolean
}

/** A session as its client sees it. */
export interface RunningSession extends AsyncDisposable {
  readonly channel: Channel
  /** Undefined: the server did not report it. */
  readonly exit: Promise<Exit | undefined>
  resize(size: Size): Promise<void>
  signal(name: string): Promise<void>
}

/** The server refused the terminal or the program. */
export class SessionRefused extends Error {
  override readonly name = 'SessionRefused'
}

/** Throws SessionRefused when the server refuses. */
export async function startSession(
  connection: Pick<Connection, 'open'>,
  options: SessionOptions,
): Promise<RunningSession> {
  const channel = await connection.open('session')
  const ask = async (request: SessionRequest, wantReply: boolean): Promise<boolean> => {
    const { name, payload } = writeRequest(request)
    return channel.request(name, payload, wantReply)
  }
  const wanted: Promise<boolean>[] = []
  // All at once: replies come in order, and waiting for each would cost a round trip.
  if (options.agent) wanted.push(ask({ type: 'auth-agent-req@openssh.com' }, true).then(() => true))
  if (options.pty) wanted.push(ask({ type: 'pty-req', pty: options.pty }, true))
  for (const [name, value] of Object.entries(options.env ?? {}))
    wanted.push(ask({ type: 'env', name, value }, false))
  wanted.push(ask(options.program, true))
  const exited = exitOf(channel)
  const granted = await Promise.all(wanted)
  if (granted.includes(false)) {
    await channel.close('now')
    throw new SessionRefused('The server refused to start it.')
  }
  return {
    channel,
    exit: exited,
    resize: async (size) => void (await ask({ type: 'window-change', size }, false)),
    signal: async (signal) => void (await ask({ type: 'signal', signal }, false)),
    async [Symbol.asyncDispose]() {
      await channel.close('now')
    },
  }
}

async function exitOf(channel: Channel): Promise<Exit | undefined> {
  let how: Exit | undefined
  for await (const asked of channel.requests) {
    const request = readRequest(asked.type, asked.payload)
    const known = request.type === 'exit-status' || request.type === 'exit-signal'
    if (known) how = request
    asked.reply(known)
  }
  return how
}
