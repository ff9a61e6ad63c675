// The record of a session while it runs. It is created when a user is authenticated on a device, never
// before, and ends with the connection whatever happens: changes that failed while the database was
// unreachable are written when it is back, and the sweeps close sessions that a crash left open. A commit waits
// for the disk, and on SQLite everybody waits with it. So a login commits once, before the user gets in; what
// becomes known after that is collected for a moment and written for all sessions together, `last_seen` too.
import { Failure } from '@hawser/contract/failures'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Stores } from '../../storage/stores.ts'

export interface SessionStart {
  /** Made when the client connected; agents know the session by it, too. */
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly ip_address: string
}

export interface LiveSession {
  readonly uid: string
  /** Writes what becomes known of the session while it runs. */
  note(change: { type?: 'shell' | 'exec' | 'subsystem'; term?: string; recorded?: 1; unrecorded?: 1 }): void
  finish(): void
}

/** `none`: the session ended without a channel that runs something, such as one that only forwards ports. */
const sessionTypes = ['shell', 'exec', 'subsystem', 'none'] as const
export type SessionType = (typeof sessionTypes)[number]

export interface LiveSessions extends AsyncDisposable {
  /** Throws notFound when the device was removed or rejected a moment ago. */
  begin(start: SessionStart): Promise<LiveSession>
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

type Change = Parameters<ReturnType<Stores['of']>['sessions']['save']>[1]

interface Entry {
  /** The registration under which other nodes find the session. */
  readonly name: Disposable
  readonly tenant_id: string
  /** Whether the session is counted by its type. */
  typed: boolean
  /** What is not written yet. */
  change: Change | undefined
  /** The session has ended; the entry goes once that is written. */
  over: boolean
}

export interface LiveSessionParts {
  stores: Stores
  clock: Clock
  /** The id of this node; empty when there is only one. */
  node: string
  /** Lets other nodes find this node under the name. */
  register(name: string): Disposable
  onError: (error: unknown) => void
}

export const sessionName = (uid: string): string => `session.${uid}`

export function liveSessions({ stores, clock, node, register, onError }: LiveSessionParts): LiveSessions {
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
      return [{ uid, session, change }]
    })
    try {
      const save = async (inside: Pick<Stores, 'of'>): Promise<void> => {
        for (const { uid, session, change } of changes)
          await inside.of(session.tenant_id).sessions.save(uid, change)
      }
      // One statement commits by itself.
      await (changes.length > 1 ? stores.transaction(save) : save(stores))
      for (const { uid, session } of changes) if (session.over && !session.change) entries.delete(uid)
    } catch (error) {
      for (const { uid, session, change } of changes) {
        session.change = { ...change, ...session.change }
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

  const timer = setInterval(() => void (writing = writing.then(touch).catch(onError)), touch_every_ms)
  timer.unref()

  return {
    types,
    async begin({ uid, tenant_id, device_uid, username, ip_address }) {
      const now = iso(clock.now())
      await stores.transaction(async (inside) => {
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
        })
      })
      entries.set(uid, {
        tenant_id,
        name: register(sessionName(uid)),
        typed: false,
        change: undefined,
        over: false,
      })
      return {
        uid,
        note({ term, ...change }) {
          if (change.type) typed(entries.get(uid), change.type)
          note(uid, { ...change, ...(term === undefined ? {} : { term: term.slice(0, longest_term) }) })
        },
        finish() {
          const session = entries.get(uid)
          if (!session || session.over) return
          session.over = true
          typed(session, 'none')
          session.name[Symbol.dispose]()
          note(uid, { active: 0, last_seen: iso(clock.now()) })
          // Whoever lists sessions next sees that this one is over.
          writeSoon()
        },
      }
    },
    async revive() {
      const alive = [...entries].flatMap(([uid, session]) => (session.over ? [] : [uid]))
      for (let start = 0; start < alive.length; start += batch)
        await stores.liveSessions.revive(alive.slice(start, start + batch), node, iso(clock.now()))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      clearTimeout(collecting)
      await writing
      await writeChanged()
    },
  }
}
