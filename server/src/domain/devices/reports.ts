// Reports of our own agents through their tunnels, and the answers. They replace repeated calls of Auth
// device for an enrolled device: agents report changes, and the server sends a new name, a new status or a
// requested update.
import type { AgentReport } from '@hawser/contract/agents'
import { defined } from '@hawser/contract/defined'
import type { DeviceNews, DeviceReport } from '@hawser/contract/reports'
import type { Limiter } from '../../kit/limiter.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { With } from '../audit/parts.ts'
import type { AgentStates } from './agent-states.ts'
import { mayGiveUp, type Containers } from './containers.ts'
import { infoColumns, nameFrom } from './device-facts.ts'
import { deviceActor } from './device-rows.ts'
import type { Joining } from './joining.ts'
import type { Timeline } from './timeline.ts'

export interface ReportParts extends With<'stores' | 'bus'> {
  updates: Pick<AgentStates, 'reported' | 'answer'>
  containers: Pick<Containers, 'called' | 'gone'>
  joining: Pick<Joining, 'comeBack'>
  timeline: Pick<Timeline, 'note'>
  /** Limits how often a device changes its name or status by its reports. */
  changes: Limiter
  /** The longest time between two pings. */
  longestPing_s: number
}

export interface DeviceReports {
  /**
   * Saves what is new and returns what the agent should know. `said`: everything that the agent has reported
   * so far. Undefined: the device is gone.
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
   * Follows the container of an agent: its name, its removal, its return. Only a tunnel reports that, because
   * it has proved the device's key; Auth device is open to anyone who knows the device.
   */
  async function asContainer(row: DeviceRow, said: DeviceReport): Promise<DeviceRow | undefined> {
    const { tenant_id, uid, container } = row
    const name = said.hostname ? nameFrom(said.hostname, row.mac) : container
    const isGone = said.leaving === 'gone'
    const isBack = !isGone && row.status === 'removed'
    const isRenamed = !isGone && name !== null && name !== container
    if (!(isGone ? mayGiveUp(row) : isBack || isRenamed) || changes.take(uid) > 0) return row
    if (isGone) await containers.gone(tenant_id, [uid], deviceActor({ ...row, source: row.remote_addr }))
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
        ...defined({ remote_addr: source }),
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
      // Auth device caches facts, on every node.
      if (changed.length > 0) bus.tell('device.changed', { tenant_id, uid, status: now.status })
      const request =
        now.status === 'accepted' && next.update_asked_at !== null
          ? { build: next.update_build, asked_at: next.update_asked_at }
          : undefined
      return {
        name: now.name,
        status: now.status,
        ...defined({ agent: agent && updates.answer(agent, next.info_arch, request) }),
        ping: { learnt_s: row.ping_s, longest_s: longestPing_s },
      }
    },
  }
}

/** Only our own agents update themselves. */
function agentIn({ info, agent }: DeviceReport): AgentReport | undefined {
  return info?.version?.startsWith('hawser-') === true ? agent : undefined
}

/** A connector's containers follow their engine instead. */
const isAgents = ({ container, connector }: DeviceRow): boolean => container !== null && connector === null
