// Checks what is open on this node against the database and ends what is no longer allowed. A check makes as
// many queries as there are people and namespaces, not sessions.
import type { RecordingSettings } from '../../recording/tap.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import { policyOf } from '../access/policies.ts'
import { sessionPolicy, type SessionPolicy } from '../access/session-policy.ts'
import type { With } from '../audit/parts.ts'
import { isApiKey, reasons, type Connections, type OpenSession } from './connections.ts'
import { checkedRows, loginRights } from './login-rights.ts'

export const policyOfSessions = (namespace: Pick<NamespaceRow, 'policy'>): SessionPolicy =>
  sessionPolicy(policyOf(namespace))

/** With or without the tunnels of devices. */
export type CheckRange = 'all' | 'sessions'

const batch = 500

export interface CheckParts extends With<'stores' | 'clock'> {
  recordingOf(tenant_id: string, device_uid: string): Promise<RecordingSettings>
}

export type Check = ReturnType<typeof checkOf>

/** One check, which reads each row of a person or a namespace once. */
export function checkOf({ stores, clock, recordingOf }: CheckParts, open: Connections) {
  const rows = checkedRows(stores, clock)

  /** Ends held sessions of API keys that this member has created. */
  async function heldOfKeys(tenant_id: string, user_id: string): Promise<void> {
    for (const session of open.sessions.values()) {
      const held = session.heldFor?.()
      if (held?.tenant_id !== tenant_id || !isApiKey(held)) continue
      if ((await rows.apiKey(tenant_id, held.person.id))?.created_by === user_id) session.end(reasons.notHeld)
    }
  }

  /** Ends held sessions of a namespace whose person may not reattach. */
  async function held(tenant_id: string, sessions: readonly OpenSession[]): Promise<void> {
    const waiting = sessions.flatMap((session) => {
      const whose = session.heldFor?.()
      return whose ? [{ session, ...whose }] : []
    })
    const records = await byUid(
      stores.of(tenant_id).sessions.findMany,
      waiting.flatMap(({ restored }) => restored ?? []),
    )
    const devices = await byUid(
      stores.of(tenant_id).devices.findMany,
      waiting.flatMap(({ key, device_uid }) => (key === undefined ? [] : device_uid)),
    )
    const rights = loginRights(stores, { ...rows, device: async (_: string, uid = '') => devices.get(uid) })
    for (const { session, restored, ...whose } of waiting) {
      const isClosed = restored !== undefined && records.get(restored)?.active !== 1
      if (isClosed || !(await rights.mayBeHeld(whose))) session.end(reasons.notHeld)
    }
  }

  /** Ends sessions whose person has lost the membership, or the API key, that opened them. */
  async function persons(whose: (session: OpenSession) => boolean): Promise<void> {
    const rights = loginRights(stores, rows)
    for (const session of [...open.sessions.values()].filter(whose)) {
      // A public key that is removed later ends only held sessions.
      const lost = await rights.lostPerson(session)
      if (lost !== undefined) session.end(lost)
    }
  }

  async function namespaceSessions(tenant_id: string, sessions: readonly OpenSession[]): Promise<void> {
    const namespace = await rows.namespace(tenant_id)
    const mine = stores.of(tenant_id)
    const devices = await byUid(
      mine.devices.findMany,
      sessions.map(({ device_uid }) => device_uid),
    )
    const records = await byUid(
      mine.sessions.findMany,
      sessions.map(({ uid }) => uid),
    )
    if (namespace) restrict(sessions, namespace)
    for (const session of sessions) {
      if (devices.get(session.device_uid)?.status !== 'accepted') session.end(reasons.unavailable)
      const record = records.get(session.uid)
      // While this node was cut off, another one may have closed its sessions in the database; their records
      // then name no node, and this node writes them again.
      if (record?.active === 0 && record.node !== '') session.end(reasons.closed)
    }
  }

  /** Applies the settings of a namespace, or ends all of it if it is gone. */
  async function namespace(tenant_id: string): Promise<void> {
    const row = await rows.namespace(tenant_id)
    // Settings also decide who may type in sessions of others.
    void open.recheckPeople((person) => person.tenant_id === tenant_id)
    if (!row) return endNamespace(tenant_id, open)
    const sessions = [...open.sessions.values()].filter((session) => session.tenant_id === tenant_id)
    await held(tenant_id, sessions)
    restrict(sessions, row)
    for (const [uid, its] of Map.groupBy(sessions, ({ device_uid }) => device_uid)) {
      const settings = await recordingOf(tenant_id, uid)
      for (const session of its) session.record(settings)
    }
  }

  /** For when news may have been missed. */
  async function everything(what: CheckRange): Promise<void> {
    // Concurrently, because the database may fail the rest.
    const people = open.recheckPeople(() => true)
    try {
      if (what === 'all') await recheckTunnels(stores, open)
      const byNamespace = Map.groupBy(open.sessions.values(), ({ tenant_id }) => tenant_id)
      for (const [tenant_id, sessions] of byNamespace) await held(tenant_id, sessions)
      await persons(() => true)
      for (const [tenant_id, sessions] of byNamespace) await namespaceSessions(tenant_id, sessions)
    } finally {
      await people
    }
  }

  return { heldOfKeys, persons, namespace, everything }
}

async function recheckTunnels(stores: CheckParts['stores'], open: Connections): Promise<void> {
  await open.joined.recheck()
  const devices = [...open.tunnels.all()].map(({ device }) => device)
  for (const [tenant_id, its] of Map.groupBy(devices, (device) => device.tenant_id)) {
    const found = await byUid(
      stores.of(tenant_id).devices.findMany,
      its.map(({ uid }) => uid),
    )
    for (const { uid } of its) {
      const row = found.get(uid)
      if (!row || row.status === 'rejected') disconnect(uid, open)
      else open.tunnels.yield(uid, row.tunnel)
    }
  }
}

function restrict(sessions: readonly OpenSession[], namespace: NamespaceRow): void {
  const policy = policyOfSessions(namespace)
  for (const session of sessions) {
    session.restrict(policy)
    session.hold?.(namespace.hold_sessions)
  }
}

export function endSessionsOf(device_uid: string, open: Connections): void {
  for (const session of open.sessions.values())
    if (session.device_uid === device_uid) session.end(reasons.unavailable)
}

export function disconnect(device_uid: string, open: Connections): void {
  endSessionsOf(device_uid, open)
  open.tunnels.drop(device_uid, reasons.refused)
}

function endNamespace(tenant_id: string, open: Connections): void {
  open.connectors.namespaceRemoved(tenant_id)
  // All of them: the tunnel of a session may be on another node, or gone.
  for (const session of open.sessions.values())
    if (session.tenant_id === tenant_id) session.end(reasons.unavailable)
  for (const { device } of open.tunnels.all())
    if (device.tenant_id === tenant_id) open.tunnels.drop(device.uid, reasons.refused)
}

async function byUid<T extends { readonly uid: string }>(
  find: (uids: readonly string[]) => Promise<T[]>,
  uids: readonly string[],
): Promise<ReadonlyMap<string, T>> {
  const wanted = [...new Set(uids)]
  const rows = new Map<string, T>()
  for (let at = 0; at < wanted.length; at += batch)
    for (const row of await find(wanted.slice(at, at + batch))) rows.set(row.uid, row)
  return rows
}
