// What a change ends for those who are connected: one table from news to effects. A device that is no longer
// accepted loses its sessions; a rejected or deleted one loses its tunnel, too. A person who loses a role, a
// sign-in or an API key loses the terminals and live views opened with it. A deleted device or namespace
// loses its recordings. When news may have been missed, every open connection is checked against the
// database.
//
// The rule that makes a change publishes the news, on any node; the effects happen on the node that has the
// connection.
import type { Bus, News } from '../../bus/bus.ts'
import type { RecordingSettings } from '../../recording/tap.ts'
import type { Stores } from '../../storage/stores.ts'

/** A session that goes on here, between a client and a device. */
export interface OpenSession {
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  /** Ends the session; the client shows the sentence. */
  end(sentence: string): void
  /** Starts or stops recording, from now on. */
  record(settings: RecordingSettings): void
}

/** A person who has a terminal or a live view open, and the namespace of it. */
export interface Person {
  readonly user_id: string
  readonly tenant_id: string
}

/** What is open on this node. */
export interface Connections {
  readonly sessions: ReadonlyMap<string, OpenSession>
  readonly tunnels: {
    all(): Iterable<{ readonly device: { readonly uid: string; readonly tenant_id: string } }>
    drop(device_uid: string, why: string): void
    /** Gives the device up if another node has a newer tunnel than this. */
    yield(device_uid: string, number: number): void
  }
  /** Devices that joined by SSH, with an enrolment key. */
  readonly joined: {
    removed(tenant_id: string, fingerprint: string): void
    recheck(): Promise<void>
  }
  readonly connectors: {
    deviceChanged(tenant_id: string): void
    changed(tenant_id: string, uid: string): void
    namespaceRemoved(tenant_id: string): void
  }
  /** Makes each terminal and live view of these people ask the database whether it may stay open. */
  recheckPeople(whose: (person: Person) => boolean): void
}

export const reasons = {
  unavailable: 'The device is no longer available.',
  refused: 'The device may not connect any more.',
  closed: 'The session was closed by an administrator.',
} as const

export interface RevocationParts {
  bus: Bus
  stores: Stores
  /** Runs work that nobody waits for; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
  /** Removes the recordings of deleted devices and namespaces. */
  sweepRecordings(): Promise<void>
  /**
   * How often everything open is held against the database, where changes may be made by processes that cannot
   * tell news; undefined: never.
   */
  recheck_ms?: number | undefined
}

export interface Revocation extends Disposable {
  /** From now on changes take effect on what is open here, until this is disposed. */
  apply(open: Connections): Disposable
  /** Whether the namespace wants its sessions recorded now. */
  recordingOf(tenant_id: string): Promise<RecordingSettings>
}

/** Between two attempts, when the database does not answer. */
const retry_ms = 5_000

type Table = { readonly [K in keyof News]?: (news: News[K], open: Applied) => void }

interface Applied extends Connections {
  /** As `later`, and again until the work succeeds: nobody will tell these news a second time. */
  untilDone(name: string, work: () => Promise<void>): void
}

export function revocation({ bus, stores, later, sweepRecordings, recheck_ms }: RevocationParts): Revocation {
  async function recordingOf(tenant_id: string): Promise<RecordingSettings> {
    const namespace = await stores.namespaces.find(tenant_id)
    return {
      record: namespace?.session_record === 1,
      continueUnrecorded: namespace?.continue_unrecorded === 1,
    }
  }

  function endSessionsOf(device_uid: string, open: Connections): void {
    for (const session of open.sessions.values())
      if (session.device_uid === device_uid) session.end(reasons.unavailable)
  }

  function disconnect(device_uid: string, open: Connections): void {
    endSessionsOf(device_uid, open)
    open.tunnels.drop(device_uid, reasons.refused)
  }

  async function namespaceChanged(tenant_id: string, open: Connections): Promise<void> {
    if (!(await stores.namespaces.find(tenant_id))) {
      open.connectors.namespaceRemoved(tenant_id)
      for (const { device } of open.tunnels.all())
        if (device.tenant_id === tenant_id) disconnect(device.uid, open)
      open.recheckPeople((person) => person.tenant_id === tenant_id)
      return
    }
    const sessions = [...open.sessions.values()].filter((session) => session.tenant_id === tenant_id)
    if (sessions.length === 0) return
    const policy = await recordingOf(tenant_id)
    for (const session of sessions) session.record(policy)
  }

  /** After missed news: checks every open connection against the database. */
  async function recheckAll(open: Connections): Promise<void> {
    // Each of these asks for itself, until the database answers.
    open.recheckPeople(() => true)
    await open.joined.recheck()
    for (const { device } of open.tunnels.all()) {
      const row = await stores.of(device.tenant_id).devices.find(device.uid)
      if (!row || row.status === 'rejected') disconnect(device.uid, open)
      else open.tunnels.yield(device.uid, row.tunnel)
    }
    for (const session of open.sessions.values()) {
      const device = await stores.of(session.tenant_id).devices.find(session.device_uid)
      if (device?.status !== 'accepted') session.end(reasons.unavailable)
      const record = await stores.of(session.tenant_id).sessions.find(session.uid)
      // While this node was cut off, another one may have closed its sessions in the database; their records
      // then name no node. Nobody closed such a session: this node writes its record again.
      if (record?.active === 0 && record.node !== '') session.end(reasons.closed)
    }
  }

  const table: Table = {
    'session.closed': ({ uid }, { sessions }) => sessions.get(uid)?.end(reasons.closed),
    'device.changed': ({ tenant_id, uid, status }, open) => {
      if (status === 'rejected' || status === 'gone') disconnect(uid, open)
      else if (status !== 'accepted') endSessionsOf(uid, open)
      open.connectors.deviceChanged(tenant_id)
    },
    'tunnel.taken': ({ uid, number }, { tunnels }) => tunnels.yield(uid, number),
    'enrolmentKey.removed': ({ tenant_id, fingerprint }, { joined }) =>
      joined.removed(tenant_id, fingerprint),
    'connector.changed': ({ tenant_id, uid }, { connectors }) => connectors.changed(tenant_id, uid),
    'namespace.changed': ({ tenant_id }, open) =>
      open.untilDone('namespace.change', () => namespaceChanged(tenant_id, open)),
    'member.changed': ({ tenant_id, user_id }, open) =>
      open.recheckPeople((person) => person.user_id === user_id && person.tenant_id === tenant_id),
    'user.changed': ({ user_id }, open) => open.recheckPeople((person) => person.user_id === user_id),
    'apiKey.changed': ({ tenant_id }, open) => open.recheckPeople((person) => person.tenant_id === tenant_id),
  }

  // A person who deletes a device or a namespace expects its recordings to be gone at once, not at the next
  // sweep. This concerns the database, so it happens on the node that made the change, also when nothing is
  // open there.
  const sweep = (): void => later('sweep', sweepRecordings)
  const sweeping = [
    bus.hear('device.changed', ({ status }) => void (status === 'gone' && sweep())),
    bus.hear('namespace.changed', sweep),
  ]

  return {
    recordingOf,
    apply(connections) {
      const retries = new Set<NodeJS.Timeout>()
      let over = false
      const open: Applied = {
        ...connections,
        untilDone(name, work) {
          later(name, async () => {
            try {
              await work()
            } catch (error) {
              const retry = setTimeout(() => {
                retries.delete(retry)
                open.untilDone(name, work)
              }, retry_ms).unref()
              retries.add(retry)
              if (over) clearTimeout(retry)
              throw error
            }
          })
        },
      }
      const hear = (what: keyof News): Disposable | undefined => {
        // The table has for each kind of news the effect of that kind; this is what the types cannot follow.
        const effect = table[what] as ((news: News[keyof News], open: Applied) => void) | undefined
        return effect && bus.hear(what, (news) => effect(news, open))
      }
      const hearing = [
        ...(Object.keys(table) as (keyof News)[]).map(hear),
        bus.missed(() => open.untilDone('news.missed', () => recheckAll(open))),
      ]
      const rechecking =
        recheck_ms === undefined
          ? undefined
          : setInterval(() => later('recheck', () => recheckAll(open)), recheck_ms).unref()
      return {
        [Symbol.dispose]() {
          over = true
          hearing.forEach((one) => one?.[Symbol.dispose]())
          retries.forEach((retry) => clearTimeout(retry))
          clearInterval(rechecking)
        },
      }
    },
    [Symbol.dispose]: () => sweeping.forEach((one) => one[Symbol.dispose]()),
  }
}
