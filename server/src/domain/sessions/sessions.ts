// Sessions as members see them, and the calls by which an agent reports on its own sessions.
import { Failure } from '@hawser/contract/failures'
import type { Frame, Session } from '@hawser/contract/sessions'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { PlayedFrame } from '../../recording/frames.ts'
import type { JournalName } from '../../recording/journal.ts'
import type { Recording, Recordings } from '../../recording/recordings.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import type { DeviceCaller, MemberCaller } from '../callers/callers.ts'
import type { DeviceView } from '../devices/device-view.ts'
import type { Rules } from '../callers/rules.ts'
import type { WatchTickets } from './watch-tickets.ts'

export interface SessionParts {
  stores: Stores
  view: DeviceView
  bus: Bus
  clock: Clock
  recordings: Recordings
  tickets: Pick<WatchTickets, 'give'>
  /** The asciicast of a session of which nothing was recorded. */
  emptyCast(started_ms: number): string
}

/** What the WebSocket endpoints ask beside the operations. */
export interface SessionWatching {
  /** The running recording of the session: of the newest channel, or of the one that is named. */
  watch(uid: string, channel: number | undefined, caller: MemberCaller): Promise<Recording>
}

export function sessions(parts: SessionParts): Rules<'sessions'> & SessionWatching {
  const { stores, view, bus, clock, recordings } = parts

  async function present(tenant_id: string, rows: readonly SessionRow[]): Promise<Session[]> {
    const uids = [...new Set(rows.map((row) => row.device_uid))]
    const devices = await view.many(tenant_id, await stores.of(tenant_id).devices.findMany(uids))
    const byUid = new Map(devices.map((device) => [device.uid, device]))
    return rows.flatMap((row) => {
      const device = byUid.get(row.device_uid)
      if (!device) return []
      return {
        ...row,
        device,
        active: row.active === 1,
        authenticated: row.authenticated === 1,
        recorded: row.recorded === 1,
        unrecorded: row.unrecorded === 1,
        position: JSON.parse(row.position) as Session['position'],
      }
    })
  }

  /** The session, in the caller's namespace; a device sees only its own. */
  async function mustFind(uid: string, caller: MemberCaller | DeviceCaller): Promise<SessionRow> {
    const row = await stores.of(caller.tenant_id).sessions.find(uid)
    if (!row || (caller.kind === 'device' && row.device_uid !== caller.uid)) throw new Failure('notFound')
    return row
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).sessions.list(query)
      return { items: await present(tenant_id, items), total }
    },
    async get({ params }, caller) {
      const [session] = await present(caller.tenant_id, [await mustFind(params.uid, caller)])
      if (!session) throw new Failure('notFound')
      return session
    },
    async setAuthenticated({ params, body }, caller) {
      await mustFind(params.uid, caller)
      if (body.authenticated !== undefined)
        await stores
          .of(caller.tenant_id)
          .sessions.save(params.uid, { authenticated: body.authenticated ? 1 : 0 })
    },
    async play({ params }, caller) {
      await mustFind(params.uid, caller)
      const { tenant_id } = caller
      return played(await recordings.channels(tenant_id, params.uid))
    },
    async ticket({ params }, caller) {
      await mustFind(params.uid, caller)
      return { token: parts.tickets.give(caller, params.uid) }
    },
    async cast({ params, query }, caller) {
      const { started_at } = await mustFind(params.uid, caller)
      const channels = await recordings.channels(caller.tenant_id, params.uid)
      const one =
        query.channel === undefined ? channels[0] : channels.find(({ channel }) => channel === query.channel)
      if (!one && query.channel !== undefined)
        throw new Failure('notFound', { message: 'The session has no such recorded terminal.' })
      return {
        answer: one ? recordings.cast(one) : nothing(parts.emptyCast(Date.parse(started_at))),
        headers: { 'content-disposition': `attachment; filename="${params.uid.slice(0, 12)}.cast"` },
      }
    },
    async watch(uid, channel, caller) {
      await mustFind(uid, caller)
      const going = recordings.live(caller.tenant_id, uid)
      const one = channel === undefined ? going.at(-1) : going.find(({ name }) => name.channel === channel)
      if (!one) throw new Failure('notFound', { message: 'Nothing of this session is being recorded now.' })
      return one
    },
    async close({ params, body }, caller) {
      const session = await mustFind(params.uid, caller)
      if (session.device_uid !== body.device) throw new Failure('notFound')
      const { tenant_id } = caller
      if (session.active === 1)
        await stores.of(tenant_id).sessions.save(params.uid, { active: 0, last_seen: iso(clock.now()) })
      bus.tell('session.closed', { tenant_id, uid: params.uid })
    },
    async record({ params, body }, caller) {
      if (body.uid !== params.uid)
        throw new Failure('unprocessable', { message: 'uid: the path names another session' })
      const { device_uid, username, term, recorded } = await mustFind(params.uid, caller)
      const { tenant_id } = caller
      if ((await stores.namespaces.find(tenant_id))?.session_record !== 1) return
      // The session is marked as recorded first, so that a removal always finds the recording.
      if (recorded === 0) await stores.of(tenant_id).sessions.save(params.uid, { recorded: 1 })
      const { message, width, height } = body
      const about = { tenant_id, session_uid: params.uid, device_uid, username, term }
      await recordings.post(about, { message, width, height }).catch((cause: unknown) => {
        throw isFull(cause)
          ? new Failure('unavailable', { message: 'The disk of the server is full.', cause })
          : cause
      })
    },
    async removeRecording({ params }, caller) {
      await mustFind(params.uid, caller)
      const { tenant_id } = caller
      if (recordings.live(tenant_id, params.uid).length > 0)
        throw new Failure('conflict', { message: 'The session is still being recorded; close it before.' })
      await recordings.remove(tenant_id, params.uid)
      await stores.of(tenant_id).sessions.save(params.uid, { recorded: 0 })
    },
  }

  async function* played(names: readonly JournalName[]): AsyncGenerator<Frame> {
    for (const name of names) for await (const frame of recordings.frames(name)) yield frameOf(name, frame)
  }
}

const frameOf = ({ session_uid, tenant_id }: JournalName, frame: PlayedFrame): Frame => ({
  uid: session_uid,
  tenant_id,
  ...frame,
})

async function* nothing(text: string): AsyncGenerator<string> {
  yield text
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
