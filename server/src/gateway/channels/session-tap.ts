// The rules for one session channel: what passes between a client and a program on the device. A certificate's forced
// command replaces the one that was asked for; the policy of the namespace may end a program later. The client's
// variables are filtered, because old agents accept every variable, LD_PRELOAD included. Output is recorded by the
// terminal (gateway/terminal), which the tap tells about its program.
import { passes, tellNamed } from '@hawser/contract/environment'
import { clientVariable, detachVariable, attachSubsystem, personVariable } from '@hawser/contract/tunnel'
import {
  readRequest,
  writeRequest,
  type Channel,
  type Chunk,
  type SessionRequest,
  type Tap,
} from '@hawser/ssh'
import type { LoginLimits } from '../../domain/access/logins.ts'
import type { LiveSession, SessionType } from '../../domain/sessions/live-sessions.ts'
import type { Size } from '../../recording/journal.ts'
import type { ChannelRecorder } from '../../recording/channel-recorder.ts'
import type { TerminalScreen } from '../../recording/terminal-screen.ts'
import { goodbye_ms } from '../terminal/client.ts'
import { Terminal } from '../terminal/terminal.ts'
import type { HashThread } from './hash-thread.ts'
import type { LivePolicy } from './live-policy.ts'
import { watchSftp, type SftpWatch } from './transfers.ts'

export type Program = Exclude<SessionType, 'none'>
type Verdict = ReturnType<NonNullable<Tap['request']>>

export interface SessionRules {
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
   * The `DetachRequest` that our own agent gets, so that the terminal outlives this server; undefined: it does not.
   */
  readonly detachText?: string | undefined
  /** The agent has reported that it keeps the terminal, until this resolves. */
  onDetachable?(closed: Promise<unknown>): void
  /** Variables that may pass, in addition to those of language. */
  readonly acceptEnv: readonly string[]
  /** The sentence that the client reads when the device is lost. */
  lostMessage(): string
  /** A program has begun in this terminal: it can be shared. */
  shareable?(terminal: Terminal): void
  /** `screen`: of the channel's terminal, if it has one. */
  recorder(screen: () => TerminalScreen | undefined): ChannelRecorder
  mask(text: string): string
  readonly policy: LivePolicy
  /** Absent: files are hashed on this thread. */
  readonly hashing?: HashThread | undefined
  active(): void
}

export interface SessionTapParts extends SessionRules {
  permits(extension: string): boolean
  /** Stores the type of the session, if it has none yet. */
  named(type: Program): void
  /** The client has asked for its authentication agent to be forwarded. */
  onAgent(): void
}

/** A program that was running in its terminal before this server took it over. */
export interface RunningProgram {
  readonly term: string
  readonly size: Size
  readonly output: Uint8Array
}

/** The extension that a certificate needs for a request to pass. */
const extensions: Readonly<Record<string, string>> = {
  'pty-req': 'permit-pty',
  'auth-agent-req@openssh.com': 'permit-agent-forwarding',
  'x11-req': 'permit-X11-forwarding',
}

export class SessionTap implements Tap {
  readonly #parts: SessionTapParts
  readonly #running: RunningProgram | undefined
  #near: Channel | undefined
  #far: Channel | undefined
  #recorder: ChannelRecorder | undefined
  #hasTerminal = false
  #isSubsystem = false
  /** Whether the agent keeps a terminal of this channel while the server is away. */
  #isDetachable = false
  #sftp: SftpWatch | undefined
  #unfollow: (() => void) | undefined
  #isEnding = false

  constructor(parts: SessionTapParts, running?: RunningProgram) {
    this.#parts = parts
    this.#running = running
  }

  opened(near: Channel, far: Channel): void {
    this.#near = near
    this.#far = far
    const recorder = this.#parts.recorder(() => this.#terminal()?.screen)
    this.#recorder = recorder
    if (near instanceof Terminal) near.recorder = recorder
    void Promise.all([near.closed, far.closed]).then(() => {
      this.#sftp?.end()
      this.#unfollow?.()
      return recorder.close()
    })
    if (this.#running) this.#resume(recorder, this.#running)
    else if (this.#parts.agentIsOurs) this.#tellAgent(far)
  }

  data(): Promise<void> | void {
    this.#parts.active()
    return this.#sftp && this.#parts.hashing?.room()
  }

  // A channel that ends gets no more input of its client.
  filter(from: 'near' | 'far', chunk: Chunk): readonly Uint8Array[] | undefined {
    return this.#isEnding && from === 'near' ? [] : this.#sftp?.filter(from, chunk)
  }

  request(from: 'near' | 'far', asked: { readonly type: string; readonly payload: Buffer }): Verdict {
    const request = readRequest(asked.type, asked.payload)
    if (from === 'near') return this.#fromClient(request)
    if (request.type === 'exit-status') this.#recorder?.exit({ status: request.status })
    if (request.type === 'exit-signal') this.#recorder?.exit({ signal: request.signal })
    return undefined
  }

  async ending(
    near: Channel,
    how: { readonly lost: boolean; readonly refused: string | undefined; readonly exited: boolean },
  ): Promise<void> {
    const sentence =
      how.refused === undefined
        ? (this.#sftp?.failure ?? this.#parts.lostMessage())
        : `The device refused the session: ${plainText(how.refused)}`
    if (how.lost) return near.write(Buffer.from(`\r\n${sentence}\r\n`), this.#hasTerminal ? 0 : 1)
    // Agents never send the exit status of an SFTP server, and clients take its absence for a failure.
    if (how.exited || !this.#isSubsystem) return
    const { name, payload } = writeRequest({ type: 'exit-status', status: 0 })
    await near.request(name, payload)
  }

  // ----

  #terminal(): Terminal | undefined {
    return this.#near instanceof Terminal ? this.#near : undefined
  }

  #tellAgent(far: Channel): void {
    const { client, person, detachText } = this.#parts
    const tell = async (name: string, value: string, wantReply = false): Promise<boolean> => {
      const request = writeRequest({ type: 'env', name, value })
      return far.request(request.name, request.payload, wantReply).catch(() => false)
    }
    void tell(clientVariable, `${client.address} ${client.port}`)
    if (person !== '') void tell(personVariable, person)
    if (detachText !== undefined)
      void tell(detachVariable, detachText, true).then((does) => {
        this.#isDetachable = does
        this.#tellDetachable()
      })
  }

  #tellDetachable(): void {
    if (this.#isDetachable && this.#hasTerminal && this.#far) this.#parts.onDetachable?.(this.#far.closed)
  }

  #resume(recorder: ChannelRecorder, { term, size, output }: RunningProgram): void {
    this.#hasTerminal = this.#isDetachable = true
    this.#tellDetachable()
    recorder.terminal(term, size)
    recorder.program('shell')
    const terminal = this.#terminal()
    if (!terminal) return
    if (terminal.heldUntil !== undefined) recorder.interrupted({ type: 'held' })
    terminal.isShell = true
    this.#parts.shareable?.(terminal)
    // A recording that has failed ends the session by itself.
    void terminal.showStored(output).catch(() => undefined)
  }

  #fromClient(request: SessionRequest): Verdict {
    if (request.type === 'exec') return this.#program(request.type, request.command)
    // Only the gateway continues terminals.
    if (request.type === 'subsystem' && request.name === attachSubsystem) return 'refuse'
    if (request.type === 'subsystem') return this.#program(request.type, request.name)
    if (request.type === 'shell') return this.#program(request.type)
    if (request.type === 'env') return variable(this.#parts, request)
    const extension = extensions[request.type]
    if (extension !== undefined && !this.#parts.permits(extension)) return 'refuse'
    if (request.type === 'auth-agent-req@openssh.com') this.#parts.onAgent()
    if (request.type === 'pty-req') {
      this.#hasTerminal = true
      this.#tellDetachable()
      this.#parts.record.note({ term: request.pty.terminal })
      this.#recorder?.terminal(request.pty.terminal, sizeOf(request.pty))
    }
    if (request.type === 'window-change') this.#recorder?.resize(sizeOf(request.size))
    return undefined
  }

  /** Why the policy in force forbids the program. */
  #whyNot(type: Program, command = ''): string | undefined {
    const rules = this.#parts.policy.rules()
    if (type === 'shell') return undefined
    return type === 'exec' ? rules.command(command) : rules.subsystem(command)
  }

  #program(asked: Program, command?: string): Verdict {
    const { limits, record, mask, policy, hashing } = this.#parts
    const forced = limits?.forceCommand
    const type = forced === undefined ? asked : 'exec'
    const started = forced ?? command
    const why = this.#whyNot(type, started)
    if (why !== undefined) return this.#refuse(asked, started ?? '', why)
    this.#parts.named(type)
    this.#isSubsystem = type === 'subsystem'
    if (started !== undefined)
      record.events.add({
        kind: type === 'subsystem' ? type : 'exec',
        subject: mask(started),
        outcome: 'done',
      })
    // A policy that gets stricter ends the program, but no shell.
    this.#unfollow ??= policy.follow(() => {
      const forbidden = this.#whyNot(type, started)
      if (forbidden !== undefined) this.#endWith(forbidden)
    })
    if (this.#isSubsystem && command === 'sftp')
      this.#sftp ??= watchSftp({ events: record.events, mask, policy, hashing }, (sentence) =>
        this.#endWith(sentence),
      )
    this.#recorder?.program(type, this.#isSubsystem ? undefined : started)
    const terminal = this.#terminal()
    if (this.#hasTerminal && terminal) {
      terminal.isShell = type === 'shell'
      if (terminal.isShell && this.#parts.announcement !== '') terminal.announce(this.#parts.announcement)
      this.#parts.shareable?.(terminal)
    }
    if (forced === undefined) return undefined
    const { name, payload } = writeRequest({ type: 'exec', command: forced })
    return { type: name, payload }
  }

  /** Grants the request, because a refusal cannot carry the reason. */
  #refuse(type: Program, subject: string, why: string): 'grant' {
    const { record, mask } = this.#parts
    const kind = type === 'subsystem' ? type : 'exec'
    record.events.add({ kind, subject: mask(subject), outcome: 'refused', why })
    // The request must be answered first.
    setImmediate(() => this.#endWith(why))
    return 'grant'
  }

  #endWith(sentence: string): void {
    const near = this.#near
    if (!near || this.#isEnding) return
    this.#isEnding = true
    const { name, payload } = writeRequest({ type: 'exit-status', status: 1 })
    // A client that does not read must not delay the end.
    const late = setTimeout(() => void near.close('now').catch(() => undefined), goodbye_ms)
    void near.closed.then(() => clearTimeout(late))
    void (async () => {
      await near.write(Buffer.from(`${sentence}\r\n`), this.#hasTerminal ? 0 : 1)
      await near.request(name, payload)
      await near.end()
      await near.close()
    })().catch(() => undefined)
  }
}

/**
 * Our own agent also gets the mark that the namespace names the variable; other agents accept every variable.
 */
function variable(
  { acceptEnv, agentIsOurs }: SessionRules,
  { name, value }: { name: string; value: string },
): Verdict {
  const why = passes(name, acceptEnv)
  if (why === undefined) return 'refuse'
  if (why === 'always' || !agentIsOurs) return undefined
  const marked = writeRequest({ type: 'env', name: tellNamed(name), value })
  return { type: marked.name, payload: marked.payload }
}

const sizeOf = ({ columns, rows }: { columns: number; rows: number }): Size => ({
  width: columns,
  height: rows,
})

/** One line from a device, made safe for a terminal. */
function plainText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
