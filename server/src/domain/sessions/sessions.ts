// Sessions as members see them, and the calls by which an agent reports on its own sessions.
import { Failure } from '@hawser/contract/failures'
import type { SessionEvent } from '@hawser/contract/session-events'
import { rank } from '@hawser/contract/access'
import type { Frame, Session, WebTraffic } from '@hawser/contract/sessions'
import type { Participant } from '@hawser/contract/sharing'
import { iso } from '../../kit/clock.ts'
import type { PlayedFrame } from '../../recording/frames.ts'
import type { JournalName } from '../../recording/journal.ts'
import type { Recording, Recordings } from '../../recording/recordings.ts'
import type { SessionEventRow } from '../../storage/session-events.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import type { DeviceCaller, MemberCaller } from '../callers/callers.ts'
import { spanOf } from '../access/moments.ts'
import type { DeviceView } from '../devices/device-view.ts'
import type { Rules } from '../callers/rules.ts'
import { personIds, personOf } from './persons.ts'
import type { Visits } from './visits.ts'
import type { WatchTickets } from './watch-tickets.ts'

export interface SessionParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  view: DeviceView
  recordings: Recordings
  tickets: Pick<WatchTickets, 'give'>
  /** Whether the device has a tunnel, on any node. Throws when that is unknown. */
  isConnected(uid: string): Promise<boolean>
  /** Whether a used-up data budget prevents recordings on the device. */
  stopsRecordings(tenant_id: string, device_uid: string): Promise<boolean>
  emptyCast(started_ms: number): string
  visits: Visits
}

/** A running recording; its viewer counts as present until this is disposed. */
export interface Watched extends Disposable {
  readonly recording: Recording
}

/** For the WebSocket endpoints. */
export interface SessionWatching {
  /** Opens the recording of this channel, by default the newest. */
  watch(uid: string, channel: number | undefined, caller: MemberCaller): Promise<Watched>
  /** For somebody who is shown nothing before the person of the session allows it. */
  find(uid: string, channel: number | undefined, caller: MemberCaller): Promise<Recording>
  /** Whether somebody may type without the person's consent. */
  needsNoConsent(uid: string, caller: MemberCaller): Promise<boolean>
}

type Verbs = Exclude<keyof Rules<'sessions'>, 'invite' | 'invitations' | 'uninvite' | 'acceptInvitation'>

type Recorded = 'play' | 'cast' | 'record' | 'removeRecording' | 'setAuthenticated'

export const sessions = (parts: SessionParts): Pick<Rules<'sessions'>, Verbs> & SessionWatching => ({
  ...listedSessions(parts),
  ...recordedSessions(parts),
  ...watchedSessions(parts),
})

function listedSessions(parts: SessionParts): Pick<Rules<'sessions'>, Exclude<Verbs, Recorded>> {
  const { stores, audit, bus, clock } = parts
  return {
    async list({ query }, { tenant_id }) {
      const { person, from, to, ...rest } = query
      const span = spanOf({ from, to })
      const persons = person === undefined ? undefined : await personIds(stores, person)
      const { items, total } = await stores.of(tenant_id).sessions.list({ ...rest, ...span, persons })
      return { items: await present(parts, tenant_id, items), total }
    },
    async get({ params }, caller) {
      const [session] = await present(parts, caller.tenant_id, [await mustFind(stores, params.uid, caller)])
      if (!session) throw new Failure('notFound')
      return session
    },
    async events({ params, query }, caller) {
      await mustFind(stores, params.uid, caller)
      const { limit, after = 0 } = query
      const rows = await stores.of(caller.tenant_id).sessionEvents.list(params.uid, after, limit)
      const last = rows.at(-1)
      return { events: rows.map(eventOf), next: last && rows.length === limit ? last.seq : null }
    },
    async ticket({ params }, caller) {
      await mustFind(stores, params.uid, caller)
      return { token: parts.tickets.give(caller, params.uid, 'watch') }
    },
    async join({ params }, caller) {
      await mustFind(stores, params.uid, caller)
      return { token: parts.tickets.give(caller, params.uid, 'join') }
    },
    async close({ params, body }, caller) {
      const session = await mustFind(stores, params.uid, caller)
      if (session.device_uid !== body.device) throw new Failure('notFound')
      const { tenant_id } = caller
      if (session.active === 1)
        await audit.change(caller, async (inside, record) => {
          await inside.of(tenant_id).sessions.save(params.uid, { active: 0, last_seen: iso(clock.now()) })
          record({ action: 'session.terminated', ...recordingOf(session) })
        })
      bus.tell('session.closed', { tenant_id, uid: params.uid })
    },
  }
}

function recordedSessions(parts: SessionParts): Pick<Rules<'sessions'>, Recorded> {
  const { stores, audit, clock, recordings } = parts
  return {
    async play({ params }, caller) {
      const session = await mustFind(stores, params.uid, caller)
      const channels = await recordings.channels(caller.tenant_id, params.uid)
      if (channels.length > 0)
        await audit.eventOnce(caller, { action: 'recording.played', ...recordingOf(session) })
      return played(recordings, channels)
    },

    async cast({ params, query }, caller) {
      const session = await mustFind(stores, params.uid, caller)
      const channels = await recordings.channels(caller.tenant_id, params.uid)
      const one =
        query.channel === undefined ? channels[0] : channels.find(({ channel }) => channel === query.channel)
      if (!one && query.channel !== undefined)
        throw new Failure('notFound', { message: 'The session has no such recorded terminal.' })
      if (one)
        await audit.change(caller, async (_, record) =>
          record({ action: 'recording.downloaded', ...recordingOf(session) }),
        )
      return {
        answer: one ? recordings.cast(one) : nothing(parts.emptyCast(Date.parse(session.started_at))),
        headers: { 'content-disposition': `attachment; filename="${params.uid.slice(0, 12)}.cast"` },
      }
    },

    async record({ params, body }, caller) {
      if (body.uid !== params.uid)
        throw new Failure('unprocessable', { message: 'uid: the path names another session' })
      const { device_uid, username, term, recorded } = await mustReport(parts, params.uid, caller)
      const { tenant_id } = caller
      if ((await stores.namespaces.find(tenant_id))?.session_record !== 1) return
      if (await parts.stopsRecordings(tenant_id, device_uid)) return
      // The session is marked as recorded first, so that a removal always finds the recording.
      if (recorded === 0)
        await stores
          .of(tenant_id)
          .sessions.save(params.uid, { recorded: 1, posted: 1, index_at: iso(clock.now()) })
      const { message, width, height } = body
      const about = { tenant_id, session_uid: params.uid, device_uid, username, term }
      await recordings.post(about, { message, width, height }).catch((cause: unknown) => {
        throw isFull(cause)
          ? new Failure('unavailable', { message: 'The disk of the server is full.', cause })
          : cause
      })
    },

    async removeRecording({ params }, caller) {
      const session = await mustFind(stores, params.uid, caller)
      const { tenant_id } = caller
      if (recordings.live(tenant_id, params.uid).length > 0)
        throw new Failure('conflict', { message: 'The session is still being recorded; close it before.' })
      // The entry first: deleting files is not transactional, and no recording may go without its entry. A
      // sweep removes files that a crash leaves.
      await audit.change(caller, async (inside, record) => {
        await inside.of(tenant_id).sessions.save(params.uid, { recorded: 0, index_at: null })
        await inside.recordings.reject([{ tenant_id, uid: params.uid }])
        if (session.recorded === 1) record({ action: 'recording.removed', ...recordingOf(session) })
      })
      await recordings.remove(tenant_id, params.uid)
      await stores.recordings.forget(params.uid)
    },

    async setAuthenticated({ params, body }, caller) {
      await mustReport(parts, params.uid, caller)
      if (body.authenticated !== undefined)
        await stores
          .of(caller.tenant_id)
          .sessions.save(params.uid, { authenticated: body.authenticated ? 1 : 0 })
    },
  }
}

function watchedSessions(parts: SessionParts): SessionWatching {
  const { stores, recordings } = parts
  return {
    async watch(uid, channel, caller) {
      const session = await mustFind(stores, uid, caller)
      const recording = going(recordings, uid, channel, caller)
      const view = parts.visits.begin(uid, caller, recordingOf(session))
      try {
        await view.written
      } catch (error) {
        view[Symbol.dispose]()
        throw error
      }
      return { recording, [Symbol.dispose]: () => view[Symbol.dispose]() }
    },

    async find(uid, channel, caller) {
      await mustFind(stores, uid, caller)
      return going(recordings, uid, channel, caller)
    },

    async needsNoConsent(uid, caller) {
      const { person_kind, person_id } = await mustFind(stores, uid, caller)
      if (caller.kind === 'user' && person_kind === 'user' && person_id === caller.id) return true
      if (rank(caller.role) < rank('administrator')) return false
      return (await stores.namespaces.find(caller.tenant_id))?.join_without_consent === 1
    },
  }
}

async function present(
  { stores, view }: SessionParts,
  tenant_id: string,
  rows: readonly SessionRow[],
): Promise<Session[]> {
  const uids = [...new Set(rows.map((row) => row.device_uid))]
  const devices = await view.many(tenant_id, await stores.of(tenant_id).devices.findMany(uids))
  const byUid = new Map(devices.map((device) => [device.uid, device]))
  return rows.flatMap(({ held_until, resumes, participants, web, ...row }) => {
    const device = byUid.get(row.device_uid)
    if (!device) return []
    return {
      ...row,
      device,
      active: row.active === 1,
      authenticated: row.authenticated === 1,
      recorded: row.recorded === 1,
      secrets_masked: row.secrets_masked,
      unrecorded: row.unrecorded === 1,
      position: JSON.parse(row.position) as Session['position'],
      person: personOf(row),
      held: isHeld({ active: row.active, held_until }),
      ...(isHeld({ active: row.active, held_until }) ? { held_until } : {}),
      ...(resumes === '' ? {} : { resumes }),
      ...(web === '' ? {} : { web: JSON.parse(web) as WebTraffic }),
      ...(row.active === 0 || participants === '[]'
        ? {}
        : { participants: JSON.parse(participants) as Participant[] }),
      ...(row.key_fingerprint === ''
        ? {}
        : { key: { fingerprint: row.key_fingerprint, name: row.key_name } }),
    }
  })
}

/** A device sees only its own sessions. */
async function mustFind(
  stores: Stores,
  uid: string,
  caller: MemberCaller | DeviceCaller,
): Promise<SessionRow> {
  const row = await stores.of(caller.tenant_id).sessions.find(uid)
  if (!row || (caller.kind === 'device' && row.device_uid !== caller.uid)) throw new Failure('notFound')
  return row
}

/**
 * The session for a call that reports on it. A device reports on live sessions of its own tunnel, with the
 * token that has proved its key there, and never on those that the gateway records itself.
 */
async function mustReport(
  parts: SessionParts,
  uid: string,
  caller: MemberCaller | DeviceCaller,
): Promise<SessionRow> {
  const row = await mustFind(parts.stores, uid, caller)
  if (caller.kind !== 'device') return row
  if (!caller.proved || row.active === 0 || !(await parts.isConnected(caller.uid)))
    throw new Failure('notFound')
  const isOurs = row.recorded === 1 && row.posted === 0
  if (isOurs || parts.recordings.live(caller.tenant_id, uid).length > 0)
    throw new Failure('conflict', { message: 'The gateway records this session itself.' })
  return row
}

function going(
  recordings: Recordings,
  uid: string,
  channel: number | undefined,
  { tenant_id }: MemberCaller,
): Recording {
  const all = recordings.live(tenant_id, uid)
  const one = channel === undefined ? all.at(-1) : all.find(({ name }) => name.channel === channel)
  if (!one) throw new Failure('notFound', { message: 'Nothing of this session is being recorded now.' })
  return one
}

async function* played(recordings: Recordings, names: readonly JournalName[]): AsyncGenerator<Frame> {
  for (const name of names) for await (const frame of recordings.frames(name)) yield frameOf(name, frame)
}

const isHeld = ({ active, held_until }: Pick<SessionRow, 'active' | 'held_until'>): boolean =>
  active === 1 && held_until !== ''

const eventOf = (row: SessionEventRow): SessionEvent => ({
  seq: row.seq,
  at: row.at,
  kind: row.kind as SessionEvent['kind'],
  subject: row.subject,
  outcome: row.outcome as SessionEvent['outcome'],
  received: row.received,
  sent: row.sent,
  ...(row.target === '' ? {} : { target: row.target }),
  ...(row.sha256 === '' ? {} : { sha256: row.sha256 }),
  ...(row.why === '' ? {} : { why: row.why }),
})

const recordingOf = ({ uid, username, device_uid, started_at, ip_address }: SessionRow) => ({
  target: { kind: 'session', id: uid, name: username },
  detail: { device: device_uid, started_at, ip_address },
})

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
