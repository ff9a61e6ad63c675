// The rules for what passes between a client and a device, channel by channel. Bytes pass unread, except
// those of files, which transfers.ts follows. The client's variables are filtered, because old agents accept
// every variable, LD_PRELOAD included. A certificate's forced command replaces the command that was asked
// for. The session's record says which program starts. The recorder gets the output of a terminal before the
// client does. The device may open only those channels towards the client that the client has asked for.
import { passes, tellNamed } from '@hawser/contract/environment'
import { clientVariable, keepVariable, keptSubsystem, personVariable } from '@hawser/contract/tunnel'
import {
  readListen,
  readPath,
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
import type { HashThread } from './hash-thread.ts'
import { goodbye_ms } from './kept-terminal.ts'
import type { LivePolicy } from './live-policy.ts'
import { addressText, forwardedBy, forwardTap, watchSftp, type SftpWatch } from './transfers.ts'

/** The parts that the rules of one session depend on. */
export interface ChannelPolicyParts {
  readonly record: LiveSession
  readonly limits: LoginLimits | undefined
  /** Shown once before the output of a shell in a terminal; empty: nothing. */
  readonly announcement: string
  /** Who opened the session, for the environment; empty: unknown. */
  readonly person: string
  /** The client's address, which our own agent puts into the environment. */
  readonly client: { readonly address: string; readonly port: number }
  readonly agentIsOurs: boolean
  /**
   * The `Keep` that our own agent gets, so that the terminal outlives this server; undefined: it does not.
   */
  readonly keep?: string | undefined
  /** The agent has said that it keeps the terminal, until this resolves. */
  onKept?(closed: Promise<unknown>): void
  /** Variables that may pass beside those of language. */
  readonly acceptEnv: readonly string[]
  /** Whether the agent closes a forwarded connection in both directions when one has ended. */
  readonly closesAtEof: boolean
  /** The sentence that the client reads when the device is lost. */
  lostMessage(): string
  /** Shells in a terminal; each writes a text there. */
  readonly shells: Set<(text: string) => void>
  /** Others may use this terminal from now on; `say` shows them a text. */
  shareable?(near: Channel, recorder: ChannelRecorder, say: (text: string) => void): void
  /** Makes a recorder for each channel that may have a terminal. */
  recorder(): ChannelRecorder
  /** The text with its secrets masked. */
  mask(text: string): string
  /** Recorders of shells and commands in a terminal, while they run. */
  readonly recorders?: Set<ChannelRecorder> | undefined
  /** The policy of the namespace. */
  readonly policy: LivePolicy
  /** Hashes the files that pass; absent: that happens here. */
  readonly hashing?: HashThread | undefined
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

  const { active, mask, policy } = parts
  const { events } = parts.record
  const transfers = { events, mask, policy }
  const refuse = (kind: 'forward' | 'remote-forward' | 'listen', subject: string, why: string): void =>
    void events.add({ kind, subject: mask(subject), outcome: 'refused', why })
  return {
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
      return { allow: true, tap: sessionTap({ ...parts, name }, permits, () => (askedForAgent = true)) }
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
  /** Whether the agent would keep a terminal on this channel. */
  let isKept = false
  let channels: { near: Channel; far: Channel } | undefined
  /** Resolves when the client has the announcement; output waits for it. */
  let announced: Promise<void> | undefined
  const recorder = parts.recorder()
  /** Follows the files of this channel, once it is one of SFTP. */
  let sftp: SftpWatch | undefined
  /** Stops following the policy for the program of this channel. */
  let unfollow: (() => void) | undefined
  let isEnding = false

  /** Shows a text to the user of a terminal. */
  const sayTo =
    (near: Channel) =>
    (text: string): void => {
      const bytes = Buffer.from(text)
      // A recording that has failed throws.
      const said = async (): Promise<void> => {
        await recorder.output(bytes)
        await near.write(bytes)
      }
      said().catch(() => undefined)
    }

  /** From now on the shell's user can be told something. */
  const tellShell = (near: Channel): void => {
    const say = sayTo(near)
    parts.shells.add(say)
    void near.closed.then(() => parts.shells.delete(say))
  }

  const tellKept = (): void => {
    if (isKept && terminal && channels) parts.onKept?.(channels.far.closed)
  }

  const { mask, policy, hashing } = parts
  const transfers = { events: parts.record.events, mask, policy, hashing }
  const whyNot = (type: 'shell' | 'exec' | 'subsystem', name = ''): string | undefined => {
    const rules = parts.policy.rules()
    if (type === 'shell') return undefined
    return type === 'exec' ? rules.command(name) : rules.subsystem(name)
  }
  /** Ends the channel as a program would that says this sentence and fails. */
  const endWith = (sentence: string): void => {
    const near = channels?.near
    if (!near || isEnding) return
    isEnding = true
    const { name, payload } = writeRequest({ type: 'exit-status', status: 1 })
    // Whoever does not read is not waited for.
    const late = setTimeout(() => void near.close('now').catch(() => undefined), goodbye_ms)
    void near.closed.then(() => clearTimeout(late))
    void (async () => {
      await near.write(Buffer.from(`${sentence}\r\n`), terminal ? 0 : 1)
      await near.request(name, payload)
      await near.end()
      await near.close()
    })().catch(() => undefined)
  }
  /** The client is told why, which a refused request could not say. */
  const refuse = (type: 'shell' | 'exec' | 'subsystem', subject: string, why: string): 'grant' => {
    const kind = type === 'subsystem' ? type : 'exec'
    parts.record.events.add({ kind, subject: parts.mask(subject), outcome: 'refused', why })
    // The request must be answered first.
    setImmediate(endWith, why)
    return 'grant'
  }

  const program = (
    type: 'shell' | 'exec' | 'subsystem',
    command?: string,
  ): ReturnType<NonNullable<Tap['request']>> => {
    const forced = parts.limits?.forceCommand
    const whyNotNow = (): string | undefined =>
      whyNot(forced === undefined ? type : 'exec', forced ?? command)
    const why = whyNotNow()
    if (why !== undefined) return refuse(type, forced ?? command ?? '', why)
    parts.name(forced === undefined ? type : 'exec')
    subsystem = type === 'subsystem' && forced === undefined
    const started = forced ?? command
    if (started !== undefined)
      parts.record.events.add({
        kind: subsystem ? 'subsystem' : 'exec',
        subject: parts.mask(started),
        outcome: 'done',
      })
    // A policy that gets stricter ends the program, but no shell.
    unfollow ??= policy.follow(() => {
      const forbidden = whyNotNow()
      if (forbidden !== undefined) endWith(forbidden)
    })
    if (subsystem && command === 'sftp') sftp ??= watchSftp(transfers, endWith)
    recorder.program(forced === undefined ? type : 'exec', subsystem ? undefined : started)
    if (type === 'shell' && terminal && forced === undefined && parts.announcement !== '') {
      recorder.announcement(parts.announcement)
      announced = channels?.near.write(Buffer.from(parts.announcement)).catch(() => undefined)
    }
    if (type === 'shell' && terminal && forced === undefined && channels) tellShell(channels.near)
    if (terminal && channels) parts.shareable?.(channels.near, recorder, sayTo(channels.near))
    if (forced === undefined) return undefined
    const { name, payload } = writeRequest({ type: 'exec', command: forced })
    return { type: name, payload }
  }

  return {
    opened(near, far) {
      channels = { near, far }
      parts.recorders?.add(recorder)
      void Promise.all([near.closed, far.closed]).then(() => {
        sftp?.end()
        unfollow?.()
        parts.recorders?.delete(recorder)
        return recorder.close()
      })
      if (!parts.agentIsOurs) return
      const { address, port } = parts.client
      const told = [
        { name: clientVariable, value: `${address} ${port}` },
        ...(parts.person === '' ? [] : [{ name: personVariable, value: parts.person }]),
      ]
      for (const variable of told) {
        const { name, payload } = writeRequest({ type: 'env', ...variable })
        void far.request(name, payload).catch(() => undefined)
      }
      if (parts.keep === undefined) return
      const { name, payload } = writeRequest({ type: 'env', name: keepVariable, value: parts.keep })
      far.request(name, payload, true).then(
        (does) => {
          isKept = does
          tellKept()
        },
        () => undefined,
      )
    },
    data(from, { bytes }) {
      parts.active()
      if (from === 'near') return sftp && hashing?.room()
      const recorded = recorder.output(bytes)
      if (!announced || !recorded) return recorded ?? announced ?? (sftp && hashing?.room())
      return Promise.all([recorded, announced]).then(() => undefined)
    },
    // What ends gets no more of its client.
    filter: (from, chunk) => (isEnding && from === 'near' ? [] : sftp?.filter(from, chunk)),
    request(from, asked) {
      if (from === 'far') {
        const exit = readRequest(asked.type, asked.payload)
        if (exit.type === 'exit-status') recorder.exit({ status: exit.status })
        if (exit.type === 'exit-signal') recorder.exit({ signal: exit.signal })
        return undefined
      }
      const request = readRequest(asked.type, asked.payload)
      if (request.type === 'exec') return program(request.type, request.command)
      // Only the gateway continues terminals.
      if (request.type === 'subsystem' && request.name === keptSubsystem) return 'refuse'
      if (request.type === 'subsystem') return program(request.type, request.name)
      if (request.type === 'shell') return program(request.type)
      if (request.type === 'env') return variable(parts, request)
      const extension = extensions[request.type]
      if (extension !== undefined && !permits(extension)) return 'refuse'
      if (request.type === 'auth-agent-req@openssh.com') onAgent()
      if (request.type === 'pty-req') {
        terminal = true
        tellKept()
        parts.record.note({ term: request.pty.terminal })
        recorder.terminal(request.pty.terminal, sizeOf(request.pty))
      }
      if (request.type === 'window-change') recorder.resize(sizeOf(request.size))
      return undefined
    },
    async ending(near, { lost, refused, exited }) {
      const sentence =
        refused === undefined
          ? (sftp?.failure ?? parts.lostMessage())
          : `The device refused the session: ${plainText(refused)}`
      if (lost) return near.write(Buffer.from(`\r\n${sentence}\r\n`), terminal ? 0 : 1)
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

/** One line from a device, made safe for a terminal. */
function plainText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200)
}

/** An administrator's text for a user's terminal: its lines without any control sequence. */
export function announcementFor(text: string): string {
  const plain = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\p{Cc}/gu, (control) => (control === '\n' || control === '\t' ? control : ''))
    .trimEnd()
  return plain === '' ? '' : `${plain.replaceAll('\n', '\r\n')}\r\n`
}
