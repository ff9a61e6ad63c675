// An agent's report about itself and its update, the server's answer, and how a device shows them.
import type { AgentAnswer, AgentReport, DeviceAgent, UpdateAbility } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import { safeText } from '../../kit/log.ts'
import type { OfferedBuild } from '../../storage/device-columns.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import { installable, type AgentReleases } from './agent-releases.ts'

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

export interface UpdateRequest {
  readonly build: string
  readonly asked_at: string
}

export interface AgentStates {
  /** The columns after a report, for a stored device or a new one. */
  reported(report: AgentReport | undefined, row: AgentColumns | undefined): AgentColumns
  answer(report: AgentReport, arch: string, request: UpdateRequest | undefined): AgentAnswer
  /** Undefined: the agent is not one of ours. `stopped`: a used-up data budget stops its updates. */
  shown(row: DeviceRow, stopped?: boolean): DeviceAgent | undefined
  offer(): OfferedBuild | undefined
}

const noRequest = {
  update_build: '',
  update_wanted_at: null,
  update_asked_at: null,
  update_phase: '',
} as const
const noAgent: AgentColumns = {
  ...noRequest,
  agent_build: '',
  agent_ability: '',
  update_failed: '',
  update_reason: '',
}

const unable: Readonly<Record<Exclude<UpdateAbility, 'self'>, string>> = {
  package: 'It was not installed from the server: update it as it was installed, with npm or a new image.',
  'not-installed': 'It runs without a service of its own: install it with install.sh.',
  'not-root': 'It does not run as root: replace it by hand.',
  'read-only': 'Its folder is read-only: update the system image.',
  'other-key': 'It trusts the update key of another server: run install.sh again on the device.',
}

export function agentStates(releases: AgentReleases): AgentStates {
  return {
    reported(report, row) {
      if (!report?.ability) return noAgent
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
      const { update_failed, update_reason } = before
      const failure = hasFailed
        ? { update_failed: failed.build ?? '', update_reason: safeText(failed.reason ?? '') }
        : update_failed === build
          ? { update_failed: '', update_reason: '' }
          : { update_failed, update_reason }
      return {
        agent_build: build,
        agent_ability,
        update_build: request.update_build,
        update_wanted_at: request.update_wanted_at,
        update_asked_at: request.update_asked_at,
        update_phase: phase,
        ...failure,
      }
    },

    answer(report, arch, request) {
      const endorsements = report.key === undefined ? [] : (releases.endorsementsAfter(report.key) ?? [])
      const isAsked = request !== undefined && request.build === installable(releases)?.build
      const release = isAsked || report.key === undefined ? releases.signedFor(arch) : undefined
      return {
        update_key: releases.updateKey(),
        ...defined({
          endorsements: endorsements.length > 0 ? [...endorsements] : undefined,
          release,
          request: release && isAsked ? request.asked_at : undefined,
        }),
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
      // An agent that runs from its sources reports its version, but no build.
      if (build === '' && row.info_version === `hawser-${offer.version}`) return about('unknown')
      if (ability !== 'self') return about('behind', unable[ability])
      if (row.update_build !== '') return about('updating', stepOf(row, stopped))
      return row.update_failed === offer.build ? about('failed', row.update_reason) : about('behind')
    },
  }
}

function stepOf(row: DeviceRow, stopped: boolean): string {
  if (row.update_asked_at === null)
    return stopped ? 'It waits for the next month: its data budget is used up.' : 'It waits for its turn.'
  if (row.update_phase === 'waiting') return 'It waits until its sessions have ended.'
  return row.update_phase === 'fetching' ? 'It is fetching the new agent.' : 'It was asked to update.'
}
