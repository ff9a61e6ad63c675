// The record of a session while it runs. It is created when a user is authenticated on a device, never
// before, and ends with the connection whatever happens: changes that failed while the database was
// unreachable are written when it is back, and the sweeps close sessions that a crash left open. A
// commit waits for the disk, and on SQLite everybody waits with it. So a login commits once, before the
// user gets in; what becomes known after that is collected for a moment and written for all sessions
// together, `last_seen` too.
import { Failure } from '@hawser/contract/failures'
import type { Participant } from '@hawser/contract/sharing'
import type { SessionKey, SessionMethod, SessionPerson, SessionOrigin } from '@hawser/contract/sessions'
import { iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import { safeText } from '../../kit/log.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import { actorOf, actorOfPerson, theServer, type Audit, type AuditNote } from '../audit/audit.ts'
import type { SessionAudit, SessionEventLog, SessionEvents } from './session-events.ts'
import { personOf } from './persons.ts'
import type { SharingNote } from './sharing.ts'

export interface SessionStart {
  /** Made when the client connected; agents know the session by it, too. */
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly ip_address: string
  /** Who opened it, and how. */
  readonly person: SessionPerson
  readonly via: SessionOrigin
  readonly method: SessionMethod
  readonly key?: SessionKey | undefined
  readonly client: string
}

/** Whom an agent keeps a terminal for. */
export interface KeptFor {
  /** The MD5 fingerprint of the registered key that let them in; absent: it was a password. */
  readonly key?: string | undefined
  /** Of `standing` in revocation.ts, when the session began. */
  readonly standing: string
}

export interface LiveSession {
  readonly uid: string
  /** Takes what happens in it. */
  readonly events: SessionEventLog
  /** Writes what becomes known of the session while it runs. */
  note(change: {
    type?: 'shell' | 'exec' | 'subsystem'
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
    /** The agent keeps its terminal for so long when the server is lost, and for whom. */
    kept_s?: number
    kept_for?: KeptFor
  }): void
  /** It goes on without its client until then. */
  held(until: string): void
  /** Its person has it again, with another client at this address. */
  resumed(source: string, via: SessionOrigin): void
  /** These people are in its terminals beside its person. */
  shared(participants: readonly Participant[], notes: readonly SharingNote[]): void
  /** This server lets it go, while its agent keeps the terminal: its record stays open until then. */
  leave(held_until: string): void
  finish(): void
}

/** `none`: the session ended without a channel that runs something, such as one that only forwards ports. */
const sessionTypes = ['shell', 'exec', 'subsystem', 'none'] as const
export type SessionType = (typeof sessionTypes)[number]

export interface LiveSessions extends AsyncDisposable {
  /** Throws notFound when the device was removed or rejected a moment ago. */
  begin(start: SessionStart): Promise<LiveSession>
  /** The record of a session that began on a server which is gone. */
  adopt(row: SessionRow, lastEvent: number): LiveSession
  /** Sessions by what their first channel was for. */
  readonly types: Counter<SessionType>
  /** Marks the sessions of this node as active again, after another node closed them in the database. */
  revive(): Promise<void>
}

const touch_every_ms = 30_000
/** Changes of so long are written together. A session that is shorter has one for all that becomes of it. */
const collect_ms = 50
/** A session that no gateway has touched for so long is over. */
export const stale_ms = 5 * minute_ms
const batch = 500
const longest_term = 64
/** The participants of a session that only its person may come back to. */
export const nobodyElse = '[]'

type Change = Parameters<ReturnType<Stores['of']>['sessions']['save']>[1]

interface Entry {
  /** What the audit log says of it: who and what for. */
  readonly audited: SessionAudit
  /** The registration under which other nodes find the session. */
  readonly name: Disposable
  readonly tenant_id: string
  /** Whether the session is counted by its type. */
  typed: boolean
  /** What is not written yet. */
  change: Change | undefined
  /** Entries of the audit log that are not written yet. */
  notes: AuditNote[]
  /** Until when it goes on without its client; empty: it has one. */
  held_until: string
  /** The session has ended; the entry goes once that is written. */
  over: boolean
}

export interface LiveSessionParts {
  stores: Stores
  audit: Audit
  events: Pick<SessionEvents, 'of'>
  clock: Clock
  /** The id of this node; empty when there is only one. */
  node: string
  /** Lets other nodes find this node under the name. */
  register(name: string): Disposable
  onError: (error: unknown) => void
}

/**
 * Closes sessions that nobody has touched since this moment, with their entries in the audit log. Those whose
 * agents keep their terminals are held until the time for that is over.
 */
export async function closeLost(
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  { last_seen, now }: { readonly last_seen: string; readonly now: string },
): Promise<void> {
  for (let held = batch; held === batch;)
    held = await stores.transaction(async (inside) => {
      const rows = await inside.liveSessions.keptSince(last_seen, batch)
      for (const row of rows)
        await inside.of(row.tenant_id).sessions.save(row.uid, { held_until: keptUntil(row) })
      return rows.length
    })
  await closeOlder('all', { stores, audit }, { last_seen, now })
}

/** The same for those only whose agents kept their terminals, and whose time is over. */
export const closeKept = async (
  parts: Pick<LiveSessionParts, 'stores' | 'audit'>,
  moments: { readonly last_seen: string; readonly now: string },
): Promise<void> => closeOlder('kept', parts, moments)

async function closeOlder(
  which: 'all' | 'kept',
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  { last_seen, now }: { readonly last_seen: string; readonly now: string },
): Promise<void> {
  const why = {
    all: 'The server that had it stopped without closing it.',
    kept: 'Nobody came back to it in time.',
  }
  for (let closed = batch; closed === batch;)
    closed = await stores.transaction(async (inside) => {
      const rows = await inside.liveSessions.closeOlderThan(which, last_seen, now, batch)
      await audit.append(inside, rows.map(closedBecause(why[which])))
      return rows.length
    })
}

/** Writes off what a lost node had: its devices are offline, its sessions over, with their entries. */
export async function cleanUpAfter(
  { stores, audit }: Pick<LiveSessionParts, 'stores' | 'audit'>,
  lost: string,
): Promise<{ devices: number; sessions: number }> {
  return stores.transaction(async (inside) => {
    const { devices, sessions, kept } = await inside.nodes.cleanUp(lost)
    for (const row of kept)
      if (row.held_until === '')
        await inside.of(row.tenant_id).sessions.save(row.uid, { held_until: keptUntil(row) })
    await audit.append(inside, sessions.map(closedBecause('The node of the server that had it is lost.')))
    return { devices: devices.length, sessions: sessions.length }
  })
}

/** The server was there for the last time when it touched the session. */
export const keptUntil = ({ last_seen, kept_s }: Pick<SessionRow, 'last_seen' | 'kept_s'>): string =>
  iso(Date.parse(last_seen) + kept_s * second_ms)

/** The entry of a session that the server closes for its person. */
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

export function liveSessions({
  stores,
  audit,
  events,
  clock,
  node,
  register,
  onError,
}: LiveSessionParts): LiveSessions {
  const entries = new Map<string, Entry>()
  const types = new Counter(sessionTypes)
  const typed = (session: Entry | undefined, type: SessionType): void => {
    if (!session || session.typed) return
    session.typed = true
    types.add(type)
  }
  /** Sessions with a change that is not written. */
  const changed = new Set<string>()
  let collecting: NodeJS.Timeout | undefined
  /** Resolves when all writes so far are done: one runs at a time, each with the newest state. */
  let writing = Promise.resolve()

  /** Writes the changes of these sessions in one commit; they are kept if it fails. */
  async function write(uids: readonly string[]): Promise<void> {
    const changes = uids.flatMap((uid) => {
      const session = entries.get(uid)
      const change = session?.change
      changed.delete(uid)
      if (!session || !change) return []
      session.change = undefined
      return [{ uid, session, change, notes: session.notes.splice(0) }]
    })
    try {
      const save = async (inside: Pick<Stores, 'of'>): Promise<void> => {
        for (const { uid, session, change } of changes)
          await inside.of(session.tenant_id).sessions.saveOn(node, uid, change)
      }
      const ended = changes.flatMap(({ session: { audited }, change, notes }): AuditNote[] => {
        const { by, target, detail } = audited
        if (change.active !== 0) return notes
        return [...notes, { by, record: { action: 'session.closed', target, detail } }]
      })
      // One statement commits by itself.
      if (changes.length === 1 && ended.length === 0) await save(stores)
      else
        await stores.transaction(async (inside) => {
          await save(inside)
          await audit.append(inside, ended)
        })
      for (const { uid, session } of changes) if (session.over && !session.change) entries.delete(uid)
    } catch (error) {
      for (const { uid, session, change, notes } of changes) {
        session.change = { ...change, ...session.change }
        session.notes.unshift(...notes)
        changed.add(uid)
      }
      onError(error)
    }
  }

  async function writeChanged(): Promise<void> {
    const uids = [...changed]
    for (let start = 0; start < uids.length; start += batch) await write(uids.slice(start, start + batch))
  }

  const note = (uid: string, change: Change): void => {
    const session = entries.get(uid)
    if (!session) return
    session.change = { ...session.change, ...change }
    session.held_until = change.held_until ?? session.held_until
    changed.add(uid)
    collecting ??= setTimeout(writeSoon, collect_ms).unref()
  }

  function writeSoon(): void {
    clearTimeout(collecting)
    collecting = undefined
    writing = writing.then(writeChanged)
  }

  async function touch(): Promise<void> {
    await writeChanged()
    const alive = [...entries].flatMap(([uid, session]) => (session.over ? [] : [uid]))
    for (let start = 0; start < alive.length; start += batch)
      await stores.liveSessions.touch(alive.slice(start, start + batch), iso(clock.now()))
  }

  /** What becomes of a session from now on. */
  function entryOf({
    uid,
    tenant_id,
    person,
    audited,
    after = 0,
  }: Pick<SessionStart, 'uid' | 'tenant_id' | 'person'> & {
    readonly audited: SessionAudit
    /** The number of its last event. */
    readonly after?: number
  }): LiveSession {
    entries.set(uid, {
      audited,
      tenant_id,
      name: register(sessionName(uid)),
      typed: false,
      change: undefined,
      notes: [],
      held_until: '',
      over: false,
    })
    const log = events.of({ uid, ...audited, after })
    const finish = (change: Change): void => {
      const session = entries.get(uid)
      if (!session || session.over) return
      session.over = true
      log.end()
      typed(session, 'none')
      session.name[Symbol.dispose]()
      note(uid, change)
      // Whoever lists sessions next sees that this one is over.
      writeSoon()
    }
    return {
      uid,
      events: log,
      note({ term, kept_for, ...change }) {
        if (change.type) typed(entries.get(uid), change.type)
        note(uid, {
          ...change,
          ...(term === undefined ? {} : { term: safeText(term, longest_term - 1) }),
          ...(kept_for === undefined ? {} : { kept_for: JSON.stringify(kept_for) }),
        })
      },
      held(held_until) {
        const { target, detail } = audited
        entries.get(uid)?.notes.push({
          by: { ...theServer, tenant_id },
          record: { action: 'session.held', target, detail: { ...detail, held_until } },
        })
        note(uid, { held_until })
      },
      resumed(source, over) {
        const { target, detail } = audited
        entries.get(uid)?.notes.push({
          by: { ...actorOfPerson(person, source), tenant_id },
          record: { action: 'session.resumed', target, detail: { ...detail, via: over } },
        })
        note(uid, { held_until: '' })
      },
      shared(participants, notes) {
        const { target, detail } = audited
        for (const { action, by: who, detail: more } of notes)
          entries.get(uid)?.notes.push({
            by: who ? actorOf(who) : audited.by,
            record: { action, target, detail: { ...detail, ...more } },
          })
        note(uid, { participants: JSON.stringify(participants) })
      },
      leave: (held_until) => finish({ held_until, last_seen: iso(clock.now()), participants: nobodyElse }),
      finish: () => finish({ active: 0, last_seen: iso(clock.now()) }),
    }
  }

  const timer = setInterval(() => void (writing = writing.then(touch).catch(onError)), touch_every_ms)
  timer.unref()

  return {
    types,
    async begin({ uid, tenant_id, device_uid, username, ip_address, person, via, method, key, client }) {
      const now = iso(clock.now())
      const by = { ...actorOfPerson(person, ip_address), tenant_id }
      const audited = await audit.change(by, async (inside, record): Promise<SessionAudit> => {
        // The transaction keeps anybody from removing or rejecting the device between this look and the
        // insert.
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
          type: 'none',
          term: 'none',
          position: device.position,
          node,
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
        const about = {
          target: { kind: 'session', id: uid, name: username },
          detail: { device: device_uid, device_name: device.name, via, method, key: key?.fingerprint ?? '' },
        }
        record({ action: 'session.opened', ...about })
        return { by, ...about }
      })
      return entryOf({ uid, tenant_id, person, audited })
    },
    adopt(row, lastEvent) {
      const { uid, tenant_id, username, device_uid, ip_address, via, method } = row
      const person = personOf(row)
      const by = { ...actorOfPerson(person, ip_address), tenant_id }
      const audited = {
        by,
        target: { kind: 'session', id: uid, name: username },
        detail: { device: device_uid, via, method, key: row.key_fingerprint },
      }
      const session = entryOf({ uid, tenant_id, person, audited, after: lastEvent })
      // It was counted when it began.
      const entry = entries.get(uid)
      if (entry) entry.typed = true
      return session
    },
    async revive() {
      const alive = [...entries].flatMap(([uid, session]) => (session.over ? [] : [uid]))
      for (let start = 0; start < alive.length; start += batch)
        await stores.liveSessions.revive(alive.slice(start, start + batch), node, iso(clock.now()))
      // Whoever took this node for lost may have noted that they are held.
      for (const uid of alive) note(uid, { held_until: entries.get(uid)?.held_until ?? '' })
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      clearTimeout(collecting)
      await writing
      await writeChanged()
    },
  }
}
