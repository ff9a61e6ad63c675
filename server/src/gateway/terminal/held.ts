// Sessions that can be held, and held ones: their client is lost, and they wait for their person until the
// time of their namespace is over. Only the same person may reattach: the same user or API key; the same name
// in a certificate for the same key, of the same authority; for an unknown person the same key; and for an
// unknown person with a password, if the namespace allows it, anyone who logs in to the same account of the
// device, and only while the terminal has no client. The settings of the namespace are read anew each time.
// Limits bound the number of held sessions.
import type { SessionPerson } from '@hawser/contract/sessions'
import type { JoiningEnd } from './near-end.ts'
import type { Reattached, Terminal } from './terminal.ts'

export interface Claim {
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  /** From `identityOf`. */
  readonly identity: string
}

export interface HoldableSession extends Claim {
  readonly uid: string
  readonly started_at: number
  /** How long the session is held if its client is lost; 0: not at all. */
  readonly hold_s: number
  /** Undefined: no terminal can be held yet. */
  terminal(): Terminal | undefined
  /** The session that its client has reattached to, instead of starting a program in this one. */
  readonly continues?: string | undefined
  /** Whether this server has let it go while its agent keeps the terminal. */
  readonly isLeft?: boolean
  /** By the settings and rights in force. */
  mayContinue(): Promise<boolean>
  /** Takes the channels that another client opens. */
  join(other: JoiningEnd): Promise<void>
  end(sentence: string): void
  /** Lets the session go; false: its agent does not keep the terminal. */
  leave(sentence: string): boolean
  /**
   * Lets the session go to another node, where its person has reattached, if the agent keeps the terminal.
   */
  handOver(by: Reattached): void
}

export interface HeldSessions {
  add(session: HoldableSession): Disposable
  /** The client is lost. Returns when the session expires; undefined: it is not held. */
  hold(session: HoldableSession): number | undefined
  resume(session: HoldableSession): void
  /** Ends a held session. */
  giveUp(session: HoldableSession, sentence: string): void
  find(uid: string): HoldableSession | undefined
  /** Sessions that this person may reattach to: held ones first, then the newest. */
  of(claim: Claim): HoldableSession[]
  /** Sessions of the person that can be reattached to now. */
  continuable(claim: Claim): Promise<HoldableSession[]>
  /** How many are held, and how much memory their screens take. */
  readonly count: number
  readonly held_bytes: number
}

export const limits = { ofPerson: 10, ofNamespace: 500, ofNode: 5_000 }

export const expiredSentence = 'The session expired before anyone reconnected.'
const fullSentence = 'The server holds as many sessions as it can.'

/** The shared identity of everybody who has only proved to know the password of an account. */
export const anybody = 'account'

/**
 * `key`: that they have proved to have; `registered`: the one that let them in. The name in a certificate is
 * chosen by its authority, and others may write the same: only with the same key is it the same person.
 */
export function identityOf({ kind, id }: SessionPerson, key: string | undefined, registered = ''): string {
  if (kind === 'certificate') return `${kind} ${registered} ${key} ${id}`
  if (kind !== 'unknown') return `${kind} ${id}`
  return key === undefined ? anybody : `key ${key}`
}

export const isHeld = (session: HoldableSession): boolean => session.terminal()?.heldUntil !== undefined

/**
 * The terminal of a session, if its person may have it now; checked each time that a client attaches. People
 * who share a password cannot be told apart, so none of them takes a terminal from a client.
 */
export async function continuableTerminal(session: HoldableSession): Promise<Terminal | undefined> {
  const may = await session.mayContinue().catch(() => false)
  const terminal = session.terminal()
  return may && terminal?.isHoldable === true && isFree(session, terminal) ? terminal : undefined
}

/** Asked again at the moment of attaching: another client may have come while rights were read. */
export const isFree = ({ identity }: Claim, { client }: Pick<Terminal, 'client'>): boolean =>
  identity !== anybody || client === undefined

/** Whether this person may reattach to the session. */
const isOf = (session: Claim, { tenant_id, device_uid, username, identity }: Claim): boolean =>
  session.tenant_id === tenant_id &&
  session.device_uid === device_uid &&
  session.username === username &&
  session.identity === identity

export const byTurn = (
  one: { readonly isHeld: boolean; readonly started_at: number },
  other: { readonly isHeld: boolean; readonly started_at: number },
): number => Number(other.isHeld) - Number(one.isHeld) || other.started_at - one.started_at

export function heldSessions(clock: { now(): number }, most = limits): HeldSessions {
  const sessions = new Map<string, HoldableSession>()
  const timers = new Map<string, NodeJS.Timeout>()
  /** The ids of the held sessions of each namespace, oldest first. */
  const heldIn = new Map<string, Set<string>>()

  const known = (uids: Iterable<string>): HoldableSession[] =>
    [...uids].flatMap((uid) => sessions.get(uid) ?? [])
  const release = ({ uid, tenant_id }: HoldableSession): void => {
    clearTimeout(timers.get(uid))
    timers.delete(uid)
    const ofNamespace = heldIn.get(tenant_id)
    if (ofNamespace?.delete(uid) && ofNamespace.size === 0) heldIn.delete(tenant_id)
  }
  /** Releases the session at once, because ending it takes a while, and the next one that is lost needs its place. */
  const giveUp = (session: HoldableSession, sentence: string): void => {
    release(session)
    session.end(sentence)
  }
  /**
   * Whether a namespace that already holds this number may hold one more. When the node is full, the
   * namespace that holds the most gives up its oldest session, so that an account with many namespaces leaves
   * room for others.
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
  const of = (claim: Claim): HoldableSession[] =>
    [...sessions.values()]
      .filter((session) => isOf(session, claim) && session.terminal()?.isHoldable === true)
      .map((session) => ({ session, isHeld: isHeld(session), started_at: session.started_at }))
      .toSorted(byTurn)
      .map(({ session }) => session)
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
      if (session.hold_s === 0) return undefined
      const inNamespace = known(heldIn.get(session.tenant_id) ?? [])
      const isAnybody = session.identity === anybody
      const ofPerson = inNamespace.filter((one) =>
        isAnybody ? isOf(one, session) : one.identity === session.identity,
      )
      const [oldest] = ofPerson
      // People who share an account with strangers do not end each other's sessions.
      if (isAnybody && ofPerson.length >= most.ofPerson) return undefined
      // A person who holds too many gives up their own oldest one.
      if (oldest && ofPerson.length >= most.ofPerson) giveUp(oldest, expiredSentence)
      else if (!hasRoom(inNamespace.length)) return undefined
      const hold_ms = session.hold_s * 1_000
      timers.set(
        session.uid,
        setTimeout(() => giveUp(session, expiredSentence), hold_ms),
      )
      const ofNamespace = heldIn.get(session.tenant_id) ?? new Set()
      heldIn.set(session.tenant_id, ofNamespace.add(session.uid))
      return clock.now() + hold_ms
    },
    resume: release,
    giveUp,
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
