// Composition of devices: their reports through tunnels, what members do with them, and containers as
// devices.
import { deviceLimits } from '@hawser/contract/limits'
import { version } from '@hawser/contract/version'
import { engine } from '../connectors/engine.ts'
import { publicPem } from '../connectors/supervisor.ts'
import type { Signer } from '../domain/access/signer.ts'
import type { Audit } from '../domain/audit/audit.ts'
import type { AgentUpdates } from '../domain/devices/agent-updates.ts'
import { connectors } from '../domain/devices/connectors.ts'
import { containerDevices } from '../domain/devices/container-devices.ts'
import type { Containers } from '../domain/devices/containers.ts'
import { deviceNotes } from '../domain/devices/device-notes.ts'
import { deviceWaiting } from '../domain/devices/device-waiting.ts'
import { devices } from '../domain/devices/devices.ts'
import { presence, type Presence } from '../domain/devices/presence.ts'
import { deviceReports } from '../domain/devices/reports.ts'
import { budgets } from '../domain/devices/budgets.ts'
import { deviceTraffic, type DeviceTrafficSums } from '../domain/devices/traffic.ts'
import { tunnelRules } from '../domain/devices/tunnels.ts'
import { writeReport } from '../kit/write-behind.ts'
import { emails } from '../mail/emails.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'
import type { JoiningRooms } from './joining.ts'
import type { SignInRooms } from './people.ts'

export async function openPresence({ database, stores, clock, bus, node, background, log }: Foundation) {
  const present = background.own(presence({ stores, clock, bus, node, ...writeReport(log, 'presence') }))
  // One process owns a SQLite file, so its online devices were this process's. On PostgreSQL other nodes may
  // have their tunnels.
  if (database.name === 'sqlite') present.adopt(await stores.presence.online())
  return present
}

interface DeviceParts
  extends
    Pick<JoiningRooms, 'containers' | 'nameFreed' | 'accepting' | 'joining' | 'auth'>,
    Pick<SignInRooms, 'gate' | 'shellHub'> {
  readonly presence: Presence
  readonly updates: AgentUpdates
  readonly signer: Signer
  readonly traffic: DeviceTrafficSums
  readonly billed: boolean
}

export function openDevices(foundation: Foundation, evidence: EvidenceRooms, parts: DeviceParts) {
  const { config, stores, clock, bus, clustered, limiter } = foundation
  const { audit, timeline } = evidence
  const { gate, shellHub, containers, joining, updates } = parts
  const changing = { stores, audit, bus, clock, presence: parts.presence, timeline }
  const reports = deviceReports({
    ...changing,
    updates,
    containers,
    joining,
    changes: limiter('container changes', deviceLimits.changes),
    longestPing_s: config.HAWSER_PING_INTERVAL,
  })
  const waitingReason = deviceWaiting({ stores, clock })
  const rules = devices({ ...parts, ...changing, mostTags: config.HAWSER_DEVICE_TAGS, waitingReason })
  const connected = openConnectors(foundation, evidence, {
    containers,
    presence: parts.presence,
    accept: rules.acceptForConnector,
  })
  return {
    rules: { devices: rules, notes: deviceNotes({ stores, audit, clock }), connectors: connected.rules },
    reports,
    tunnels: tunnelRules({ ...changing, gate, shellHub, reports, clustered }),
    supervision: connected.supervision,
    waitingReason,
  }
}

export type DeviceRooms = ReturnType<typeof openDevices>

function openConnectors(
  { config, stores, vault, bus, clock, log }: Foundation,
  { audit }: EvidenceRooms,
  parts: {
    readonly containers: Containers
    readonly presence: Presence
    readonly accept: ReturnType<typeof devices>['acceptForConnector']
  },
) {
  const ofConnectors = containerDevices({
    ...parts,
    stores,
    audit,
    bus,
    clock,
    version: `hawser-${version}`,
    publicPem,
    onError: (uid, err) => log.warn({ event: 'container.unaccepted', device: uid, err }),
  })
  const engines = engine({ allow: config.HAWSER_CONNECTOR_ALLOW })
  const rules = connectors({ stores, audit, vault, engine: engines, bus, clock, leave: ofConnectors.leave })
  return { rules, supervision: { engine: engines, connectors: rules.supervision, devices: ofConnectors } }
}

/** The traffic of devices: the sums of bytes, and the data budgets that are judged by them. */
export function openTraffic(foundation: Foundation, audit: Audit, mailer: Mailer) {
  const { stores, clock, bus, log, background, limiter, url } = foundation
  const judged = budgets({
    stores,
    audit,
    clock,
    bus,
    mailer,
    emails: emails(url),
    emailsPerNamespace: limiter('budget e-mails', deviceLimits.budgetEmails),
    tagsPerNamespace: limiter('budgets of tags', deviceLimits.budgetTags),
    later: background.later,
    onChanged: ({ tenant_id: tenant, state, ...about }) =>
      log[state === 'under' ? 'info' : 'warn']({ event: `budget.${state}`, tenant, ...about }),
    onUnsent: (tenant) => log.warn({ event: 'budget.unsent', tenant }),
    onError: (err) => log.error({ event: 'budget.unjudged', err }),
  })
  const traffic = deviceTraffic({ stores, clock, budgets: judged, ...writeReport(log, 'traffic', 'sums') })
  return { budgets: judged, traffic: background.own(traffic) }
}
