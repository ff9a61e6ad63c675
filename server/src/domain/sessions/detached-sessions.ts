// Sessions whose detached terminals their agents keep after a server stopped, crashed or was lost. Their
// records stay open until their hold ends. When a device reports such a terminal, the node with its tunnel
// takes the session over, unless another node has it. A person who reattaches at one node takes theirs from
// whichever node has it.
import type { SessionOrigin, SessionPerson } from '@hawser/contract/sessions'
import { iso, second_ms } from '../../kit/clock.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { With } from '../audit/parts.ts'
import {
  closedBecause,
  closeDetached,
  detachedUntil,
  nobodyElse,
  type DetachedFor,
  type LiveSession,
  type LiveSessions,
} from './live-sessions.ts'
import { personOf } from './persons.ts'

export interface DetachedSession {
  readonly uid: string
  readonly username: string
  /** The person's first address. */
  readonly ip_address: string
  readonly term: string
  readonly started_at: number
  readonly person: SessionPerson
  readonly via: SessionOrigin
  /** SHA-256 of the key that they logged in with. */
  readonly fingerprint: string | undefined
  /** The MD5 fingerprint of the registered key that let them in; undefined: it was a password. */
  readonly key: string | undefined
  /** The end of the hold. */
  readonly until: number
  /** The `standing` when it began, see revocation.ts. */
  readonly standing: string
  readonly isHeld: boolean
  /** According to the record; empty: none. */
  readonly node: string
}

/**
 * `over`: it has ended, which the device does not know. `elsewhere`: another node has it. Undefined: there is
 * none.
 */
export type ClaimAnswer =
  | { readonly state: 'left'; readonly session: DetachedSession; readonly record: LiveSession }
  | { readonly state: 'over'; readonly session: DetachedSession }
  | { readonly state: 'elsewhere' }
  | undefined

export interface DetachedSessions extends Disposable {
  /**
   * A device has connected: ends sessions whose terminals are lost, because its agent has started again.
   * `isHere`: whether the device has the terminal, or this node the session.
   */
  arrived(
    device: { readonly uid: string; readonly tenant_id: string },
    isHere: (uid: string) => boolean,
  ): Promise<void>
  /** Takes over a session whose terminal this device reports, unless another node has the session. */
  claim(device: { readonly uid: string; readonly tenant_id: string }, uid: string): Promise<ClaimAnswer>
  /** Takes over a session of a person who reattaches here, from whichever node has it. */
  take(device: { readonly uid: string; readonly tenant_id: string }, uid: string): Promise<ClaimAnswer>
  /** A person's sessions on an account of a device that other nodes have, held ones first. */
  elsewhere(
    account: { readonly tenant_id: string; readonly device_uid: string; readonly username: string },
    person: SessionPerson,
  ): Promise<DetachedSession[]>
}

export interface DetachedSessionParts extends With<'stores' | 'audit' | 'clock'> {
  live: Pick<LiveSessions, 'adopt'>
  /** The id of this node; empty when there is only one. */
  node: string
  isElsewhere(uid: string): Promise<boolean>
  onError: (error: unknown) => void
}

/** Per login. */
const mostElsewhere = 50
/** How soon the record is closed when the hold has ended. */
const every_ms = 30 * second_ms
/** A session that a node has is touched more often. */
const untouched_ms = 90 * second_ms

const deviceLostIt = closedBecause('The device no longer has its terminal.')
const nobodyCame = closedBecause('The session expired before anyone reconnected.')

export function detachedSessions(parts: DetachedSessionParts): DetachedSessions {
  const { stores, audit, live, clock, node } = parts
  /** One query for all devices that connect at the same time. Mostly there is none. */
  let isAny: Promise<boolean> | undefined
  const close = async (): Promise<void> => {
    await closeDetached(
      { stores, audit },
      { last_seen: iso(clock.now() - untouched_ms), now: iso(clock.now()) },
    )
    isAny = undefined
  }
  const timer = setInterval(() => void close().catch(parts.onError), every_ms).unref()

  async function take(
    device: { readonly uid: string; readonly tenant_id: string },
    uid: string,
    isTaken: () => Promise<boolean>,
  ): Promise<ClaimAnswer> {
    const row = await stores.of(device.tenant_id).sessions.find(uid)
    if (row?.device_uid !== device.uid || row.kept_s === 0) return undefined
    const session = detachedOf(row)
    if (row.active === 0) return { state: 'over', session }
    if (await isTaken()) return { state: 'elsewhere' }
    const isOver = session.until <= clock.now()
    const lastEvent = await stores.of(device.tenant_id).sessionEvents.last(uid)
    const isMine = await stores.transaction(async (inside) => {
      // Guests and viewers were lost with the server that had it.
      const change = isOver
        ? { active: 0 as const }
        : { node, held_until: iso(session.until), participants: nobodyElse }
      if (!(await inside.of(device.tenant_id).sessions.take(row, change))) return false
      if (isOver) await audit.append(inside, [nobodyCame(row)])
      return true
    })
    if (!isMine) return { state: 'elsewhere' }
    return isOver
      ? { state: 'over', session }
      : { state: 'left', session, record: live.adopt(row, lastEvent) }
  }

  return {
    async arrived({ uid: device_uid, tenant_id }, isHere) {
      isAny ??= stores.liveSessions.anyDetached().catch(() => true)
      if (!(await isAny)) return
      const rows = await stores.of(tenant_id).sessions.detachedOfDevice(device_uid)
      for (const row of rows) {
        if (isHere(row.uid) || (await parts.isElsewhere(row.uid))) continue
        await stores.transaction(async (inside) => {
          // Another node may have taken or closed it since it was read.
          if (await inside.of(tenant_id).sessions.take(row, { active: 0 }))
            await audit.append(inside, [deviceLostIt(row)])
        })
      }
    },
    claim: async (device, uid) => take(device, uid, () => parts.isElsewhere(uid)),
    take: async (device, uid) => take(device, uid, () => Promise.resolve(false)),
    async elsewhere({ tenant_id, device_uid, username }, { kind, id }) {
      const account = { device_uid, username, person_kind: kind, person_id: id }
      const rows = await stores.of(tenant_id).sessions.detachedElsewhere(account, node, mostElsewhere)
      return rows.map(detachedOf)
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

function detachedOf(row: SessionRow): DetachedSession {
  const { key, standing } = JSON.parse(row.kept_for) as DetachedFor
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
    isHeld: row.held_until !== '',
    node: row.node,
    until: Date.parse(row.held_until === '' ? detachedUntil(row) : row.held_until),
  }
}
