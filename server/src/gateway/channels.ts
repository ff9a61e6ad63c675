// What may pass between a client and a device, channel by channel. Bytes are not looked at. Of the requests,
// the client's variables are filtered (agents of old take everything, LD_PRELOAD included), a certificate's
// forced command takes the place of what was asked for, and what starts is noted in the session's record.
// What a program shows on a terminal is handed to a recorder before the client gets it. The device may only
// open towards the client what the client has asked for.
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

export interface Passage {
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
  /** Shown once before the output of a shell in a terminal; empty: nothing. */
  readonly announcement: string
  /** Where the person comes from; told to agents that know what to do with it. */
  readonly client: { readonly address: string; readonly port: number }
  readonly agentIsOurs: boolean
  /** Variables that pass beside those of language. */
  readonly acceptEnv: readonly string[]
  /** Its agent closes a forwarded connection in both directions when one has ended. */
  readonly closesAtEof: boolean
  /** Said to the client when the device is lost. */
  readonly farewell: string
  /** One for every channel that may have a terminal. */
  recorder(): ChannelRecorder
  /** Bytes passed. */
  active(): void
}

/** Channels that a client may open. */
export const clientChannels = ['session', 'direct-tcpip', 'direct-streamlocal@openssh.com']
/** Requests of a client about the whole connection that are the device's to answer. */
export const clientRequests = [
  'tcpip-forward',
  'cancel-tcpip-forward',
  'streamlocal-forward@openssh.com',
  'cancel-streamlocal-forward@openssh.com',
]

/** What a certificate must have for a request to pass. */
const extensions: Readonly<Record<string, string>> = {
  'pty-req': 'permit-pty',
  'auth-agent-req@openssh.com': 'permit-agent-forwarding',
  'x11-req': 'permit-X11-forwarding',
}

/**
 * Agents of the field lose what a forwarded connection has still to bring when they hear that the client has
 * nothing more to send; ShellHub's gateway never tells them. They are told when the other end has been silent
 * for so long, for servers that wait for it.
 */
const heldEof_ms = 30_000

export function passage(parts: Passage): PipeOptions {
  const permits = (extension: string): boolean => parts.limits?.permits.has(extension) ?? true
  let askedForAgent = false
  let askedForForward = false
  // What a session is called is what it began with: files that are copied beside a shell do not make it
  // another one.
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
          tap: watching(parts),
        }
      if (opening.type !== 'session') {
        const holdEof_ms = parts.closesAtEof ? heldEof_ms : undefined
        return { allow: permits('permit-port-forwarding'), tap: watching(parts), holdEof_ms }
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
 * Forwarded connections carry bytes and nothing else. A request for a terminal, a program or a variable on one
 * of them would pass by everything that looks at sessions, so none passes.
 */
function watching({ active }: Passage): Tap {
  return { data: active, request: () => 'refuse' }
}

interface Named extends Passage {
  name(type: 'shell' | 'exec' | 'subsystem'): void
}

function sessionTap(parts: Named, permits: (extension: string) => boolean, onAgent: () => void): Tap {
  let terminal = false
  let subsystem = false
  let channels: { near: Channel; far: Channel } | undefined
  /** Output waits for it. */
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
      if (lost) return near.write(Buffer.from(`\r\n${parts.farewell}\r\n`), terminal ? 0 : 1)
      // Agents never say how an SFTP server ended, and clients take silence for a failure.
      if (exited || !subsystem) return
      const { name, payload } = writeRequest({ type: 'exit-status', status: 0 })
      await near.request(name, payload)
    },
  }
}

/**
 * Our own agent is told that a variable passes because the namespace names it; the others take what comes.
 */
function variable(
  { acceptEnv, agentIsOurs }: Passage,
  { name, value }: { name: string; value: string },
): ReturnType<NonNullable<Tap['request']>> {
  const why = passes(name, acceptEnv)
  if (why === undefined) return 'refuse'
  if (why === 'always' || !agentIsOurs) return undefined
  const told = writeRequest({ type: 'env', name: tellNamed(name), value })
  return { type: told.name, payload: told.payload }
}

const sizeOf = ({ columns, rows }: { columns: number; rows: number }) => ({ width: columns, height: rows })

/** An administrator's text on somebody's terminal: lines, and nothing that a terminal would obey. */
export function announcementFor(text: string): string {
  const plain = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\p{Cc}/gu, (control) => (control === '\n' || control === '\t' ? control : ''))
    .trimEnd()
  return plain === '' ? '' : `${plain.replaceAll('\n', '\r\n')}\r\n`
}
