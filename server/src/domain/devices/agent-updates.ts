// Updates of agents as members see and request them. agent-states.ts has the devices' reports,
// update-turns.ts the order.
import { waveShares } from '@hawser/contract/agents'
import { Failure } from '@hawser/contract/failures'
import { beyond, deviceLimits } from '@hawser/contract/limits'
import { iso } from '../../kit/clock.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { AgentCounts } from '../../storage/agent-updates.ts'
import type { Audit } from '../audit/audit.ts'
import type { Rules } from '../callers/rules.ts'
import type { OfferedAgent } from './agent-releases.ts'
import { agentStates, type AgentStates } from './agent-states.ts'
import { updateTurns, type UpdateTurnParts, type UpdateTurns } from './update-turns.ts'

export interface AgentUpdateParts extends UpdateTurnParts {
  audit: Audit
  requests: Limiter
}

export interface AgentUpdates extends Rules<'agents'>, AgentStates, UpdateTurns {}

export function agentUpdates(parts: AgentUpdateParts): AgentUpdates {
  const { stores, releases, clock } = parts
  const store = stores.agentUpdates
  /** By namespace: counting walks over all its devices, so concurrent callers share one walk. */
  const counting = new Map<string, Promise<AgentCounts>>()

  function countsOf(tenant_id: string, offer: OfferedAgent): Promise<AgentCounts> {
    const running = counting.get(tenant_id)
    if (running) return running
    const walk = store.counts(tenant_id, offer).finally(() => counting.delete(tenant_id))
    counting.set(tenant_id, walk)
    return walk
  }

  return {
    ...agentStates(releases),
    ...updateTurns(parts),

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
      if (wait > 0) throw beyond(deviceLimits.updates, wait)
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
  }
}
