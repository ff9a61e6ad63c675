// The bus carries news between rooms and between nodes: short facts that something changed, never bytes of
// sessions and never anything that would be lost if nobody listened. A hearer asks the database for the
// truth. It also knows who holds what: a node that holds a thing (a device's tunnel, a key) answers questions
// under its name, and the name is gone with the node, so that there is no directory which could be out of
// date.
import type { DeviceStatus } from '@hawser/contract/devices'

export interface News {
  /** Its name, status or facts changed, or it is gone. */
  'device.changed': { tenant_id: string; uid: string; status: DeviceStatus | 'gone' }
  'namespace.changed': { tenant_id: string }
  /** Somebody has another role in a namespace, or none any more. */
  'member.changed': { tenant_id: string; user_id: string }
  /**
   * Tokens of this person ended: another password, an undone change, or the account is gone. `only`: nothing
   * but sign-ins of theirs ended.
   */
  'user.changed': { user_id: string; only?: 'sign-ins' }
  /** An API key of the namespace, by the name that it had, has another role or name, or is gone. */
  'apiKey.changed': { tenant_id: string; name: string }
  /** A public key of the namespace, by its MD5 fingerprint, is for other logins now, or is gone. */
  'publicKey.changed': { tenant_id: string; fingerprint: string }
  /** The invitation of this person to a session is gone. */
  'invitation.revoked': { tenant_id: string; user_id: string }
  /** Its settings changed, or it is gone. */
  'connector.changed': { tenant_id: string; uid: string }
  /** Devices may not join with it any more. */
  'enrolmentKey.removed': { tenant_id: string; fingerprint: string }
  /** A live session must end now. */
  'session.closed': { tenant_id: string; uid: string }
  /** A node has a newer tunnel of the device. */
  'tunnel.taken': { uid: string; number: number }
  /** The device has no tunnel any more. */
  'device.offline': { node: string; uid: string }
  /** What was counted against limits in the last moment. */
  'limit.counted': { node: string; limit: string; keys: [key: string, calls: number][] }
}

/** A name that this node answers under, until it is disposed of. */
export interface HeldName extends Disposable {
  /**
   * Resolves when other nodes find the name. A node that is cut off does not wait: nobody can ask it, and
   * names are made known anew when it is back.
   */
  known(): Promise<void>
}

export interface Bus {
  tell<K extends keyof News>(what: K, news: News[K]): void
  hear<K extends keyof News>(what: K, hearer: (news: News[K]) => void): Disposable
  /** Answers questions under a name. Undefined: no answer, as if nobody held it. */
  hold(name: string, answer: (question: string) => string | undefined | Promise<string | undefined>): HeldName
  /**
   * Asks whoever holds the name on another node; undefined when nobody does. Throws a Failure if this node was
   * cut off before the answer came, and another error if no answer came.
   */
  seek(name: string, question?: string): Promise<string | undefined>
  /** Called when news may have been missed: what was remembered by them is to be looked at again. */
  missed(hearer: () => void): Disposable
  /** False while this node is cut off from the others. */
  readonly connected: boolean
  /** Messages that did not count: no other node said them, or they came too late or twice. */
  readonly refused: number
}
