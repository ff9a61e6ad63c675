// What happened to devices, for the people who ask why one is offline. Events come from tunnels, from agents'
// reports and from members; they are written in batches, a second late at most. A device that connects and
// disconnects all the time must not fill or slow anything: of its events so many a minute are kept, the others are
// counted, and the newest of them is kept at the end of the minute, so that the last word is right. The database
// keeps `timelineEvents_most` of each device: whoever has a device's token can neither push out what happened in the
// day before, nor changes of version, conflicts and what members did.
import type { ConnectionReport, DeviceReport } from '@hawser/contract/reports'
import type { Sentence } from '@hawser/contract/sentences'
import { timelineEvents_most, type TimelineEvent } from '@hawser/contract/timeline'
import { iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'
import type { DeviceEvent, KeptEvents } from '../../storage/device-events.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import { present, whyOffline, type DeviceHappening, type PastHappening } from './timeline-view.ts'

export interface TimelineParts {
  stores: Stores
  clock: Clock
  onError(error: unknown): void
  /** So many events were lost, because the database was away for long. */
  onDropped(events: number): void
}

export interface Timeline extends AsyncDisposable {
  /** Something happened to the device, and is written soon. */
  note(uid: string, happening: DeviceHappening): void
  /** Notes what of an agent's report is about its connection. */
  heard(uid: string, report: DeviceReport): void
  /** Newest first. */
  of(tenant_id: string, uid: string, most: number): Promise<TimelineEvent[]>
  /** Why the device is offline; undefined: nothing is known about that. */
  offlineReason(device: Pick<DeviceRow, 'tenant_id' | 'uid'>): Promise<Sentence | undefined>
  /** Writes what waits; also done every second. */
  flush(): Promise<void>
}

/** What a device did in a minute. */
interface Minute {
  readonly ends_at: number
  kept: number
  /** Events that were not kept. */
  held: number
  /** The last of them that says whether the device has a tunnel. */
  last: DeviceEvent | undefined
}

const flush_every_ms = second_ms
const mostPerMinute = 12
/** Events in one statement, and statements in one flush: after a restart all devices come at once. */
const batch = 500
const mostBatches = 4
/** Events that wait for the database. */
const mostPending = 20_000
/** How often a batch is tried again that met another node's. */
const tries = 5
/** So many events decide why a device is offline. */
const latest = 20

/** What members do is limited by the calls that they make, and a conflict is noted once in fifteen minutes. */
const isRare = ({ kind }: DeviceHappening): boolean =>
  kind === 'status' || kind === 'renamed' || kind === 'conflict'

const ofKind = 25
const hours = 25
const ownEvents_most = timelineEvents_most - 4 * ofKind

/** A hundred places are for four sorts: changes of version, conflicts, states and names. */
const kept: KeptEvents = {
  own: [
    'up',
    'down',
    'refused',
    'round-trip',
    'said',
    'leaving',
    'flapping',
    'followed-status',
    'followed-name',
  ] satisfies DeviceHappening['kind'][],
  own_most: ownEvents_most,
  own_eachEndOfHour: ownEvents_most / hours / 2,
  kind_most: ofKind,
}

export function timeline({ stores, clock, onError, onDropped }: TimelineParts): Timeline {
  let pending: DeviceEvent[] = []
  const minutes = new Map<string, Minute>()
  let dropped = 0
  let writing = Promise.resolve()

  function add(...events: DeviceEvent[]): void {
    pending.push(...events)
    if (pending.length <= mostPending) return
    dropped += pending.length - mostPending
    pending = pending.slice(-mostPending)
  }

  /** Ends the minutes that are over. */
  function settle(all: boolean): void {
    const now = clock.now()
    for (const [uid, minute] of minutes) {
      if (!all && minute.ends_at > now) continue
      minutes.delete(uid)
      const { held, last } = minute
      const times = held - (last ? 1 : 0)
      if (times > 0) add(eventOf(uid, { kind: 'flapping', times }, last?.at ?? iso(now)))
      if (last) add(last)
    }
  }

  function note(uid: string, happening: DeviceHappening): void {
    const event = eventOf(uid, happening, iso(clock.now()))
    if (isRare(happening)) return add(event)
    const minute = minutes.get(uid) ?? { ends_at: clock.now() + minute_ms, kept: 0, held: 0, last: undefined }
    minutes.set(uid, minute)
    if (minute.kept < mostPerMinute) {
      minute.kept += 1
      return add(event)
    }
    minute.held += 1
    if (happening.kind === 'up' || happening.kind === 'down') minute.last = event
  }

  async function write(events: readonly DeviceEvent[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await stores.deviceEvents.add(events, kept)
      } catch (error) {
        if (attempt === tries || !stores.isDuplicate(error)) throw error
      }
  }

  async function writePending(most: number): Promise<void> {
    for (let done = 0; done < most && pending.length > 0; done += 1) {
      const events = pending.slice(0, batch)
      pending = pending.slice(batch)
      try {
        await write(events)
      } catch (error) {
        // The database is away: they wait for the next flush.
        pending = [...events, ...pending]
        add()
        throw error
      }
    }
    if (dropped === 0) return
    onDropped(dropped)
    dropped = 0
  }

  /** One write after the other. */
  function flush(all = false): Promise<void> {
    settle(all)
    const next = writing.then(() => writePending(all ? Infinity : mostBatches))
    writing = next.catch(() => undefined)
    return next
  }

  /** Newest first, with what is not written yet. */
  async function read(tenant_id: string, uid: string, most: number): Promise<PastHappening[]> {
    const waiting = () => pending.filter((event) => event.uid === uid)
    const before = waiting()
    const rows = await stores.of(tenant_id).timeline.newest(uid, most)
    // What was written meanwhile is in the rows, or is read by the next who asks.
    const unwritten = waiting().filter((event) => before.includes(event))
    const last = minutes.get(uid)?.last
    return [...(last ? [last] : []), ...unwritten.toReversed(), ...rows].slice(0, most).map(happeningOf)
  }

  const timer = setInterval(() => {
    if (pending.length + minutes.size > 0) void flush().catch(onError)
  }, flush_every_ms)
  timer.unref()

  return {
    note,
    heard(uid, { connection, leaving }) {
      if (connection) note(uid, saidIn(connection, clock.now()))
      if (leaving) note(uid, { kind: 'leaving', why: leaving })
    },
    flush: () => flush(),
    async of(tenant_id, uid, most) {
      return present(await read(tenant_id, uid, timelineEvents_most)).slice(0, most)
    },
    async offlineReason({ tenant_id, uid }) {
      return whyOffline(await read(tenant_id, uid, latest))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await flush(true).catch(onError)
    },
  }
}

/** The device may say anything of itself: what it says is short, and in the past of the server's clock. */
function saidIn({ boot_id, uptime_s, clock_ms, lost }: ConnectionReport, now: number): DeviceHappening {
  const ago = (seconds: number): string => iso(Math.max(0, now - seconds * second_ms))
  return {
    kind: 'said',
    ...(boot_id === undefined ? {} : { boot_id: safeText(boot_id) }),
    ...(uptime_s === undefined ? {} : { started_at: ago(uptime_s) }),
    ...(clock_ms === undefined ? {} : { ahead_s: Math.round((clock_ms - now) / second_ms) }),
    ...(lost ? { lost: { why: safeText(lost.why), at: ago(lost.ago_s) } } : {}),
  }
}

const eventOf = (uid: string, { kind, ...detail }: DeviceHappening, at: string): DeviceEvent => ({
  uid,
  at,
  kind,
  detail: JSON.stringify(detail),
})

const happeningOf = ({ at, kind, detail }: Omit<DeviceEvent, 'uid'>): PastHappening =>
  ({ ...(JSON.parse(detail) as object), kind, at }) as PastHappening
