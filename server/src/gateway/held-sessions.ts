// Sessions with a terminal, and those of them that are held: their client is lost, and they go on until their
// person comes back or the time of their namespace is over. Only the same person may come back: the same
// user or API key; the same name in a certificate for the same key, of the same authority; where nobody is
// known the same key; and for a password of somebody unknown, if the namespace wants that at all, whoever
// logs in to the same account of the device, and only while the terminal has no client. What the namespace
// wants is asked anew each time. Limits bound what is held.
import type { SessionOrigin, SessionPerson } from '@hawser/contract/sessions'
import type { JoiningEnd } from './kept-end.ts'
import type { KeptTerminal } from './kept-terminal.ts'

/** Who may come back, and to what. */
export interface Claim {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  /** The identity of the person, from `identityOf`. */
  readonly identity: string
}

/** A session that can be continued. */
export interface KeptSession extends Claim {
  readonly uid: string
  readonly started_at: number
  /** How long the session waits for its person; 0: not at all. */
  readonly hold_s: number
  /** The terminal that goes on; undefined: there is none yet. */
  terminal(): KeptTerminal | undefined
  /** When the wait for its person ends; undefined: the session has a client. */
  held_until: number | undefined
  /** The session that its client has come back to, instead of a terminal of this one. */
  readonly continues?: string | undefined
  /** Whether this server has let it go, and its agent keeps the terminal. */
  readonly isLeft?: boolean
  /** Somebody has continued it from this address. */
  resumed(source: string, via: SessionOrigin): void
  /** Whether its person may continue it, by what holds now. */
  mayContinue(): Promise<boolean>
  /** Takes what another client opens beside the terminal. */
  join(other: JoiningEnd): Promise<void>
  end(sentence: string): void
  /** Lets the session go while its agent keeps the terminal; false: the agent does not keep it. */
  leave(sentence: string): boolean
}

export interface HeldSessions {
  add(session: KeptSession): Disposable
  /** The client is lost; false: the session is not held. */
  hold(session: KeptSession): boolean
  /** A client has it again. */
  resume(session: KeptSession): void
  find(uid: string): KeptSession | undefined
  /** Sessions that whoever logged in so may continue: held ones first, then the newest. */
  of(claim: Claim): KeptSession[]
  /** The sessions among them that can be continued now. */
  continuable(claim: Claim): Promise<KeptSession[]>
  /** How many are held, and what their screens take. */
  readonly count: number
  readonly held_bytes: number
}

export const limits = { ofPerson: 10, ofNamespace: 500, ofNode: 5_000 }

export const overSentence = 'Nobody came back to the session in time.'
const fullSentence = 'The server holds as many sessions as it can.'

/** The identity of everybody of whom nothing is known but that they have the password of an account. */
const anybody = 'account'

/**
 * `key`: that they have proved to have; `registered`: the one that let them in. An authority writes into a certificate
 * what it likes, and others may write the same: only with the same key is a name the same person.
 */
export function identityOf({ kind, id }: SessionPerson, key: string | undefined, registered = ''): string {
  if (kind === 'certificate') return `${kind} ${registered} ${key} ${id}`
  if (kind !== 'unknown') return `${kind} ${id}`
  return key === undefined ? anybody : `key ${key}`
}

/**
 * The terminal of a session, if it may be continued now; asked for again whenever somebody is given it. Among
 * people who share a password nobody knows who is who, so none of them takes a terminal from a client.
 */
export async function continuableTerminal(session: KeptSession): Promise<KeptTerminal | undefined> {
  const may = await session.mayContinue().catch(() => false)
  const terminal = session.terminal()
  if (!may || terminal?.isHoldable !== true) return undefined
  return session.identity === anybody && terminal.client ? undefined : terminal
}

/** Whether a session is one that whoever logged in so may continue. */
export const isOf = (session: Claim, { tenant_id, device_uid, username, identity }: Claim): boolean =>
  session.tenant_id === tenant_id &&
  session.device_uid === device_uid &&
  session.username === username &&
  session.identity === identity

export function heldSessions(clock: { now(): number }, most = limits): HeldSessions {
  const sessions = new Map<string, KeptSession>()
  const timers = new Map<string, NodeJS.Timeout>()
  /** The ids of what each namespace holds, the oldest first; namespaces that hold nothing are not in it. */
  const heldIn = new Map<string, Set<string>>()

  const known = (uids: Iterable<string>): KeptSession[] => [...uids].flatMap((uid) => sessions.get(uid) ?? [])
  const release = ({ uid, tenant_id }: KeptSession): void => {
    clearTimeout(timers.get(uid))
    timers.delete(uid)
    const ofNamespace = heldIn.get(tenant_id)
    if (ofNamespace?.delete(uid) && ofNamespace.size === 0) heldIn.delete(tenant_id)
  }
  /** Releases the session at once, because ending it takes a while, and the next one that is lost needs another. */
  const giveUp = (session: KeptSession, sentence: string): void => {
    release(session)
    session.end(sentence)
  }
  /**
   * Whether a namespace that already holds this number may hold one more. When the node is full, the namespace that
   * holds the most gives up its oldest session, so that an account with many namespaces leaves room for others.
   */
  function hasRoom(ofNamespace: number): boolean {
    if (ofNamespace >= most.ofNamespace) return false
    if (timers.size < most.ofNode) return true
    let fullest: ReadonlySet<string> = new Set()
    for (const other of heldIn.values()) if (other.size > fullest.size) fullest = other
    if (fullest.size <= ofNamespace + 1) return false
    const [first] = fullest
    const oldest = first === undefined ? undefined : sessions.get(first)
    if (!oldest) return false
    giveUp(oldest, fullSentence)
    return true
  }
  const of = (claim: Claim): KeptSession[] =>
    [...sessions.values()]
      .filter((session) => isOf(session, claim) && session.terminal()?.isHoldable === true)
      .toSorted(
        (one, other) =>
          Number(other.held_until !== undefined) - Number(one.held_until !== undefined) ||
          other.started_at - one.started_at,
      )
  return {
    add(session) {
      sessions.set(session.uid, session)
      return {
        [Symbol.dispose]() {
          release(session)
          sessions.delete(session.uid)
        },
      }
    },
    hold(session) {
      if (session.hold_s === 0) return false
      const inNamespace = known(heldIn.get(session.tenant_id) ?? [])
      const isAnybody = session.identity === anybody
      const ofPerson = inNamespace.filter((one) =>
        isAnybody ? isOf(one, session) : one.identity === session.identity,
      )
      const [oldest] = ofPerson
      // Whoever shares an account with strangers must not end what is theirs.
      if (isAnybody && ofPerson.length >= most.ofPerson) return false
      // A person who holds too many gives up their own oldest one.
      if (oldest && ofPerson.length >= most.ofPerson) giveUp(oldest, overSentence)
      else if (!hasRoom(inNamespace.length)) return false
      session.held_until = clock.now() + session.hold_s * 1_000
      timers.set(
        session.uid,
        setTimeout(() => session.end(overSentence), session.hold_s * 1_000),
      )
      const ofNamespace = heldIn.get(session.tenant_id) ?? new Set()
      heldIn.set(session.tenant_id, ofNamespace.add(session.uid))
      return true
    },
    resume(session) {
      release(session)
      session.held_until = undefined
    },
    find: (uid) => sessions.get(uid),
    of,
    async continuable(claim) {
      const all = of(claim)
      const terminals = await Promise.all(all.map(continuableTerminal))
      return all.filter((_, at) => terminals[at] !== undefined)
    },
    get count() {
      return timers.size
    },
    get held_bytes() {
      return known(timers.keys()).reduce((sum, session) => sum + (session.terminal()?.held_bytes ?? 0), 0)
    },
  }
}
