// The timeline of devices, for people who ask why one is offline. Events come from tunnels, agents' reports
// and members and are written in batches, at most a second late. A device that reconnects all the time must
// not fill or slow anything: a few of its events a minute are stored, others counted, and the minute's newest
// is stored at its end, so that the last word is right. The database has `timelineEvents_most` of each
// device; the holder of a device's token can push out neither the day before, nor changes of version,
// conflicts and members' actions.
import { defined } from '@hawser/contract/defined'
import type { ConnectionReport, DeviceReport } from '@hawser/contract/reports'
import type { Sentence } from '@hawser/contract/sentences'
import { timelineEvents_most, type TimelineEvent } from '@hawser/contract/timeline'
import { iso, minute_ms, second_ms } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { DeviceEvent, KeptEvents } from '../../storage/device-events.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { ClosedTunnel } from '../../tunnel/registry.ts'
import type { With } from '../audit/parts.ts'
import { present, whyOffline, type DeviceHappening, type PastHappening } from './timeline-view.ts'

export interface Timeline extends AsyncDisposable {
  note(uid: string, happening: DeviceHappening): void
  /** `heard_at`: when a silent device was last heard. */
  tunnelEnded(uid: string, closed: ClosedTunnel, heard_at: number | undefined): void
  /** Notes what a report says about its connection. */
  heard(uid: string, report: DeviceReport): void
  /** Newest first. */
  of(tenant_id: string, uid: string, most: number): Promise<TimelineEvent[]>
  /** Undefined: unknown. */
  offlineReason(device: Pick<DeviceRow, 'tenant_id' | 'uid'>): Promise<Sentence | undefined>
  /** One attempt to write what waits; also made every second. */
  flush(): Promise<void>
}

interface Minute {
  readonly ends_at: number
  kept: number
  held: number
  /** The last event that says whether the device has a tunnel. */
  last: DeviceEvent | undefined
}

const flush_every_ms = second_ms
const mostPerMinute = 12
/** Per statement, with several in a flush: after a restart all devices come at once. */
const batch = 500
const mostBatches = 4
const mostPending = 20_000
/** For a batch that collided with another node's. */
const tries = 5
/** Why a device is offline is found among this many events. */
const latest = 20

/** The limits on calls bound members' actions, and a conflict is noted once in fifteen minutes. */
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

export function timeline({ stores, clock, ...report }: WriteReport & With<'stores' | 'clock'>): Timeline {
  const waiting = new WriteBehind<DeviceEvent>({
    ...report,
    delay_ms: flush_every_ms,
    most: mostPending,
    batch,
    batches: mostBatches,
    write,
  })
  const minutes = new Map<string, Minute>()

  function settle(all: boolean): void {
    const now = clock.now()
    for (const [uid, minute] of minutes) {
      if (!all && minute.ends_at > now) continue
      minutes.delete(uid)
      const { held, last } = minute
      const times = held - (last ? 1 : 0)
      if (times > 0) waiting.add(eventOf(uid, { kind: 'flapping', times }, last?.at ?? iso(now)))
      if (last) waiting.add(last)
    }
  }

  function note(uid: string, happening: DeviceHappening): void {
    const event = eventOf(uid, happening, iso(clock.now()))
    if (isRare(happening)) return waiting.add(event)
    const minute = minutes.get(uid) ?? { ends_at: clock.now() + minute_ms, kept: 0, held: 0, last: undefined }
    minutes.set(uid, minute)
    if (minute.kept < mostPerMinute) {
      minute.kept += 1
      return waiting.add(event)
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

  /** Newest first, with what is not written yet. */
  async function read(tenant_id: string, uid: string, most: number): Promise<PastHappening[]> {
    const unwritten = waiting.values().filter((event) => event.uid === uid)
    const rows = await stores.of(tenant_id).timeline.newest(uid, most)
    // What is written meanwhile may be in the rows already.
    const written = new Set(rows.map(({ at, kind, detail }) => at + kind + detail))
    const missing = unwritten.filter(({ at, kind, detail }) => !written.has(at + kind + detail))
    const last = minutes.get(uid)?.last
    return [...(last ? [last] : []), ...missing.toReversed(), ...rows].slice(0, most).map(happeningOf)
  }

  const timer = setInterval(() => settle(false), flush_every_ms)
  timer.unref()

  return {
    note,
    tunnelEnded(uid, { ending, detail, lasted_ms }, heard_at) {
      if (ending === 'unproved' && lasted_ms === 0) return note(uid, { kind: 'refused' })
      note(uid, {
        kind: 'down',
        reason: ending,
        detail: detail && safeText(detail),
        lasted_s: Math.round(lasted_ms / second_ms),
        heard_at: heard_at === undefined ? undefined : iso(heard_at),
      })
    },
    heard(uid, { connection, leaving }) {
      if (connection) note(uid, saidIn(connection, clock.now()))
      if (leaving) note(uid, { kind: 'leaving', why: leaving })
    },
    flush() {
      settle(false)
      return waiting.flush()
    },
    async of(tenant_id, uid, most) {
      return present(await read(tenant_id, uid, timelineEvents_most)).slice(0, most)
    },
    async offlineReason({ tenant_id, uid }) {
      return whyOffline(await read(tenant_id, uid, latest))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      settle(true)
      await waiting[Symbol.asyncDispose]()
    },
  }
}

/**
 * A device may claim anything: its words are cut short, and its moments put in the past of the server's
 * clock.
 */
function saidIn({ boot_id, uptime_s, clock_ms, lost }: ConnectionReport, now: number): DeviceHappening {
  const ago = (seconds: number): string => iso(Math.max(0, now - seconds * second_ms))
  return {
    kind: 'said',
    ...defined({
      boot_id: boot_id === undefined ? undefined : safeText(boot_id),
      started_at: uptime_s === undefined ? undefined : ago(uptime_s),
      ahead_s: clock_ms === undefined ? undefined : Math.round((clock_ms - now) / second_ms),
      lost: lost && { why: safeText(lost.why), at: ago(lost.ago_s) },
    }),
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
