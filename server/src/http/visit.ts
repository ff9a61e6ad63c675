// Somebody at a live session, from their socket's opening to its end: they watch, or have a seat at its terminal, or
// both. Those who may play the recording see it at once; others see nothing before they are allowed to type. Who loses
// the right to be there is shown out at once.
import { Failure } from '@hawser/contract/failures'
import { sessionLimits } from '@hawser/contract/limits'
import { longestMessage_bytes, ParticipantMessage, type LiveMessage } from '@hawser/contract/sharing'
import { rank } from '@hawser/contract/access'
import { Closing } from '@hawser/contract/terminals'
import { defined } from '@hawser/contract/defined'
import type { SessionWatching } from '../domain/sessions/sessions.ts'
import type { Seat, SharedTerminal } from '../domain/sessions/sharing.ts'
import type { WatchingCaller } from '../domain/sessions/watch-tickets.ts'
import type { Viewer } from '../recording/live.ts'
import { BadMessage, messageCounter, readMessage, type MessageSocket } from './message-socket.ts'
import { permission, type Permission } from './permission.ts'
import { checker } from './validate.ts'

/** The statuses of a caller who may not; any other failure tells nothing about them. */
const refusals = new Set([401, 403])
/** The most memory that may wait for one viewer; output has the same bound in recording/live.ts. */
const mostWaiting_bytes = 4 * 1024 * 1024
const fits = checker(ParticipantMessage)

/** Whether somebody sees the terminal in any case: they may play the recording, or were invited. */
export const mayWatch = (caller: WatchingCaller): boolean =>
  caller.invited !== undefined || rank(caller.role) >= rank('administrator')

export interface VisitParts {
  readonly sessions: Pick<SessionWatching, 'needsNoConsent'>
  readonly uid: string
  readonly line: MessageSocket
  readonly caller: WatchingCaller
  readonly isGuest: boolean
  /** Who they are now. Throws a Failure when they may not be here any longer. */
  admit(): Promise<WatchingCaller>
  /** When their right ends, in milliseconds since 1970. */
  readonly ends_at: number | undefined
  readonly recording: Pick<Awaited<ReturnType<SessionWatching['find']>>, 'watch'>
  readonly terminal: SharedTerminal | undefined
  onError(error: unknown): void
}

export class Visit {
  readonly permission: Permission
  readonly #parts: VisitParts
  readonly #viewer: TalkingViewer
  readonly #left = new AbortController()
  readonly #seated = Promise.withResolvers<Seat>()
  #standing: WatchingCaller
  #seat: Seat | undefined
  #isShown = false

  constructor(parts: VisitParts) {
    const { line, caller, isGuest, ends_at } = parts
    this.#parts = parts
    this.#standing = caller
    void line.closed.then(() => this.#left.abort())
    const shownAt = viewerAt(line)
    this.#viewer = {
      ...shownAt,
      isGuest,
      gone: this.#left.signal,
      end: (message) => {
        shownAt.end(message)
        // At once: a client need not heed that its socket is being closed.
        this.#left.abort()
      },
    }
    this.permission = permission({
      holds: async () => this.#holds(),
      onLost: () => this.#viewer.end('You may no longer watch this session.'),
      ends_at,
    })
  }

  async begin(): Promise<void> {
    const { terminal, caller, onError } = this.#parts
    const isViewer = mayWatch(caller)
    this.#hear().catch(onError)
    if (isViewer) await this.#show()
    if (!terminal || this.#left.signal.aborted) return
    const seat = this.#enter(terminal)
    this.#seat = seat
    this.#seated.resolve(seat)
    this.#untilGone(seat)
    if (!isViewer) await seat.ask()
  }

  /** Passes messages to the seat, once there is one. While the device has no room for input, the socket is not read. */
  async #hear(): Promise<void> {
    const { line, terminal } = this.#parts
    const isFlood = messageCounter()
    for (let message = await line.next(); message; message = await line.next()) {
      // Nobody has a seat where there is no terminal.
      if (!terminal) continue
      const seat = await this.#seated.promise
      if (message.binary) await seat.type(message.bytes)
      else if (isFlood()) this.#viewer.end(sessionLimits.messages.message)
      else
        try {
          act(seat, readMessage(message, fits, longestMessage_bytes) as ParticipantMessage)
        } catch (error) {
          if (!(error instanceof BadMessage)) throw error
          this.#viewer.say({ kind: 'note', message: 'The server does not understand this message.' })
        }
    }
  }

  #untilGone(held: Disposable): void {
    const { signal } = this.#left
    if (signal.aborted) held[Symbol.dispose]()
    else signal.addEventListener('abort', () => held[Symbol.dispose](), { once: true })
  }

  /** Whether they may still be here. Who needed no consent may need it now. */
  async #holds(): Promise<boolean> {
    const { admit, sessions, uid, caller } = this.#parts
    try {
      this.#standing = await admit()
      const seat = this.#seat
      const mustAsk =
        seat?.mayType === true && !seat.hasConsent && !(await sessions.needsNoConsent(uid, this.#standing))
      if (!mayWatch(this.#standing)) return seat?.mayType ? !mustAsk : !mayWatch(caller)
      if (mustAsk) seat.withdraw('You have to ask whether you may type, from now on.')
      return true
    } catch (error) {
      if (error instanceof Failure && refusals.has(error.status)) return false
      throw error
    }
  }

  async #show(): Promise<void> {
    this.#isShown = true
    try {
      this.#untilGone(await this.#parts.recording.watch(this.#viewer))
    } catch (error) {
      if (!this.#left.signal.aborted) this.#parts.onError(error)
      this.#viewer.end('The session cannot be shown.')
    }
  }

  #say(message: LiveMessage): void {
    this.#viewer.say(message)
    // Closed without a goodbye, because a goodbye would change who is there while everybody is being notified.
    if (this.#viewer.waiting() > mostWaiting_bytes) this.#parts.line.terminate()
  }

  #enter(terminal: SharedTerminal): Seat {
    const { caller, sessions, uid } = this.#parts
    const isWatching = caller.invited?.mode === 'watch'
    return terminal.enter({
      caller,
      name: caller.kind === 'key' ? caller.name : caller.username,
      ...defined({
        invitedBy: caller.invited?.maker,
        mayNotAsk: isWatching ? 'Your invitation is for watching only.' : undefined,
      }),
      needsNoConsent: async () => sessions.needsNoConsent(uid, this.#standing),
      present: (presence) => this.#say(presence),
      note: (message) => this.#say({ kind: 'note', message }),
      admitted: () => {
        // Their rights may have changed since they were let in.
        void this.permission.recheck()
        if (!this.#isShown) void this.#show()
      },
      dismissed: (message) => {
        if (mayWatch(this.#standing)) this.#say({ kind: 'note', message })
        else this.#viewer.end(message)
      },
    })
  }
}

function act(seat: Seat, message: ParticipantMessage): void {
  if (message.kind === 'ask') void seat.ask()
  else if (message.kind === 'hand') seat.hand(message.to)
  else if (message.kind === 'resize') seat.resize(message)
  else if (message.kind === 'size') seat.follow(message.follow)
  else seat[message.kind]()
}

interface TalkingViewer extends Viewer {
  say(message: LiveMessage): void
}

export function viewerAt(line: MessageSocket): TalkingViewer {
  const say = (message: LiveMessage): void => void line.say(message)
  return {
    say,
    screen({ width, height }, bytes) {
      say({ kind: 'screen', width, height })
      void line.send(bytes)
    },
    output: (bytes) => void line.send(bytes),
    resize: ({ width, height }) => say({ kind: 'resize', width, height }),
    end(message) {
      say({ kind: 'end', message })
      line.close(Closing.done)
    },
    waiting: line.waiting,
  }
}
