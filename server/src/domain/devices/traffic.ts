// How many bytes devices use. The counts of this node's meters (tunnel/meter.ts) are gathered by device and
// written as sums by day: when they are large, after an hour, at the end of the day, and at the end. However
// often a device reconnects, it has one sum in memory and one row a day.
import { trafficDays_most, type DeviceTraffic } from '@hawser/contract/devices'
import { day_ms, hour_ms, iso, minute_ms } from '../../kit/clock.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { TrafficSum } from '../../storage/traffic.ts'
import type { With } from '../audit/parts.ts'
import type { BudgetUsage } from './budget-judging.ts'

/** Bytes from the device's point of view, since the last call. */
export interface TrafficMeter {
  take(): {
    readonly idle: { readonly received: number; readonly sent: number }
    readonly sessions: { readonly received: number; readonly sent: number }
  }
}

export interface DeviceTrafficParts extends WriteReport, With<'stores' | 'clock'> {
  /** Budgets are judged after each write. */
  budgets: BudgetUsage
}

export interface DeviceTrafficSums extends AsyncDisposable {
  /** Counts the tunnel's bytes until it has ended. */
  follow(uid: string, meter: TrafficMeter, ended: Promise<unknown>): void
  /** Oldest first; today's is the last. */
  of(tenant_id: string, uid: string, days: number): Promise<DeviceTraffic['days']>
  /** Writes what is due; also done every minute. */
  flush(all?: boolean): Promise<void>
}

type Column = Exclude<keyof TrafficSum, 'uid' | 'day'>

interface Gathered extends TrafficSum {
  /** When a small sum is written. */
  readonly due_at: number
}

const flush_every_ms = minute_ms
/** A larger sum is written with the next flush; a smaller one waits. */
const large_bytes = 256 * 1024
const longest_wait_ms = hour_ms
const batch = 1_000
const mostDue = 200_000

const dayOf = (ms: number): string => iso(ms).slice(0, 10)

const keyOf = ({ uid, day }: Pick<TrafficSum, 'uid' | 'day'>): string => `${uid} ${day}`
const nothing = { idle_received: 0, idle_sent: 0, session_received: 0, session_sent: 0 }

export function deviceTraffic({ stores, clock, budgets, ...report }: DeviceTrafficParts): DeviceTrafficSums {
  /** A device has more than one for a moment, while a newer tunnel takes over. */
  const meters = new Map<string, Set<TrafficMeter>>()
  /** By uid and day. */
  const gathered = new Map<string, Gathered>()
  const due = new WriteBehind<TrafficSum>({
    ...report,
    delay_ms: 0,
    most: mostDue,
    batch,
    merge: (older, newer) => ({ ...newer, ...together(older, newer) }),
    async write(sums) {
      await stores.trafficSums.add(sums)
      budgets.note(sums.map(({ uid }) => uid))
    },
  })

  function gather(uid: string, meter: TrafficMeter): void {
    const { idle, sessions } = meter.take()
    if (idle.received + idle.sent + sessions.received + sessions.sent === 0) return
    const now = clock.now()
    const about = { uid, day: dayOf(now) }
    // Spread out, though all devices come at once after a restart.
    const due_at = now + longest_wait_ms * (0.5 + Math.random() / 2)
    const before = gathered.get(keyOf(about)) ?? { ...about, due_at, ...nothing }
    const more = {
      idle_received: idle.received,
      idle_sent: idle.sent,
      session_received: sessions.received,
      session_sent: sessions.sent,
    }
    gathered.set(keyOf(about), { ...before, ...together(more, before) })
  }

  const gatherAll = (uid: string): void => {
    for (const meter of meters.get(uid) ?? []) gather(uid, meter)
  }

  /** Writes large or old sums, or all. */
  function collect(all: boolean): void {
    for (const uid of meters.keys()) gatherAll(uid)
    const now = clock.now()
    const today = dayOf(now)
    for (const [key, { due_at, ...sum }] of gathered) {
      const isDue = due_at <= now || sum.day !== today || bytesOf(sum) >= large_bytes
      if (!all && !isDue) continue
      gathered.delete(key)
      due.put(key, sum)
    }
  }

  async function flush(all = false): Promise<void> {
    collect(all)
    await due.flush()
    await budgets.judge()
  }

  const timer = setInterval(() => void flush().catch(report.onError), flush_every_ms)
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
        if (day < since) continue
        for (const sum of [gathered.get(keyOf({ uid, day })), due.get(keyOf({ uid, day }))])
          if (sum) rows.set(day, together(sum, rows.get(day)))
      }
      return [...rows].map(([day, row]) => ({
        day,
        idle: { received: row.idle_received, sent: row.idle_sent },
        sessions: { received: row.session_received, sent: row.session_sent },
      }))
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      collect(true)
      await due[Symbol.asyncDispose]()
    },
  }
}

const bytesOf = (sum: Readonly<Record<Column, number>>): number =>
  sum.idle_received + sum.idle_sent + sum.session_received + sum.session_sent

function together(
  sum: Readonly<Record<Column, number>>,
  other: Readonly<Record<Column, number>> = nothing,
): Record<Column, number> {
  return {
    idle_received: sum.idle_received + other.idle_received,
    idle_sent: sum.idle_sent + other.idle_sent,
    session_received: sum.session_received + other.session_received,
    session_sent: sum.session_sent + other.session_sent,
  }
}
