// What devices report through their tunnels, and what they are told there. Our own agents do this instead of
// calling Auth device again and again: they report what has changed, and the server tells them of a new name,
// a new status or an update that was asked for. It means the same as the call, for a device that is enrolled.
import type { AgentReport } from '@hawser/contract/agents'
import type { DeviceNews, DeviceReport } from '@hawser/contract/reports'
import type { Bus } from '../../bus/bus.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { AuditActor } from '../audit/audit.ts'
import type { AgentUpdates } from './agent-updates.ts'
import { mayGiveUp, type Containers } from './containers.ts'
import { infoColumns, nameFrom } from './enrolment.ts'
import type { Joining } from './joining.ts'
import type { Timeline } from './timeline.ts'

export interface ReportParts {
  stores: Stores
  bus: Bus
  updates: Pick<AgentUpdates, 'reported' | 'answer'>
  containers: Pick<Containers, 'called' | 'gone'>
  joining: Pick<Joining, 'comeBack'>
  timeline: Pick<Timeline, 'note'>
  /** Limits how often a device changes its name or status by what it says. */
  changes: Limiter
  /** Agents may not let more seconds pass between two pings. */
  longestPing_s: number
}

export interface DeviceReports {
  /**
   * Saves what is new about the device and returns what its agent should know. `said` is all that the agent
   * has reported so far. Undefined: the device is gone.
   */
  take(
    device: { readonly uid: string; readonly tenant_id: string },
    said: DeviceReport,
    source: string | undefined,
  ): Promise<DeviceNews | undefined>
}

export function deviceReports({
  stores,
  bus,
  updates,
  containers,
  joining,
  timeline,
  changes,
  longestPing_s,
}: ReportParts): DeviceReports {
  /**
   * Follows the container of an agent: what it is called, that it is gone, or that it is there again. Only a
   * tunnel says so, which has proved the device's key; Auth device may be called by whoever knows the device.
   */
  async function asContainer(row: DeviceRow, said: DeviceReport): Promise<DeviceRow | undefined> {
    const { tenant_id, uid, container } = row
    const name = said.hostname ? nameFrom(said.hostname, row.mac) : container
    const isGone = said.leaving === 'gone'
    const isBack = !isGone && row.status === 'removed'
    const isRenamed = !isGone && name !== null && name !== container
    if (!(isGone ? mayGiveUp(row) : isBack || isRenamed) || changes.take(uid) > 0) return row
    const source = row.remote_addr
    const device: AuditActor = { actor: 'device', id: uid, name: row.name, source, request_id: '', tenant_id }
    if (isGone) await containers.gone(tenant_id, [uid], device)
    if (isRenamed) await containers.called(row, name)
    if (isBack) {
      const { status } = await joining.comeBack(row)
      timeline.note(uid, { kind: 'followed-status', status })
    }
    return stores.of(tenant_id).devices.find(uid)
  }

  return {
    async take({ uid, tenant_id }, said, source) {
      const devices = stores.of(tenant_id).devices
      const row = await devices.find(uid)
      if (!row) return undefined
      const agent = agentIn(said)
      const facts: Partial<DeviceRow> = {
        ...(source === undefined ? {} : { remote_addr: source }),
        ...(said.info ? { ...infoColumns(said.info), ...updates.reported(agent, row) } : {}),
      }
      const next = { ...row, ...facts, ping_s: Math.min(said.ping_s ?? row.ping_s, longestPing_s) }
      const changed = (Object.keys(facts) as (keyof DeviceRow)[]).filter((name) => row[name] !== next[name])
      if (changed.length > 0 || next.ping_s !== row.ping_s)
        await devices.save(uid, {
          ...Object.fromEntries(changed.map((name) => [name, next[name]])),
          ping_s: next.ping_s,
        })
      const now = isAgents(row) ? await asContainer(row, said) : row
      if (!now) return undefined
      // Auth device remembers facts, on every node.
      if (changed.length > 0) bus.tell('device.changed', { tenant_id, uid, status: now.status })
      const request =
        now.status === 'accepted' && next.update_asked_at !== null
          ? { build: next.update_build, asked_at: next.update_asked_at }
          : undefined
      return {
        name: now.name,
        status: now.status,
        ...(agent ? { agent: updates.answer(agent, next.info_arch, request) } : {}),
        ping: { learnt_s: row.ping_s, longest_s: longestPing_s },
      }
    },
  }
}

/** Only our own agents update themselves. */
function agentIn({ info, agent }: DeviceReport): AgentReport | undefined {
  return info?.version?.startsWith('hawser-') === true ? agent : undefined
}

/** The containers of a connector are followed by the word of its engine. */
const isAgents = ({ container, connector }: DeviceRow): boolean => container !== null && connector === null
