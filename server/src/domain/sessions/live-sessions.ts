// The record of a session while it goes on. It is made when somebody is authenticated on a device, never
// before, and ends with the connection whatever happens: what could not be written because the database was
// away is written when it is back, and what a crash left open is closed by the sweeps. The time of the last
// sign is written for all sessions together.
import { Failure } from '@hawser/contract/failures'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'

export interface SessionStart {
  /** Made when the connection came; agents know the session by it, too. */
  readonly uid: string
  readonly tenant_id: string
  readonly device_uid: string
  readonly username: string
  readonly ip_address: string
}

export interface LiveSession {
  readonly uid: string
  /** What is known of it only later. */
  note(change: { type?: 'shell' | 'exec' | 'subsystem'; term?: string; recorded?: 1; unrecorded?: 1 }): void
  finish(): void
}

export interface LiveSessions extends AsyncDisposable {
  /** Throws notFound when the device has just left. */
  begin(start: SessionStart): Promise<LiveSession>
  /** They were written off although they go on. */
  revive(): Promise<void>
}

const touch_every_ms = 30_000
/** A session that was not touched for so long has no gateway any more. */
export const stale_ms = 5 * minute_ms
const batch = 500
const longest_term = 64

type Change = Parameters<ReturnType<Stores['of']>['sessions']['save']>[1]

interface Held {
  readonly name: Disposable
  readonly tenant_id: string
  change: Change | undefined
  over: boolean
}

export interface LiveSessionParts {
  stores: Stores
  clock: Clock
  /** Where they go on; empty when there is one node only. */
  node: string
  /** Lets other nodes find what is here under this name. */
  hold(name: string): Disposable
  onError: (error: unknown) => void
}

export const sessionName = (uid: string): string => `session.${uid}`

export function liveSessions({ stores, clock, node, hold, onError }: LiveSessionParts): LiveSessions {
  const held = new Map<string, Held>()
  /** Those with something to write; one write at a time for each, the newest state. */
  let writing = Promise.resolve()

  async function write(uid: string): Promise<void> {
    const session = held.get(uid)
    const change = session?.change
    if (!session || !change) return
    session.change = undefined
    try {
      await stores.of(session.tenant_id).sessions.save(uid, change)
      if (session.over && !session.change) held.delete(uid)
    } catch (error) {
      session.change = { ...change, ...(session.change as Change | undefined) }
      onError(error)
    }
  }

  const note = (uid: string, change: Change): void => {
    const session = held.get(uid)
    if (!session) return
    session.change = { ...session.change, ...change }
    writing = writing.then(() => write(uid))
  }

  async function touch(): Promise<void> {
    for (const [uid, session] of held) if (session.change) await write(uid)
    const alive = [...held].flatMap(([uid, session]) => (session.over ? [] : [uid]))
    for (let start = 0; start < alive.length; start += batch)
      await stores.liveSessions.touch(alive.slice(start, start + batch), iso(clock.now()))
  }

  const timer = setInterval(() => void (writing = writing.then(touch).catch(onError)), touch_every_ms)
  timer.unref()

  return {
    async begin({ uid, tenant_id, device_uid, username, ip_address }) {
      const now = iso(clock.now())
      await stores.transaction(async (inside) => {
        // Held until the end, so that nobody removes or rejects it between this look and the insert.
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
      held.set(uid, { tenant_id, name: hold(sessionName(uid)), change: undefined, over: false })
      return {
        uid,
        note: ({ term, ...change }) =>
          note(uid, { ...change, ...(term === undefined ? {} : { term: term.slice(0, longest_term) }) }),
        finish() {
          const session = held.get(uid)
          if (!session || session.over) return
          session.over = true
          session.name[Symbol.dispose]()
          note(uid, { active: 0, last_seen: iso(clock.now()) })
        },
      }
    },
    async revive() {
      const alive = [...held].flatMap(([uid, session]) => (session.over ? [] : [uid]))
      for (let start = 0; start < alive.length; start += batch)
        await stores.liveSessions.revive(alive.slice(start, start + batch), node, iso(clock.now()))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await writing
      for (const uid of held.keys()) await write(uid)
    },
  }
}
