// The connections of this node that a change may end (sessions, tunnels, terminals and live views in browsers), and
// the sentences that end them.
import type { SessionPerson } from '@hawser/contract/sessions'
import type { OwnPresence } from '@hawser/contract/sharing'
import type { RecordingSettings } from '../../recording/tap.ts'
import type { PastLogin } from '../access/logins.ts'
import type { SessionPolicy } from '../access/session-policy.ts'
import type { SharedTerminal, SharingDesk } from './sharing.ts'

export interface OpenSession {
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  readonly person: SessionPerson
  /** The client shows the sentence. */
  end(sentence: string): void
  /** Starts or stops recording. */
  record(settings: RecordingSettings): void
  /** Applies a new policy and ends whatever it forbids. */
  restrict(policy: SessionPolicy): void
  /** Sets how long the session is held if its client disconnects. */
  hold?(hold_s: number): void
  /** Who may reattach to the held session; undefined: it has a client. */
  heldFor?(): SessionLogin | undefined
  /** The terminal that this channel of its recording shows, for others to type in. */
  shared?(channel: number): SharedTerminal | undefined
  /** Reports who is in the terminals, now and at each change, and carries out the person's decisions. */
  desk?(hear: (presence: OwnPresence) => void): SharingDesk
}

/** The person of a session, and how they logged in: the same may reattach while their rights last. */
export interface SessionLogin extends PastLogin {
  readonly tenant_id: string
  readonly device_uid: string
  /** The MD5 fingerprint of the registered key that let them in; undefined: it was a password. */
  readonly key: string | undefined
  /** A restored session may have missed changes: its `standing` at the beginning is compared with today's. */
  readonly standing?: string | undefined
  /** The uid of a session that may have been closed while no server had it. */
  readonly restored?: string | undefined
}

export interface Person {
  readonly user_id: string
  readonly tenant_id: string
}

export interface Connections {
  readonly sessions: ReadonlyMap<string, OpenSession>
  readonly tunnels: {
    all(): Iterable<{ readonly device: { readonly uid: string; readonly tenant_id: string } }>
    /** Ends the tunnel after the agent has ended what runs for people, or after a time limit. */
    drop(device_uid: string, why: string): void
    /** Makes the agent end what runs for people; the tunnel stays. */
    hangUp(device_uid: string): void
    /** Ends the tunnel here if another node has one with a higher number. */
    yield(device_uid: string, number: number): void
  }
  readonly joined: {
    removed(tenant_id: string, fingerprint: string): void
    recheck(): Promise<void>
  }
  readonly connectors: {
    deviceChanged(tenant_id: string): void
    changed(tenant_id: string, uid: string): void
    namespaceRemoved(tenant_id: string): void
  }
  /**
   * Checks in the database whether each terminal and live view of these people may stay open. Resolves when
   * each was checked once; a check that failed is repeated in the background.
   */
  recheckPeople(whose: (person: Person) => boolean): Promise<void>
}

export const reasons = {
  unavailable: 'The device is no longer available.',
  refused: 'The device may no longer connect.',
  closed: 'The session was closed by an administrator.',
  notHeld: 'The held session was ended: its person may no longer reattach.',
  notMember: 'You are no longer a member of the namespace.',
  noKey: 'The API key that opened the session was removed or has expired.',
  noPublicKey: 'The public key that opened the session was removed.',
  changedPublicKey: 'The public key that opened the session no longer allows it.',
} as const

/** Without a name: any API key. */
export const isApiKey = ({ person }: Pick<SessionLogin, 'person'>, name = person.id): boolean =>
  person.kind === 'api-key' && person.id === name

export const isUser = ({ person }: Pick<SessionLogin, 'person'>, user_id: string): boolean =>
  person.kind === 'user' && person.id === user_id
