// Composition of agents: the packages that this process offers, their signed releases, and whose turn it is to update.
import { deviceLimits } from '@hawser/contract/limits'
import type { Audit } from '../domain/audit/audit.ts'
import { agentReleases } from '../domain/devices/agent-releases.ts'
import { agentUpdates } from '../domain/devices/agent-updates.ts'
import { agentArchives } from '../http/agent-archives.ts'
import type { Foundation } from './foundation.ts'

export async function openAgents(foundation: Foundation, audit: Audit) {
  const { agents, config, stores, vault, clock, bus, node, serving, limiter, log, background } = foundation
  const archives = agentArchives(agents, (file, err) => log.error({ event: 'agent.unreadable', file, err }))
  const releases = await agentReleases({ stores, vault, clock, packages: archives.list })
  const updates = background.own(
    agentUpdates({
      stores,
      audit,
      releases,
      bus,
      clock,
      mostAtOnce: config.HAWSER_AGENT_UPDATES,
      requests: limiter('agent updates', deviceLimits.updates),
      decides: async () => serving && (node === '' || (await stores.nodes.first()) === node),
      onStopped: (tenant_id, reason) => log.warn({ event: 'updates.stopped', tenant: tenant_id, reason }),
      onError: (err) => log.error({ event: 'updates.failed', err }),
    }),
  )
  if (serving) background.later('updates', () => updates.decide())
  return { archives, releases, updates }
}

export type AgentRooms = Awaited<ReturnType<typeof openAgents>>
