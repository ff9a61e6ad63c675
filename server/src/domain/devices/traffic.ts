// How many bytes devices use. Every tunnel has a meter (tunnel/meter.ts); here what the meters of this node
// have counted is gathered by device, and written as sums by day: when a device has used much, after an
// hour, when the day is over, and at the end. However often a device reconnects, it has one sum in memory
// and one row a day.
import { trafficDays_most, type DeviceTraffic } from '@hawser/contract/devices'
import { day_ms, hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { TrafficSum } from '../../storage/traffic.ts'
import type { BudgetUsage } from './budgets.ts'

/** Bytes from the device's point of view, since they were last asked for. */
export interface TrafficMeter {
  take(): {
    readonly idle: { readonly received: number; readonly sent: number }
    readonly sessions: { readonly received: number; readonly sent: number }
  }
}

export interface DeviceTrafficParts {
  stores: Stores
  clock: Clock
  /** They are judged after each write. */
  budgets: BudgetUsage
  onError(error: unknown): void
}

export interface DeviceTrafficSums extends AsyncDisposable {
  /** Counts what the device's tunnel carries until it has ended. */
  follow(uid: string, meter: TrafficMeter, ended: Promise<unknown>): void
  /** The days of a device of the namespace, oldest first, today's last. */
  of(tenant_id: string, uid: string, days: number): Promise<DeviceTraffic['days']>
  /** Gathers and writes what is due; also done every minute. */
  flush(all?: boolean): Promise<void>
}

/** What is not written yet of a device and day. */
interface Pending extends Record<Column, number> {
  readonly uid: string
  readonly day: string
  /** When it is written, if it stays small; by the clock. */
  readonly due_at: number
}
type Column = Exclude<keyof TrafficSum, 'uid' | 'day'>

const flush_every_ms = minute_ms
/** A sum of so much is written with the next flush; a smaller one waits. */
const large_bytes = 256 * 1024
const longest_wait_ms = hour_ms
/** Sums that one statement adds. */
const batch = 1_000

const dayOf = (ms: number): string => iso(ms).slice(0, 10)

export function deviceTraffic({ stores, clock, budgets, onError }: DeviceTrafficParts): DeviceTrafficSums {
  /** Meters of open tunnels. A device has more than one for a moment, while a newer tunnel takes over. */
  const meters = new Map<string, Set<TrafficMeter>>()
  /** By uid and day. */
  const pending = new Map<string, Pending>()
  let writing = Promise.resolve()

  function gather(uid: string, meter: TrafficMeter): void {
    const { idle, sessions } = meter.take()
    if (idle.received + idle.sent + sessions.received + sessions.sent === 0) return
    const now = clock.now()
    const day = dayOf(now)
    const key = `${uid} ${day}`
    const sum = pending.get(key) ?? {
      uid,
      day,
      // Not all at the same moment, though all devices come at once after a restart.
      due_at: now + longest_wait_ms * (0.5 + Math.random() / 2),
      idle_received: 0,
      idle_sent: 0,
      session_received: 0,
      session_sent: 0,
    }
    sum.idle_received += idle.received
    sum.idle_sent += idle.sent
    sum.session_received += sessions.received
    sum.session_sent += sessions.sent
    pending.set(key, sum)
  }

  const gatherAll = (uid: string): void => {
    for (const meter of meters.get(uid) ?? []) gather(uid, meter)
  }

  const isDue = (sum: Pending, now: number): boolean =>
    sum.due_at <= now ||
    sum.day !== dayOf(now) ||
    sum.idle_received + sum.idle_sent + sum.session_received + sum.session_sent >= large_bytes

  async function write(wanted: (sum: Pending) => boolean): Promise<void> {
    const due = [...pending.values()].filter(wanted)
    for (let start = 0; start < due.length; start += batch) {
      const sums = due.slice(start, start + batch)
      for (const { uid, day } of sums) pending.delete(`${uid} ${day}`)
      try {
        await stores.trafficSums.add(sums)
        budgets.note(sums.map(({ uid }) => uid))
      } catch (error) {
        for (const sum of sums) putBack(sum)
        throw error
      }
    }
  }

  /** The database was away: the sums wait for the next flush. */
  function putBack(sum: Pending): void {
    const key = `${sum.uid} ${sum.day}`
    pending.set(key, { ...sum, ...together(sum, pending.get(key)) })
  }

  /** One write after the other. */
  function inTurn(wanted: (sum: Pending) => boolean): Promise<void> {
    const next = writing.then(() => write(wanted))
    writing = next.catch(() => undefined)
    return next
  }

  function gatherAndWrite(all: boolean): Promise<void> {
    for (const uid of meters.keys()) gatherAll(uid)
    const now = clock.now()
    return inTurn((sum) => all || isDue(sum, now))
  }

  async function flush(all = false): Promise<void> {
    try {
      await gatherAndWrite(all)
    } finally {
      await budgets.judge()
    }
  }

  const timer = setInterval(() => void flush().catch(onError), flush_every_ms)
  timer.unref()

  return {
    flush,
    follow(uid, meter, ended) {
      const its = meters.get(uid) ?? new Set()
      meters.set(uid, its.add(meter))
      void ended.then(() => {
        gather(uid, meter)
        its.delete(meter)
        if (its.size === 0 && meters.get(uid) === its) meters.delete(uid)
      })
    },
    async of(tenant_id, uid, days) {
      gatherAll(uid)
      const wanted = Math.min(days, trafficDays_most)
      const since = dayOf(clock.now() - (wanted - 1) * day_ms)
      const rows = new Map<string, Record<Column, number>>()
      for (const row of await stores.of(tenant_id).traffic.days(uid, since)) rows.set(row.day, row)
      for (const day of [dayOf(clock.now() - day_ms), dayOf(clock.now())]) {
        const waits = pending.get(`${uid} ${day}`)
        if (waits && day >= since) rows.set(day, together(waits, rows.get(day)))
      }
      return [...rows].map(([day, row]) => ({
        day,
        idle: { received: row.idle_received, sent: row.idle_sent },
        sessions: { received: row.session_received, sent: row.session_sent },
      }))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await gatherAndWrite(true).catch(onError)
    },
  }
}

function together(
  sum: Readonly<Record<Column, number>>,
  other: Readonly<Record<Column, number>> | undefined,
): Record<Column, number> {
  return {
    idle_received: sum.idle_received + (other?.idle_received ?? 0),
    idle_sent: sum.idle_sent + (other?.idle_sent ?? 0),
    session_received: sum.session_received + (other?.session_received ?? 0),
    session_sent: sum.session_sent + (other?.session_sent ?? 0),
  }
}
