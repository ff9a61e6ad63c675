// Updates of agents: what devices report, what they are told, and whose turn it is. A member asks for
// updates, or a namespace has them by itself in waves (`automatic`): a twentieth of the devices, a quarter,
// all. Either way at most `mostAtOnce` devices of all namespaces fetch at the same time. One node takes the
// decisions at a time; all it knows is in the database. docs/decisions/0034 has the reasons.
import {
  waveShares,
  type AgentAnswer,
  type AgentReport,
  type DeviceAgent,
  type UpdateAbility,
} from '@hawser/contract/agents'
import { Failure } from '@hawser/contract/failures'
import type { Bus } from '../../bus/bus.ts'
import { hour_ms, iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { safeText } from '../../kit/log.ts'
import type { AgentCounts, UpdateTarget } from '../../storage/agent-updates.ts'
import type { OfferedBuild } from '../../storage/device-columns.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit } from '../audit/audit.ts'
import type { Rules } from '../callers/rules.ts'
import type { AgentReleases, OfferedAgent } from './agent-releases.ts'

export interface AgentUpdateParts {
  stores: Stores
  audit: Audit
  releases: AgentReleases
  bus: Bus
  clock: Clock
  /** Devices of all namespaces that fetch at the same time. */
  mostAtOnce: number
  /** Calls of Update agents, by namespace. */
  requests: Limiter
  /** Whether this node is the one that decides. */
  decides(): Promise<boolean>
  onStopped(tenant_id: string, reason: string): void
  onError(error: unknown): void
}

/** The columns of a device that its agent's report fills. */
export type AgentColumns = Pick<
  DeviceRow,
  | 'agent_build'
  | 'agent_ability'
  | 'update_build'
  | 'update_wanted_at'
  | 'update_asked_at'
  | 'update_phase'
  | 'update_failed'
  | 'update_reason'
>

/** An accepted device has been asked to install a build. */
export interface UpdateRequest {
  readonly build: string
  readonly asked_at: string
}

export interface AgentUpdates extends Rules<'agents'>, AsyncDisposable {
  /** What a report makes of a stored device, or of a new one. */
  reported(report: AgentReport | undefined, row: AgentColumns | undefined): AgentColumns
  /** What Auth device answers to the agent. */
  answer(report: AgentReport, arch: string, request: UpdateRequest | undefined): AgentAnswer
  /**
   * The agent as a device shows it; undefined: it is not one of ours. `stopped`: a data budget that is used up
   * stops its updates.
   */
  shown(row: DeviceRow, stopped?: boolean): DeviceAgent | undefined
  /** The agent that devices are compared with, for filters. */
  offer(): OfferedBuild | undefined
  /** One round of decisions; also made every few seconds. */
  decide(): Promise<void>
}

const every_ms = 15 * second_ms
/** A device that was asked and has said nothing for so long leaves its place to another. */
const silent_ms = hour_ms
/** Sessions may delay an update by a day; after two nobody expects it any more. */
const lost_ms = 48 * hour_ms
/** A wave is watched for at least so long before the next one begins. */
const watched_ms = 30 * minute_ms
/** The share of updated devices that must be online for the next wave. */
const well = 0.9

/** Namespaces that one question to the database names. */
const mostNamed = 1000

const noAgent: AgentColumns = {
  agent_build: '',
  agent_ability: '',
  update_build: '',
  update_wanted_at: null,
  update_asked_at: null,
  update_phase: '',
  update_failed: '',
  update_reason: '',
}
const noRequest = {
  update_build: '',
  update_wanted_at: null,
  update_asked_at: null,
  update_phase: '',
} as const

/** Why an agent cannot update itself, and what to do. */
const unable: Readonly<Record<Exclude<UpdateAbility, 'self'>, string>> = {
  package: 'It was not installed from the server: update it as it was installed, with npm or a new image.',
  'not-installed': 'It runs without a service of its own: install it with install.sh.',
  'not-root': 'It does not run as root: replace it by hand.',
  'read-only': 'Its folder is read-only: update the system image.',
  'other-key': 'It trusts the update key of another server: run install.sh again on the device.',
}

export function agentUpdates(parts: AgentUpdateParts): AgentUpdates {
  const { stores, releases, bus, clock } = parts
  const store = stores.agentUpdates
  let deciding = Promise.resolve()
  /** By namespace: counting walks over all its devices, so callers at the same time share one walk. */
  const counting = new Map<string, Promise<AgentCounts>>()

  function countsOf(tenant_id: string, offer: OfferedAgent): Promise<AgentCounts> {
    const running = counting.get(tenant_id)
    if (running) return running
    const walk = store.counts(tenant_id, offer).finally(() => counting.delete(tenant_id))
    counting.set(tenant_id, walk)
    return walk
  }

  /** What agents may be asked to install. */
  const installable = (): OfferedAgent | undefined => {
    const offered = releases.offered()
    return offered && !offered.isOlder ? offered : undefined
  }

  const tellAll = (targets: readonly UpdateTarget[]): void => {
    for (const { tenant_id, uid } of targets)
      bus.tell('device.changed', { tenant_id, uid, status: 'accepted' })
  }

  /** The next wave of a namespace, or more devices of the present one. */
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
    const offer = installable()
    if (!offer || !(await parts.decides())) return
    const now = clock.now()
    const reason = 'It has not reported back for two days.'
    tellAll(await store.giveUp(iso(now - lost_ms), reason))
    tellAll(await store.renew(offer.build))
    for (const tenant_id of await store.automatic()) await advance(tenant_id, offer)
    await giveTurns(now)
  }

  /** Namespaces that hold their share of the places wait until nobody else does, so that none starves others. */
  async function giveTurns(now: number): Promise<void> {
    const fetching = await store.fetching(iso(now - silent_ms))
    const free = parts.mostAtOnce - fetching.length
    const first = await store.ask(free, iso(now), inPossession(fetching, parts.mostAtOnce))
    tellAll(first)
    tellAll(await store.ask(free - first.length, iso(now)))
  }

  /** One round after the other, whoever asks for it. */
  function decideInTurn(): Promise<void> {
    const round = deciding.then(decide)
    deciding = round.catch(() => undefined)
    return round
  }

  const timer = setInterval(() => void decideInTurn().catch(parts.onError), every_ms)
  timer.unref()

  return {
    decide: decideInTurn,

    reported(report, row) {
      if (!report?.ability) return { ...noAgent, ...(row ? noRequest : {}) }
      const { build = '', key, phase = '', failed } = report
      const isOther = key !== undefined && releases.endorsementsAfter(key) === undefined
      const agent_ability = report.ability === 'self' && isOther ? 'other-key' : report.ability
      const before = row ?? noAgent
      const asked = before.update_build !== ''
      const isDone = asked && build === before.update_build
      const hasFailed =
        failed?.build !== undefined &&
        (!asked || (failed.build === before.update_build && failed.request === before.update_asked_at))
      const request = isDone || hasFailed ? noRequest : before
      return {
        agent_build: build,
        agent_ability,
        update_build: request.update_build,
        update_wanted_at: request.update_wanted_at,
        update_asked_at: request.update_asked_at,
        update_phase: phase,
        update_failed: hasFailed
          ? (failed.build ?? '')
          : before.update_failed === build
            ? ''
            : before.update_failed,
        update_reason: hasFailed
          ? safeText(failed.reason ?? '')
          : before.update_failed === build
            ? ''
            : before.update_reason,
      }
    },

    answer(report, arch, request) {
      const endorsements = report.key === undefined ? [] : (releases.endorsementsAfter(report.key) ?? [])
      const isAsked = request !== undefined && request.build === installable()?.build
      const release = isAsked || report.key === undefined ? releases.signedFor(arch) : undefined
      return {
        update_key: releases.updateKey(),
        ...(endorsements.length > 0 ? { endorsements: [...endorsements] } : {}),
        ...(release ? { release } : {}),
        ...(release && isAsked ? { request: request.asked_at } : {}),
      }
    },

    offer() {
      const offered = releases.offered()
      return offered && { ...offered, newer: releases.newer() }
    },

    shown(row, stopped = false) {
      const { agent_ability: ability, agent_build: build } = row
      if (ability === '') return undefined
      const about = (state: DeviceAgent['state'], reason = ''): DeviceAgent => ({
        build,
        state,
        reason,
        updates_itself: ability === 'self',
      })
      const offer = releases.offered()
      if (!offer?.arches.includes(row.info_arch)) return about('unknown')
      if (build === offer.build)
        return row.update_phase === 'trying'
          ? about('updating', 'The new agent is connecting.')
          : about('current')
      if ((releases.releasedAt(build) ?? '') > offer.released_at)
        return about('current', 'It is newer than the agent that the server offers.')
      // Of an agent that runs from its sources no more than the version is known.
      if (build === '' && row.info_version === `hawser-${offer.version}`) return about('unknown')
      if (ability !== 'self') return about('behind', unable[ability])
      if (row.update_build !== '') return about('updating', stepOf(row, stopped))
      return row.update_failed === offer.build ? about('failed', row.update_reason) : about('behind')
    },

    async get(_, { tenant_id }) {
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('notFound')
      const offer = releases.offered()
      const counts = offer && (await countsOf(tenant_id, offer))
      const wave = await store.wave(tenant_id)
      const { current = 0, updating = 0, failed = 0, total = 0 } = counts ?? {}
      return {
        release: offer
          ? {
              version: offer.version,
              build: offer.build,
              released_at: offer.released_at,
              architectures: [...offer.architectures],
            }
          : null,
        update_key: releases.updateKey(),
        mode: namespace.agent_updates,
        devices: { current, behind: total - current - updating - failed, updating, failed },
        wave:
          wave && wave.build === offer?.build
            ? { share: waveShares[wave.wave] ?? 1, stopped: wave.stopped }
            : null,
      }
    },

    async update({ body }, caller) {
      const { tenant_id } = caller
      const wait = parts.requests.take(tenant_id)
      if (wait > 0) throw new Failure('tooMany', { retryAfter: wait })
      if ((body.devices === undefined) === (body.all !== true))
        throw new Failure('invalid', { message: 'devices or all: one of them is needed' })
      const namespace = await stores.namespaces.find(tenant_id)
      if (namespace?.agent_updates === 'off')
        throw new Failure('conflict', { message: 'Updates of agents are off in this namespace.' })
      const offered = releases.offered()
      if (offered?.isOlder)
        throw new Failure('conflict', {
          message: 'The server has offered a newer agent before; agents are not taken back to an older one.',
        })
      if (!offered) return { asked: 0 }
      return parts.audit.change(caller, async (inside, record) => {
        const devices = body.devices ?? 'all'
        const asked = await inside.agentUpdates.want(tenant_id, offered, devices, iso(clock.now()))
        if (asked > 0)
          record({
            action: 'device.update.requested',
            target: { kind: 'agent', id: offered.build, name: offered.version },
            detail: { devices, asked },
          })
        return { asked }
      })
    },

    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await deciding
    },
  }
}

/** Of the namespaces that hold places, those that have as many as each would if one more came. */
function inPossession(fetching: readonly string[], places: number): string[] {
  const held = Map.groupBy(fetching, (tenant_id) => tenant_id)
  const share = Math.ceil(places / (held.size + 1))
  return [...held]
    .filter(([, its]) => its.length >= share)
    .slice(0, mostNamed)
    .map(([tenant_id]) => tenant_id)
}

function stepOf(row: DeviceRow, stopped: boolean): string {
  if (row.update_asked_at === null)
    return stopped ? 'It waits for the next month: its data budget is used up.' : 'It waits for its turn.'
  if (row.update_phase === 'waiting') return 'It waits until its sessions have ended.'
  return row.update_phase === 'fetching' ? 'It is fetching the new agent.' : 'It was asked to update.'
}
