// The rules for what passes between a client and a device. Bytes pass unread, except those of files, which
// transfers.ts follows. session-tap.ts has the rules for the channels of programs. The device may open only those
// channels towards the client that the client has asked for.
import {
  readListen,
  readPath,
  type Channel,
  type GlobalRequest,
  type Opening,
  type PipeOptions,
  type Side,
} from '@hawser/ssh'
import type { Terminal } from '../terminal/terminal.ts'
import { SessionTap, type Program, type RunningProgram, type SessionRules } from './session-tap.ts'
import { addressText, forwardedBy, forwardTap } from './transfers.ts'

export interface ChannelPolicyParts extends SessionRules {
  /** Whether the agent closes a forwarded connection in both directions when one has ended. */
  readonly closesAtEof: boolean
}

export const clientChannels = ['session', 'direct-tcpip', 'direct-streamlocal@openssh.com']
export const clientRequests = [
  'tcpip-forward',
  'cancel-tcpip-forward',
  'streamlocal-forward@openssh.com',
  'cancel-streamlocal-forward@openssh.com',
]

/**
 * ShellHub's agents drop what a forwarded connection still has to deliver when they get the client's EOF, and
 * ShellHub's gateway never forwards it. Some servers wait for it, so the EOF is forwarded once the other end
 * has been silent for this long.
 */
const heldEof_ms = 30_000

/** A restored terminal, and the channel on which the agent has handed its program over. */
export interface RestoredChannel {
  readonly near: Terminal
  readonly far: Channel
  readonly program: RunningProgram
}

export function channelPolicy(parts: ChannelPolicyParts, restored?: RestoredChannel): PipeOptions {
  const permits = (extension: string): boolean => parts.limits?.permits.has(extension) ?? true
  let askedForAgent = false
  let askedForForward = false
  // The first program decides the type of a session: copying files next to a shell does not change it.
  let isNamed = restored !== undefined
  const named = (type: Program): void => {
    if (!isNamed) parts.record.note({ type })
    isNamed = true
  }
  const sessionTap = (running?: RunningProgram): SessionTap =>
    new SessionTap({ ...parts, permits, named, onAgent: () => (askedForAgent = true) }, running)

  const { active, mask, policy } = parts
  const { events } = parts.record
  const transfers = { events, mask, policy }
  const refuse = (kind: 'forward' | 'remote-forward' | 'listen', subject: string, why: string): void =>
    void events.add({ kind, subject: mask(subject), outcome: 'refused', why })
  return {
    running: restored && { ...restored, tap: sessionTap(restored.program) },
    channel(from: Side, opening: Opening) {
      if (from === 'far' || opening.type !== 'session') {
        const kind = from === 'far' ? 'remote-forward' : 'forward'
        const forwarded = forwardedBy(opening)
        const asked = opening.type.startsWith('auth-agent') ? askedForAgent : askedForForward
        if (!(from === 'far' ? asked : permits('permit-port-forwarding'))) return { allow: false }
        const why = forwarded.whyNot(policy.rules())
        if (why !== undefined) refuse(kind, forwarded.text, why)
        const holdEof_ms = from === 'near' && parts.closesAtEof ? heldEof_ms : undefined
        const tap = forwardTap(transfers, kind, forwarded, active)
        return { allow: why === undefined, why, tap, holdEof_ms }
      }
      return { allow: true, tap: sessionTap() }
    },
    request(from: Side, request: GlobalRequest) {
      if (from === 'far') return false
      if (!request.name.startsWith('cancel-')) {
        if (!permits('permit-port-forwarding')) return false
        const why = policy.rules().listen()
        if (why !== undefined) {
          refuse('listen', listenedOn(request), why)
          return false
        }
        askedForForward = true
        events.add({ kind: 'listen', subject: mask(listenedOn(request)), outcome: 'done' })
      }
      return true
    },
  }
}

function listenedOn({ name, payload }: GlobalRequest): string {
  if (name.startsWith('streamlocal')) return `unix:${readPath(payload)}`
  const { host, port } = readListen(payload)
  return addressText(host, port)
}

/** An administrator's text for a user's terminal: its lines without any control sequence. */
export function announcementFor(text: string): string {
  const plain = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\p{Cc}/gu, (control) => (control === '\n' || control === '\t' ? control : ''))
    .trimEnd()
  return plain === '' ? '' : `${plain.replaceAll('\n', '\r\n')}\r\n`
}
