// What may pass between a client and a device, channel by channel. Bytes pass unread. Of the requests, the
// client's variables are filtered (old agents accept every variable, LD_PRELOAD included), a certificate's
// forced command replaces the command asked for, and the session's record gets what starts. The recorder gets
// the output of a terminal before the client does. The device may open only those channels towards the client
// that the client has asked for.
import { passes, tellNamed } from '@hawser/contract/environment'
import { clientVariable } from '@hawser/contract/tunnel'
import {
  readRequest,
  writeRequest,
  type Channel,
  type GlobalRequest,
  type Opening,
  type PipeOptions,
  type Side,
  type Tap,
} from '@hawser/ssh'
import type { LiveSession } from '../domain/sessions/live-sessions.ts'
import type { LoginLimits } from '../domain/access/logins.ts'
import type { ChannelRecorder } from '../recording/tap.ts'

/** What the policy of one session depends on. */
export interface ChannelPolicyParts {
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
  /** Shown once before the output of a shell in a terminal; empty: nothing. */
  readonly announcement: string
  /** The client's address, which our own agent puts into the environment. */
  readonly client: { readonly address: string; readonly port: number }
  readonly agentIsOurs: boolean
  /** Variables that may pass beside those of language. */
  readonly acceptEnv: readonly string[]
  /** Whether the agent closes a forwarded connection in both directions when one has ended. */
  readonly closesAtEof: boolean
  /** What the client reads when the device is lost. */
  readonly lostMessage: string
  /** Makes a recorder for each channel that may have a terminal. */
  recorder(): ChannelRecorder
  /** Called when bytes pass. */
  active(): void
}

/** Channels that a client may open. */
export const clientChannels = ['session', 'direct-tcpip', 'direct-streamlocal@openssh.com']
/** Global requests of a client that go to the device. */
export const clientRequests = [
  'tcpip-forward',
  'cancel-tcpip-forward',
  'streamlocal-forward@openssh.com',
  'cancel-streamlocal-forward@openssh.com',
]

/** The extension that a certificate needs for a request to pass. */
const extensions: Readonly<Record<string, string>> = {
  'pty-req': 'permit-pty',
  'auth-agent-req@openssh.com': 'permit-agent-forwarding',
  'x11-req': 'permit-X11-forwarding',
}

/**
 * ShellHub's agents drop what a forwarded connection still has to deliver when they get the client's EOF;
 * ShellHub's gateway never forwards it. Some servers wait for it, so the EOF is forwarded once the other end
 * has been silent for so long.
 */
const heldEof_ms = 30_000

export function channelPolicy(parts: ChannelPolicyParts): PipeOptions {
  const permits = (extension: string): boolean => parts.limits?.permits.has(extension) ?? true
  let askedForAgent = false
  let askedForForward = false
  // The first program decides the type of a session: copying files beside a shell does not change it.
  let named = false
  const name = (type: 'shell' | 'exec' | 'subsystem'): void => {
    if (!named) parts.record.note({ type })
    named = true
  }

  return {
    channel(from: Side, opening: Opening) {
      if (from === 'far')
        return {
          allow: opening.type.startsWith('auth-agent') ? askedForAgent : askedForForward,
          tap: forwardTap(parts),
        }
      if (opening.type !== 'session') {
        const holdEof_ms = parts.closesAtEof ? heldEof_ms : undefined
        return { allow: permits('permit-port-forwarding'), tap: forwardTap(parts), holdEof_ms }
      }
      return { allow: true, tap: sessionTap({ ...parts, name }, permits, () => (askedForAgent = true)) }
    },
    request(from: Side, request: GlobalRequest) {
      if (from === 'far') return false
      if (!request.name.startsWith('cancel-')) {
        if (!permits('permit-port-forwarding')) return false
        askedForForward = true
      }
      return true
    },
  }
}

/**
 * Forwarded connections carry bytes only. A request for a terminal, a program or a variable on one of them
 * would bypass every check of sessions, so all requests are refused.
 */
function forwardTap({ active }: ChannelPolicyParts): Tap {
  return { data: active, request: () => 'refuse' }
}

interface SessionTapParts extends ChannelPolicyParts {
  /** Stores the type of the session, if it has none yet. */
  name(type: 'shell' | 'exec' | 'subsystem'): void
}

function sessionTap(
  parts: SessionTapParts,
  permits: (extension: string) => boolean,
  onAgent: () => void,
): Tap {
  let terminal = false
  let subsystem = false
  let channels: { near: Channel; far: Channel } | undefined
  /** Resolves when the client has the announcement; output waits for it. */
  let announced: Promise<void> | undefined
  const recorder = parts.recorder()

  const program = (
    type: 'shell' | 'exec' | 'subsystem',
    command?: string,
  ): ReturnType<NonNullable<Tap['request']>> => {
    const forced = parts.limits?.forceCommand
    parts.name(forced === undefined ? type : 'exec')
    subsystem = type === 'subsystem' && forced === undefined
    recorder.program(forced === undefined ? type : 'exec', forced ?? command)
    if (type === 'shell' && terminal && forced === undefined && parts.announcement !== '') {
      recorder.announcement(parts.announcement)
      announced = channels?.near.write(Buffer.from(parts.announcement)).catch(() => undefined)
    }
    if (forced === undefined) return undefined
    const { name, payload } = writeRequest({ type: 'exec', command: forced })
    return { type: name, payload }
  }

  return {
    opened(near, far) {
      channels = { near, far }
      void Promise.all([near.closed, far.closed]).then(() => recorder.close())
      if (!parts.agentIsOurs) return
      const { address, port } = parts.client
      const { name, payload } = writeRequest({
        type: 'env',
        name: clientVariable,
        value: `${address} ${port}`,
      })
      void far.request(name, payload).catch(() => undefined)
    },
    data(from, { bytes }) {
      parts.active()
      if (from === 'near') return undefined
      const recorded = recorder.output(bytes)
      if (!announced || !recorded) return recorded ?? announced
      return Promise.all([recorded, announced]).then(() => undefined)
    },
    request(from, asked) {
      if (from === 'far') {
        const exit = readRequest(asked.type, asked.payload)
        if (exit.type === 'exit-status') recorder.exit({ status: exit.status })
        if (exit.type === 'exit-signal') recorder.exit({ signal: exit.signal })
        return undefined
      }
      const request = readRequest(asked.type, asked.payload)
      if (request.type === 'exec') return program(request.type, request.command)
      if (request.type === 'shell' || request.type === 'subsystem') return program(request.type)
      if (request.type === 'env') return variable(parts, request)
      const extension = extensions[request.type]
      if (extension !== undefined && !permits(extension)) return 'refuse'
      if (request.type === 'auth-agent-req@openssh.com') onAgent()
      if (request.type === 'pty-req') {
        terminal = true
        parts.record.note({ term: request.pty.terminal })
        recorder.terminal(request.pty.terminal, sizeOf(request.pty))
      }
      if (request.type === 'window-change') recorder.resize(sizeOf(request.size))
      return undefined
    },
    async ending(near, { lost, exited }) {
      if (lost) return near.write(Buffer.from(`\r\n${parts.lostMessage}\r\n`), terminal ? 0 : 1)
      // Agents never send the exit status of an SFTP server, and clients take its absence for a failure.
      if (exited || !subsystem) return
      const { name, payload } = writeRequest({ type: 'exit-status', status: 0 })
      await near.request(name, payload)
    },
  }
}

/**
 * Whether a variable passes. Our own agent also gets the mark that the namespace names the variable; other
 * agents accept every variable.
 */
function variable(
  { acceptEnv, agentIsOurs }: ChannelPolicyParts,
  { name, value }: { name: string; value: string },
): ReturnType<NonNullable<Tap['request']>> {
  const why = passes(name, acceptEnv)
  if (why === undefined) return 'refuse'
  if (why === 'always' || !agentIsOurs) return undefined
  const marked = writeRequest({ type: 'env', name: tellNamed(name), value })
  return { type: marked.name, payload: marked.payload }
}

const sizeOf = ({ columns, rows }: { columns: number; rows: number }) => ({ width: columns, height: rows })

/** An administrator's text for a user's terminal: its lines without any control sequence. */
export function announcementFor(text: string): string {
  const plain = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\p{Cc}/gu, (control) => (control === '\n' || control === '\t' ? control : ''))
    .trimEnd()
  return plain === '' ? '' : `${plain.replaceAll('\n', '\r\n')}\r\n`
}
