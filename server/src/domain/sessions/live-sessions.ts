// The record of a session while it runs, from the user's authentication on a device to the end of the
// connection. Changes wait while the database is away, and sweeps close what a crash left open. A commit
// waits for the disk, and on SQLite everybody waits with it. So a login commits once, before the user gets
// in; later changes, `last_seen` too, are collected for a moment and written for all sessions together.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import type { Participant } from '@hawser/contract/sharing'
import type {
  SessionKey,
  SessionMethod,
  SessionOrigin,
  SessionPerson,
  WebTraffic,
} from '@hawser/contract/sessions'
import { iso, minute_ms, second_ms } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import { safeText } from '../../kit/log.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import { actorOf, actorOfPerson, theServer, type AuditNote } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { SessionAudit } from './session-audit.ts'
import type { SessionEventLog, SessionEvents } from './session-events.ts'
import { personOf } from './persons.ts'
import type { SharingNote } from './sharing.ts'

export interface SessionStart {
  /** Made when the client connected; agents know the session by it, too. */
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly ip_address: string
  readonly person: SessionPerson
  readonly via: SessionOrigin
  readonly method: SessionMethod
  readonly key?: SessionKey | undefined
  readonly client: string
  /** It is a session at a service. */
  readonly web?: WebTraffic | undefined
}

/** The person of a detached terminal. */
export interface DetachedFor {
  /** The MD5 fingerprint of the registered key that let them in; absent: it was a password. */
  readonly key?: string | undefined
  /** The `standing` of revocation.ts when the session began. */
  readonly standing: string
}

export interface LiveSession {
  readonly uid: string
  readonly events: SessionEventLog
  note(change: {
    type?: 'shell' | 'exec' | 'subsystem' | 'web'
    /** What passed at the service so far. */
    web?: WebTraffic
    term?: string
    recorded?: 1
    /** The gateway records it, whatever else was posted. */
    posted?: 0
    unrecorded?: 1
    secrets_masked?: number
    /** When its recordings are to be indexed for the search. */
    index_at?: string
    /** The uid of the session that its terminal continues. */
    resumes?: string
    /** How long the agent keeps its terminal when the server is lost, and for which person. */
    kept_s?: number
    kept_for?: DetachedFor
  }): void
  /** The session is held until then. */
  held(until: string): void
  /** The person has reattached, from this address. */
  resumed(source: string, via: SessionOrigin): void
  /** The held terminal has ended, and the session continues without it. */
  released(): void
  /** Guests and viewers in its terminals. */
  shared(participants: readonly Participant[], notes: readonly SharingNote[]): void
  /** This server gives the session up and its agent keeps the terminal: the record stays open until `held_until`. */
  leave(held_until: string): void
  finish(): void
}

/** `none`: the session ended without a channel that runs something, such as one that only forwards ports. */
const sessionTypes = ['shell', 'exec', 'subsystem', 'web', 'none'] as const
export type SessionType = (typeof sessionTypes)[number]

export interface LiveSessions extends AsyncDisposable {
  /** Throws notFound when the device was removed or rejected a moment ago. */
  begin(start: SessionStart): Promise<LiveSession>
  /** The record of a session that began on a lost server. */
  adopt(row: SessionRow, lastEvent: number): LiveSession
  /** Sessions by what their first channel was for. */
  readonly types: Counter<SessionType>
  /** Marks this node's sessions as active again, after another node closed them in the database. */
  revive(): Promise<void>
}

const touch_every_ms = 30_000
/** A shorter session has one write after its login. */
const collect_ms = 50
/** A session that no gateway has touched for this long is over. */
export const stale_ms = 5 * minute_ms
const batch = 500
/** Entries of one session in the audit log that wait for the database. */
const mostNotes = 1_000
const longest_term = 64
export const nobodyElse = '[]'

type Change = Parameters<ReturnType<Stores['of']>['sessions']['save']>[1]

export interface LiveSessionParts extends WriteReport, With<'stores' | 'audit' | 'clock'> {
  events: Pick<SessionEvents, 'of'>
  /** The id of this node; empty when there is only one. */
  node: string
  /** Lets other nodes find this node under the name. */
  register(name: string): Disposable
}

/**
 * Closes sessions that nobody has touched since this moment, with entries in the audit log. Those with
 * detached terminals stay open until their hold ends.
 */
export async function closeLost(
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  { last_seen, now }: { readonly last_seen: string; readonly now: string },
): Promise<void> {
  for (let held = batch; held === batch;)
    held = await stores.transaction(async (inside) => {
      const rows = await inside.liveSessions.detachedSince(last_seen, batch)
      for (const row of rows)
        await inside.of(row.tenant_id).sessions.save(row.uid, { held_until: detachedUntil(row) })
      return rows.length
    })
  await closeOlder('all', { stores, audit }, { last_seen, now })
}

/** Closes only sessions with detached terminals whose time is over. */
export const closeDetached = async (
  parts: Pick<LiveSessionParts, 'stores' | 'audit'>,
  moments: { readonly last_seen: string; readonly now: string },
): Promise<void> => closeOlder('detached', parts, moments)

async function closeOlder(
  which: 'all' | 'detached',
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  { last_seen, now }: { readonly last_seen: string; readonly now: string },
): Promise<void> {
  const why = {
    all: 'The server that had it stopped without closing it.',
    detached: 'The session expired before anyone reconnected.',
  }
  for (let closed = batch; closed === batch;)
    closed = await stores.transaction(async (inside) => {
      const rows = await inside.liveSessions.closeOlderThan(which, last_seen, now, batch)
      await audit.append(inside, rows.map(closedBecause(why[which])))
      return rows.length
    })
}

/** Marks the devices of a lost node offline and closes its sessions, with audit entries. */
export async function cleanUpAfter(
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  lost: string,
): Promise<{ devices: number; sessions: number }> {
  return stores.transaction(async (inside) => {
    const { devices, sessions, detached } = await inside.nodes.cleanUp(lost)
    for (const row of detached)
      if (row.held_until === '')
        await inside.of(row.tenant_id).sessions.save(row.uid, { held_until: detachedUntil(row) })
    await audit.append(inside, sessions.map(closedBecause('The node of the server that had it is lost.')))
    return { devices: devices.length, sessions: sessions.length }
  })
}

/** The hold counts from the server's last write to the record. */
export const detachedUntil = ({ last_seen, kept_s }: Pick<SessionRow, 'last_seen' | 'kept_s'>): string =>
  iso(Date.parse(last_seen) + kept_s * second_ms)

export const closedBecause =
  (why: string) =>
  ({ tenant_id, uid, username, device_uid }: LostSession): AuditNote => ({
    by: { ...theServer, tenant_id },
    record: {
      action: 'session.closed',
      target: { kind: 'session', id: uid, name: username },
      detail: { device: device_uid, why },
    },
  })

type LostSession = Readonly<Record<'tenant_id' | 'uid' | 'username' | 'device_uid', string>>

export const sessionName = (uid: string): string => `session.${uid}`

/** Returns what the session's audit entries have in common. */
async function insertRecord(start: SessionStart, parts: LiveSessionParts): Promise<SessionAudit> {
  const { uid, tenant_id, device_uid, username, ip_address, person, via, method, key, client, web } = start
  const now = iso(parts.clock.now())
  const by = { ...actorOfPerson(person, ip_address), tenant_id }
  return parts.audit.change(by, async (inside, record): Promise<SessionAudit> => {
    // The transaction keeps anybody from removing or rejecting the device before the insert.
    const device = await inside.of(tenant_id).devices.find(device_uid)
    if (device?.status !== 'accepted') throw new Failure('notFound')
    await inside.of(tenant_id).sessions.insert({
      uid,
      device_uid,
      username,
      ip_address,
      started_at: now,
      last_seen: now,
      active: 1,
      authenticated: 1,
      recorded: 0,
      type: web ? 'web' : 'none',
      web: web ? JSON.stringify(web) : '',
      term: 'none',
      position: device.position,
      node: parts.node,
      person_kind: person.kind,
      person_id: person.id,
      person_name: person.name,
      person_created_by: person.created_by ?? '',
      via,
      method,
      key_fingerprint: key?.fingerprint ?? '',
      key_name: key?.name ?? '',
      client,
    })
    const opened = { device: device_uid, device_name: device.name, via, method }
    const about = web
      ? {
          target: { kind: 'session', id: uid, name: web.name },
          detail: { ...opened, service: web.service, target: web.target },
        }
      : {
          target: { kind: 'session', id: uid, name: username },
          detail: { ...opened, key: key?.fingerprint ?? '' },
        }
    record({ action: web ? 'service.opened' : 'session.opened', ...about })
    return { by, ...about }
  })
}

interface Waiting {
  readonly session: RunningSession
  readonly change: Change
  readonly notes: readonly AuditNote[]
}

interface RunningParts extends Pick<LiveSessionParts, 'events' | 'clock' | 'register'> {
  readonly changes: WriteBehind<Waiting>
  readonly types: LiveSessions['types']
}

type SessionAbout = Pick<SessionStart, 'uid' | 'tenant_id' | 'person'>

class RunningSession implements LiveSession {
  readonly uid: string
  readonly tenant_id: string
  readonly audited: SessionAudit
  readonly events: SessionEventLog
  /** The end of the hold; empty: it has a client. */
  heldUntil = ''
  isOver = false
  /** The end is written: the record is closed, or another node's, so no change may follow. */
  isGone = false
  readonly #person: SessionPerson
  readonly #parts: RunningParts
  readonly #name: Disposable
  #isTyped: boolean

  /** `after`: the number of its last event; undefined: it has just begun. */
  constructor(
    { uid, tenant_id, person }: SessionAbout,
    audited: SessionAudit,
    parts: RunningParts,
    after?: number,
  ) {
    this.uid = uid
    this.tenant_id = tenant_id
    this.audited = audited
    this.events = parts.events.of({ uid, ...audited, after: after ?? 0 })
    this.#person = person
    this.#parts = parts
    this.#name = parts.register(sessionName(uid))
    this.#isTyped = after !== undefined
  }

  note({ term, kept_for, web, ...change }: Parameters<LiveSession['note']>[0]): void {
    if (change.type) this.#countAs(change.type)
    this.#write({
      ...change,
      ...defined({
        term: term === undefined ? undefined : safeText(term, longest_term - 1),
        kept_for: kept_for && JSON.stringify(kept_for),
        web: web && JSON.stringify(web),
      }),
    })
  }

  held(held_until: string): void {
    const by = { ...theServer, tenant_id: this.tenant_id }
    this.#write({ held_until }, [this.#entry('session.held', by, { held_until })])
  }

  resumed(source: string, via: SessionOrigin): void {
    const by = { ...actorOfPerson(this.#person, source), tenant_id: this.tenant_id }
    this.#write({ held_until: '' }, [this.#entry('session.resumed', by, { via })])
  }

  released(): void {
    this.#write({ held_until: '' })
  }

  shared(participants: readonly Participant[], notes: readonly SharingNote[]): void {
    const entries = notes.map(({ action, by, detail }) =>
      this.#entry(action, by ? actorOf(by) : this.audited.by, detail),
    )
    this.#write({ participants: JSON.stringify(participants) }, entries)
  }

  leave(held_until: string): void {
    this.#finish({ held_until, participants: nobodyElse })
  }

  finish(): void {
    this.#finish({ active: 0 })
  }

  /** Writes again whether it is held: another node may have written that it is. */
  revive(): void {
    this.#write({ held_until: this.heldUntil })
  }

  #finish(change: Change): void {
    if (this.isOver) return
    this.isOver = true
    this.events.end()
    this.#countAs('none')
    this.#name[Symbol.dispose]()
    this.#write({ ...change, last_seen: iso(this.#parts.clock.now()) })
    // The next list of sessions shows that this one is over.
    this.#parts.changes.hurry()
  }

  #countAs(type: SessionType): void {
    if (!this.#isTyped) this.#parts.types.add(type)
    this.#isTyped = true
  }

  #entry(action: AuditNote['record']['action'], by: AuditNote['by'], about: object): AuditNote {
    const { target, detail } = this.audited
    return { by, record: { action, target, detail: { ...detail, ...about } } }
  }

  #write(change: Change, notes: readonly AuditNote[] = []): void {
    if (this.isGone) return
    this.heldUntil = change.held_until ?? this.heldUntil
    this.#parts.changes.put(this.uid, { session: this, change, notes })
  }
}

/** Entries of a change, and that of the session's end. */
function entriesOf({ session: { audited }, change, notes }: Waiting): readonly AuditNote[] {
  const { by, target, detail } = audited
  return change.active === 0
    ? [...notes, { by, record: { action: 'session.closed', target, detail } }]
    : notes
}

export function liveSessions(parts: LiveSessionParts): LiveSessions {
  const { stores, audit, clock, node, onError } = parts
  const sessions = new Map<string, RunningSession>()
  const types = new Counter(sessionTypes)
  const changes = new WriteBehind<Waiting>({
    ...parts,
    delay_ms: collect_ms,
    batch,
    merge(older, { session, change, notes }) {
      const all = [...older.notes, ...notes]
      if (all.length > mostNotes) changes.drop(all.length - mostNotes)
      return { session, change: { ...older.change, ...change }, notes: all.slice(0, mostNotes) }
    },
    write,
  })

  /** In one commit. */
  async function write(some: readonly Waiting[]): Promise<void> {
    const save = async (inside: Pick<Stores, 'of'>): Promise<void> => {
      for (const { session, change } of some)
        await inside.of(session.tenant_id).sessions.saveOn(node, session.uid, change)
    }
    const entries = some.flatMap(entriesOf)
    if (some.length === 1 && entries.length === 0) await save(stores)
    else
      await stores.transaction(async (inside) => {
        await save(inside)
        await audit.append(inside, entries)
      })
    for (const { session } of some) {
      session.isGone = session.isOver && !changes.get(session.uid)
      if (session.isGone && sessions.get(session.uid) === session) sessions.delete(session.uid)
    }
  }

  /** Runs work for all sessions that are not over, in batches. */
  async function forAlive(work: (uids: string[]) => Promise<unknown>): Promise<void> {
    const alive = [...sessions.values()].flatMap(({ uid, isOver }) => (isOver ? [] : [uid]))
    for (let start = 0; start < alive.length; start += batch) await work(alive.slice(start, start + batch))
  }
  const touch = (): Promise<void> => forAlive((uids) => stores.liveSessions.touch(uids, iso(clock.now())))

  function open(about: SessionAbout, audited: SessionAudit, lastEvent?: number): LiveSession {
    const session = new RunningSession(about, audited, { ...parts, changes, types }, lastEvent)
    sessions.set(session.uid, session)
    return session
  }

  const timer = setInterval(() => void changes.inTurn(touch).catch(onError), touch_every_ms)
  timer.unref()

  return {
    types,
    async begin(start) {
      const session = open(start, await insertRecord(start, parts))
      if (start.web) session.note({ type: 'web' })
      return session
    },
    adopt(row, lastEvent) {
      const { uid, tenant_id, username, device_uid, ip_address, via, method } = row
      const person = personOf(row)
      const audited = {
        by: { ...actorOfPerson(person, ip_address), tenant_id },
        target: { kind: 'session', id: uid, name: username },
        detail: { device: device_uid, via, method, key: row.key_fingerprint },
      }
      return open({ uid, tenant_id, person }, audited, lastEvent)
    },
    async revive() {
      await forAlive((uids) => stores.liveSessions.revive(uids, node, iso(clock.now())))
      for (const session of sessions.values()) if (!session.isOver) session.revive()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await changes[Symbol.asyncDispose]()
    },
  }
}
