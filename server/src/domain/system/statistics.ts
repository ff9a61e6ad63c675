// The figures of a namespace: how many devices and sessions there are, and their use by day.
import { statsDays_most } from '@hawser/contract/system'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { day_ms, iso, minute_ms } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import type { Presence } from '../devices/presence.ts'

/** Namespaces whose figures by day are remembered. */
const mostCounted = 1_000

const dayOf = (ms: number): string => iso(ms).slice(0, 10)

export function statistics({
  stores,
  clock,
  presence,
}: With<'stores' | 'clock'> & { presence: Presence }): Pick<Rules<'system'>, 'stats' | 'statsByDay'> {
  async function countDays(tenant_id: string, now: number) {
    const since = dayOf(now - statsDays_most * day_ms)
    const { traffic, sessions } = stores.of(tenant_id)
    const [used, begun] = await Promise.all([traffic.allByDay(since), sessions.countsByDay(since)])
    return { used: new Map(used.map((one) => [one.day, one])), begun }
  }
  const counted = new BoundedMap<string, { until: number; figures: ReturnType<typeof countDays> }>(
    mostCounted,
  )

  /**
   * Reads all devices and sessions of a month, so that everybody in the namespace gets the same for a minute.
   */
  function countedByDay(tenant_id: string, now: number): ReturnType<typeof countDays> {
    const known = counted.get(tenant_id)
    if (known && known.until > now) return known.figures
    const figures = countDays(tenant_id, now)
    counted.set(tenant_id, { until: now + minute_ms, figures })
    figures.catch(() => counted.delete(tenant_id))
    return figures
  }

  return {
    async stats(_, { tenant_id }) {
      // Lists do this too, so that both show the same.
      await presence.settle()
      const tallies = await stores.of(tenant_id).devices.tallies()
      const of = (subject: string): number => tallies.get(subject) ?? 0
      return {
        registered_devices: of('devices.accepted'),
        online_devices: of('online.accepted'),
        pending_devices: of('devices.pending'),
        rejected_devices: of('devices.rejected'),
        active_sessions: of('sessions.active'),
      }
    },

    async statsByDay({ query }, { tenant_id }) {
      const now = clock.now()
      await presence.settle()
      const [{ used, begun }, tallies] = await Promise.all([
        countedByDay(tenant_id, now),
        stores.of(tenant_id).devices.tallies(),
      ])
      const online = tallies.get('online.accepted') ?? 0
      return {
        days: Array.from({ length: query.days }, (_, index) => {
          const ago = query.days - 1 - index
          const day = dayOf(now - ago * day_ms)
          const { devices = 0, bytes = 0 } = used.get(day) ?? {}
          // Devices that connected within this hour are not among those whose bytes are counted.
          return {
            day,
            sessions: begun.get(day) ?? 0,
            devices: Math.max(devices, ago === 0 ? online : 0),
            bytes,
          }
        }),
      }
    },
  }
}
