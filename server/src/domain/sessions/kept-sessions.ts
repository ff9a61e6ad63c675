// Sessions that a server left behind when it stopped, crashed or was lost, while the agents of their devices keep
// their terminals. Their records stay open until the time of the namespace is over. When a device says that it has
// the terminal of one, the node with its tunnel takes the record over, unless another node has the session.
import type { SessionOrigin, SessionPerson } from '@hawser/contract/sessions'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit } from '../audit/audit.ts'
import {
  closedBecause,
  closeKept,
  keptUntil,
  nobodyElse,
  type KeptFor,
  type LiveSession,
  type LiveSessions,
} from './live-sessions.ts'
import { personOf } from './persons.ts'

/** A session whose terminal a device has. */
export interface OrphanedSession {
  readonly uid: string
  readonly username: string
  /** Where its person came from at first. */
  readonly ip_address: string
  readonly term: string
  readonly started_at: number
  readonly person: SessionPerson
  readonly via: SessionOrigin
  /** SHA-256 of the key that they logged in with. */
  readonly fingerprint: string | undefined
  /** The MD5 fingerprint of the registered key that let them in; undefined: it was a password. */
  readonly key: string | undefined
  /** Until when its person may come back. */
  readonly until: number
  /** Their `standing` when it began, see revocation.ts. */
  readonly standing: string
}

/** `over`: it has ended, which the device does not know. `elsewhere`: another node has it. Undefined: there is none. */
export type ClaimAnswer =
  | { readonly state: 'left'; readonly session: OrphanedSession; readonly record: LiveSession }
  | { readonly state: 'over'; readonly session: OrphanedSession }
  | { readonly state: 'elsewhere' }
  | undefined

export interface KeptSessions extends Disposable {
  /**
   * A device has connected: the sessions are over whose terminals it has lost, because its agent has started again.
   * `isHere`: whether it has the terminal of the session, or this node has the session.
   */
  arrived(
    device: { readonly uid: string; readonly tenant_id: string },
    isHere: (uid: string) => boolean,
  ): Promise<void>
  /** Takes over a session whose terminal this device says it has. */
  claim(device: { readonly uid: string; readonly tenant_id: string }, uid: string): Promise<ClaimAnswer>
}

export interface KeptSessionParts {
  stores: Stores
  audit: Audit
  live: Pick<LiveSessions, 'adopt'>
  clock: Clock
  /** The id of this node; empty when there is only one. */
  node: string
  /** Whether another node has the session. */
  isElsewhere(uid: string): Promise<boolean>
  onError: (error: unknown) => void
}

/** How soon the record of one is closed when its time is over. */
const every_ms = 30 * second_ms
/** A session that a node has is touched more often. */
const untouched_ms = 90 * second_ms

const deviceLostIt = closedBecause('Its device does not have its terminal any more.')
const nobodyCame = closedBecause('Nobody came back to it in time.')

export function keptSessions(parts: KeptSessionParts): KeptSessions {
  const { stores, audit, live, clock, node } = parts
  /** Whether any session is kept: one query for all devices that connect at the same time. Most often none is. */
  let isAny: Promise<boolean> | undefined
  const close = async (): Promise<void> => {
    await closeKept({ stores, audit }, { last_seen: iso(clock.now() - untouched_ms), now: iso(clock.now()) })
    isAny = undefined
  }
  const timer = setInterval(() => void close().catch(parts.onError), every_ms).unref()

  return {
    async arrived({ uid: device_uid, tenant_id }, isHere) {
      isAny ??= stores.liveSessions.anyKept().catch(() => true)
      if (!(await isAny)) return
      const rows = await stores.of(tenant_id).sessions.keptOfDevice(device_uid)
      for (const row of rows) {
        if (isHere(row.uid) || (await parts.isElsewhere(row.uid))) continue
        await stores.transaction(async (inside) => {
          // Another node may have taken or closed it since it was read.
          if (await inside.of(tenant_id).sessions.take(row, { active: 0 }))
            await audit.append(inside, [deviceLostIt(row)])
        })
      }
    },
    async claim(device, uid) {
      const row = await stores.of(device.tenant_id).sessions.find(uid)
      if (row?.device_uid !== device.uid || row.kept_s === 0) return undefined
      const until = Date.parse(row.held_until === '' ? keptUntil(row) : row.held_until)
      const session = orphanOf(row, until)
      if (row.active === 0) return { state: 'over', session }
      if (await parts.isElsewhere(uid)) return { state: 'elsewhere' }
      const isOver = until <= clock.now()
      const lastEvent = await stores.of(device.tenant_id).sessionEvents.last(uid)
      const isTaken = await stores.transaction(async (inside) => {
        // Whoever shared it was lost with the server.
        const change = isOver
          ? { active: 0 as const }
          : { node, held_until: iso(until), participants: nobodyElse }
        if (!(await inside.of(device.tenant_id).sessions.take(row, change))) return false
        if (isOver) await audit.append(inside, [nobodyCame(row)])
        return true
      })
      if (!isTaken) return { state: 'elsewhere' }
      return isOver
        ? { state: 'over', session }
        : { state: 'left', session, record: live.adopt(row, lastEvent) }
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

function orphanOf(row: SessionRow, until: number): OrphanedSession {
  const { key, standing } = JSON.parse(row.kept_for) as KeptFor
  return {
    uid: row.uid,
    username: row.username,
    ip_address: row.ip_address,
    term: row.term,
    started_at: Date.parse(row.started_at),
    person: personOf(row),
    via: row.via as SessionOrigin,
    fingerprint: row.key_fingerprint === '' ? undefined : row.key_fingerprint,
    key,
    standing,
    until,
  }
}
