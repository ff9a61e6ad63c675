// How one session is held: its person, its time (`holdOf` in channels/session.ts), and what is noted when its client
// is lost or reattaches. The rights of its person are checked at each use. An agent of ours keeps the terminal too, so
// that the session outlives this server, which continues it later by a secret (restore.ts).
import { detachText } from '@hawser/contract/tunnel'
import { Reason, type Connection } from '@hawser/ssh'
import type { LiveSession } from '../../domain/sessions/live-sessions.ts'
import type { SessionLogin } from '../../domain/sessions/revocation.ts'
import { iso } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { isHeld, type Claim, type HeldSessions, type HoldableSession } from './held.ts'
import type { NearEnd } from './near-end.ts'
import { movedSentence, type Reattached, type Terminal } from './terminal.ts'

export interface HoldingParts {
  /** Whether the session may be held for its person. */
  mayBeHeld(held: SessionLogin): Promise<boolean>
  /** Changes when the person's role, membership or password does. */
  standing(held: SessionLogin): Promise<string | undefined>
  held: HeldSessions
  /** The secret by which only this installation continues a detached terminal. */
  detachSecret(session_uid: string): string
}

export interface Holding {
  readonly claim: Claim
  readonly record: LiveSession
  /** How long the session is held if its client is lost; 0: not at all. */
  readonly hold_s: number
  /** `standing` and `restored`: only of a restored session. */
  readonly login: Omit<SessionLogin, keyof Claim>
  readonly near: () => NearEnd
  readonly far: Connection
  readonly started_at: number
  /** When a restored session expires; undefined: the session began here. */
  readonly expires_at: number | undefined
  active(): void
  log: Log
}

/** The pause before the database is asked again. */
const recheck_ms = 5_000

export function holding(parts: HoldingParts, about: Holding) {
  const { claim, record, near, far, log, hold_s: agentHold_s } = about
  /** A namespace may change the time during the session; the agent's stays. */
  let hold_s = agentHold_s
  let expires_at = about.expires_at
  const isRestored = expires_at !== undefined
  /** Whether the agent keeps the terminal, and has one to keep. */
  const detachable = { byAgent: false, terminal: false }
  let continues: string | undefined
  let isLeft = false
  let handedOver: Promise<void> | undefined

  // The bus announces every change to a session that began here. A restored session may have missed some, so its
  // person's rights are compared with those at its beginning.
  const heldFor = (): SessionLogin => {
    const { standing, restored, ...login } = about.login
    return { ...claim, ...login, ...(expires_at === undefined ? {} : { standing, restored }) }
  }
  const noteDetachable = async (what: keyof typeof detachable): Promise<void> => {
    detachable[what] = true
    if (!detachable.byAgent || !detachable.terminal || isRestored) return
    const standing = await parts.standing(heldFor()).catch(() => undefined)
    if (standing !== undefined)
      record.note({ kept_s: agentHold_s, kept_for: { key: about.login.key, standing } })
  }
  /** Rights may have changed since the login. Repeated while the database is away. */
  async function checkHeld(): Promise<void> {
    const may = await parts.mayBeHeld(heldFor()).catch(() => undefined)
    if (!isHeld(session)) return
    if (may === false) parts.held.giveUp(session, 'You may no longer reattach to the session.')
    if (may === undefined) setTimeout(() => void checkHeld(), recheck_ms).unref()
  }

  /**
   * Leaves the record open for the server that continues the terminal. The connection to the device must end
   * as a lost one next, for then the agent keeps the terminal. Returns undefined if the agent would not keep it.
   */
  function detach(): Terminal | undefined {
    const terminal = session.terminal()
    if (!detachable.byAgent || !terminal) return undefined
    record.leave(iso(terminal.heldUntil ?? Date.now() + Math.min(session.hold_s, agentHold_s) * 1_000))
    return terminal
  }

  const session: HoldableSession = {
    ...claim,
    uid: record.uid,
    started_at: about.started_at,
    get hold_s() {
      return expires_at === undefined ? hold_s : Math.max(1, Math.round((expires_at - Date.now()) / 1_000))
    },
    get continues() {
      return continues
    },
    get isLeft() {
      return isLeft
    },
    terminal: () => [...near().terminals].find(({ isHoldable }) => isHoldable),
    mayContinue: async () => parts.mayBeHeld(heldFor()),
    join: async (other) => near().join(other),
    end(sentence) {
      const terminal = session.terminal()
      if (terminal?.heldUntil === undefined || !near().hasClient) {
        void near().end(Reason.byApplication, sentence)
        return
      }
      // Another client had the terminal. The one that opened the session is still there, for something else.
      record.released()
      void terminal.stop(sentence)
    },
    leave(sentence) {
      if (!detach()) return false
      isLeft = true
      // The client is disconnected first, or it would read that the device was lost.
      void near().end(Reason.serviceNotAvailable, sentence)
      void far.end(Reason.connectionLost, 'The server is stopping.')
      return true
    },
    handOver(by) {
      const terminal = detach()
      if (!terminal) return
      terminal.client?.end.onMoved?.()
      const told = terminal.stop(movedSentence(by), 0)
      handedOver = told.then(async () => near().end(Reason.byApplication, 'Another node has the session.'))
      void far.end(Reason.connectionLost, 'Another node has the session.')
    },
  }
  return {
    session,
    heldFor,
    /** Resolves when the client knows that another node has the session; undefined: none has. */
    handedOver: () => handedOver,
    reattachedTo(uid: string): void {
      continues = uid
      record.note({ resumes: uid })
    },
    /** Sets how long the session is held if its client disconnects; 0 changes nothing: `mayBeHeld` then refuses. */
    hold(seconds: number): void {
      if (agentHold_s > 0 && seconds > 0) hold_s = seconds
    },
    /** Asks the agent to keep the terminal; undefined: the agent is not asked. */
    detachText:
      agentHold_s > 0
        ? detachText({ id: record.uid, secret: parts.detachSecret(record.uid), grace_s: agentHold_s })
        : undefined,
    onDetachable(closed: Promise<unknown>): void {
      void noteDetachable('byAgent')
      void closed.then(() => (detachable.byAgent = false))
    },
    terminal: {
      mayHold: agentHold_s > 0,
      onOpened: () => void noteDetachable('terminal'),
      onLost(): number | undefined {
        // A restored session whose namespace holds none now.
        if (agentHold_s === 0) return undefined
        const until = parts.held.hold(session)
        if (until === undefined) return undefined
        record.held(iso(until))
        log.info({ event: 'session.held', session: record.uid, seconds: hold_s })
        // The terminal is held once this has returned.
        queueMicrotask(() => void checkHeld())
        return until
      },
      onAttach({ source, via }: Reattached): void {
        expires_at = undefined
        about.active()
        record.resumed(source, via)
        log.info({ event: 'session.resumed', session: record.uid, source, via })
      },
      onAttached: () => parts.held.resume(session),
    },
  }
}
