// The bus carries news between rooms and nodes: short facts that something changed, never bytes of sessions
// and nothing that would be lost if nobody listened; hearers ask the database for the truth. A node that
// holds a thing (a device's tunnel, a key) answers questions under its name; the name is gone with the node,
// so no directory can be out of date.
import type { DeviceStatus } from '@hawser/contract/devices'

export interface News {
  /** A device's name, status or facts changed, or it is gone. */
  'device.changed': { tenant_id: string; uid: string; status: DeviceStatus | 'gone' }
  'namespace.changed': { tenant_id: string }
  /** A member's role has changed, or the membership has ended. */
  'member.changed': { tenant_id: string; user_id: string }
  /**
   * A user's tokens ended: another password, an undone change, or the account is gone. `only`: nothing but
   * sign-ins ended.
   */
  'user.changed': { user_id: string; only?: 'sign-ins' }
  /** An API key, by its former name, has another role or name, or is gone. */
  'apiKey.changed': { tenant_id: string; name: string }
  /** A public key, by its MD5 fingerprint, is for other logins, or is gone. */
  'publicKey.changed': { tenant_id: string; fingerprint: string }
  /** A service changed, or is gone. */
  'service.changed': { tenant_id: string; id: string }
  'invitation.revoked': { tenant_id: string; user_id: string }
  /** A connector's settings changed, or it is gone. */
  'connector.changed': { tenant_id: string; uid: string }
  'enrolmentKey.removed': { tenant_id: string; fingerprint: string }
  /** A live session must end now. */
  'session.closed': { tenant_id: string; uid: string }
  /** A node has a newer tunnel of the device. */
  'tunnel.taken': { uid: string; number: number }
  /** The device has lost its tunnel. */
  'device.offline': { node: string; uid: string }
  /** Recent counts of shared limits. */
  'limit.counted': { node: string; limit: string; keys: [key: string, calls: number][] }
}

/** A name that this node answers under, until disposed. */
export interface HeldName extends Disposable {
  /**
   * Resolves when other nodes find the name. A node that is cut off does not wait: nobody can ask it, and
   * names are announced again when it is back.
   */
  known(): Promise<void>
}

export interface Bus {
  tell<K extends keyof News>(what: K, news: News[K]): void
  hear<K extends keyof News>(what: K, hearer: (news: News[K]) => void): Disposable
  /** Answers questions under a name. Undefined: no answer, as if nobody held it. */
  hold(name: string, answer: (question: string) => string | undefined | Promise<string | undefined>): HeldName
  holds(name: string): boolean
  /**
   * Asks the other node that holds the name; undefined when none does. Throws a Failure if this node was cut
   * off before the answer came, and another error if no answer came.
   */
  seek(name: string, question?: string): Promise<string | undefined>
  /** Called when news may have been missed: whatever was remembered because of them must be checked. */
  missed(hearer: () => void): Disposable
  /** False while this node is cut off from the others. */
  readonly connected: boolean
  /** Messages that no other node sent, or that came too late or twice. */
  readonly refused: number
}
