// Whose turn it is to update: on a member's request, or `automatic` in waves of a twentieth of the devices, a
// quarter, all. At most `mostAtOnce` devices of all namespaces fetch at the same time. One node decides at a
// time, from the database alone. docs/decisions/0034 has the reasons.
import { waveShares } from '@hawser/contract/agents'
import { hour_ms, iso, minute_ms, second_ms } from '../../kit/clock.ts'
import type { AgentCounts, UpdateTarget } from '../../storage/agent-updates.ts'
import type { With } from '../audit/parts.ts'
import { installable, type AgentReleases, type OfferedAgent } from './agent-releases.ts'

export interface UpdateTurnParts extends With<'stores' | 'bus' | 'clock'> {
  releases: AgentReleases
  /** Devices of all namespaces that fetch at the same time. */
  mostAtOnce: number
  decides(): Promise<boolean>
  onStopped(tenant_id: string, reason: string): void
  onError(error: unknown): void
}

export interface UpdateTurns extends AsyncDisposable {
  /** One round of decisions; also made every few seconds. */
  decide(): Promise<void>
}

const every_ms = 15 * second_ms
/** A device that is silent for this long after its turn came leaves its place to another. */
const silent_ms = hour_ms
/** Sessions may delay an update by a day; after two it counts as failed. */
const lost_ms = 48 * hour_ms
const watched_ms = 30 * minute_ms
const well = 0.9

const mostNamed = 1000

export function updateTurns(parts: UpdateTurnParts): UpdateTurns {
  const { stores, releases, bus, clock } = parts
  const store = stores.agentUpdates
  let deciding = Promise.resolve()

  const tellAll = (targets: readonly UpdateTarget[]): void => {
    for (const { tenant_id, uid } of targets)
      bus.tell('device.changed', { tenant_id, uid, status: 'accepted' })
  }

  async function advance(tenant_id: string, offer: OfferedAgent): Promise<void> {
    if (!(await store.isBehind(tenant_id, offer))) return void (await store.endWave(tenant_id))
    const now = iso(clock.now())
    const found = await store.wave(tenant_id)
    const wave =
      found?.build === offer.build
        ? found
        : { tenant_id, build: offer.build, wave: 0, opened_at: now, stopped: '' }
    await store.postpone(tenant_id, now)
    const counts = await store.counts(tenant_id, offer)
    const limit = Math.ceil(counts.total * (waveShares[wave.wave] ?? 1))
    if (counts.failed > 0) {
      if (wave.stopped !== '') return
      const stopped = `${counts.failed} of ${counts.total} devices could not be updated.`
      await store.saveWave({ ...wave, stopped })
      return parts.onStopped(tenant_id, stopped)
    }
    if (found !== wave || wave.stopped !== '') await store.saveWave({ ...wave, stopped: '' })
    const more = limit - counts.current - counts.updating
    if (more > 0) {
      const uids = await store.candidates(tenant_id, offer, Math.min(more, parts.mostAtOnce), now)
      if (uids.length > 0) await store.want(tenant_id, offer, uids, now)
    } else if (wave.wave < waveShares.length - 1 && isWell(counts, wave.opened_at))
      await store.saveWave({ ...wave, wave: wave.wave + 1, opened_at: now, stopped: '' })
  }

  /** Whether all of a wave have come back, and have been there for a while. */
  const isWell = (counts: AgentCounts, opened_at: string): boolean =>
    counts.updating === 0 &&
    counts.online >= counts.current * well &&
    Date.parse(opened_at) + watched_ms <= clock.now()

  async function decide(): Promise<void> {
    await releases.refresh()
    const offer = installable(releases)
    if (!offer || !(await parts.decides())) return
    const now = clock.now()
    const reason = 'It has not reported back for two days.'
    tellAll(await store.giveUp(iso(now - lost_ms), reason))
    tellAll(await store.renew(offer.build))
    for (const tenant_id of await store.automatic()) await advance(tenant_id, offer)
    await giveTurns(now)
  }

  /**
   * Namespaces that hold their share of the places wait until nobody else does, so that none starves others.
   */
  async function giveTurns(now: number): Promise<void> {
    const fetching = await store.fetching(iso(now - silent_ms))
    const free = parts.mostAtOnce - fetching.length
    const first = await store.ask(free, iso(now), inPossession(fetching, parts.mostAtOnce))
    tellAll(first)
    tellAll(await store.ask(free - first.length, iso(now)))
  }

  function decideInTurn(): Promise<void> {
    const round = deciding.then(decide)
    deciding = round.catch(() => undefined)
    return round
  }

  const timer = setInterval(() => void decideInTurn().catch(parts.onError), every_ms)
  timer.unref()

  return {
    decide: decideInTurn,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await deciding
    },
  }
}

/** The namespaces that hold at least as many places as each would get if one more came. */
function inPossession(fetching: readonly string[], places: number): string[] {
  const held = Map.groupBy(fetching, (tenant_id) => tenant_id)
  const share = Math.ceil(places / (held.size + 1))
  return [...held]
    .filter(([, its]) => its.length >= share)
    .slice(0, mostNamed)
    .map(([tenant_id]) => tenant_id)
}
