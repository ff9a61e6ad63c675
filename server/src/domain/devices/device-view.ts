// Devices as the interface shows them: with presence, namespace name, whether they may be accepted, and the
// device that they would replace.
import { defined } from '@hawser/contract/defined'
import type { Device } from '@hawser/contract/devices'
import { Failure } from '@hawser/contract/failures'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import { hasRoom, roomFor, type Room } from '../billing/device-limit.ts'
import { slot_hold_ms } from '../billing/subscriptions.ts'
import type { AgentStates } from './agent-states.ts'
import { budgetsOf } from './budget-state.ts'
import type { Presence } from './presence.ts'

export interface DeviceView {
  many(tenant_id: string, rows: readonly DeviceRow[]): Promise<Device[]>
}

/** After this silence, a conflict of identities is over. */
export const conflictQuiet_ms = 15 * minute_ms

export const heldSlots = (
  inside: Pick<StoresInTransaction, 'of'>,
  tenant_id: string,
  clock: Clock,
): Promise<string[]> => inside.of(tenant_id).removedDevices.list(iso(clock.now() - slot_hold_ms))

/** A deleted device holds its slot in a limited namespace: a few slots must not serve many devices in turn. */
export async function holdSlot(
  inside: StoresInTransaction,
  { tenant_id, max_devices }: { tenant_id: string; max_devices: number },
  uid: string,
  clock: Clock,
): Promise<void> {
  if (max_devices <= 0) return
  const { devices, removedDevices } = inside.of(tenant_id)
  const kept = (await heldSlots(inside, tenant_id, clock)).length
  const accepted = await devices.countWithStatus('accepted')
  if (hasRoom({ accepted, kept, max_devices })) await removedDevices.keep(uid, iso(clock.now()))
}

/** Without a limit nothing needs to be counted. */
export async function roomIn(
  stores: Stores,
  { tenant_id, max_devices }: { tenant_id: string; max_devices: number },
  clock: Clock,
): Promise<Room> {
  const isLimited = max_devices > 0
  return roomFor({
    accepted: isLimited ? await stores.namespaces.deviceCount(tenant_id) : 0,
    kept: isLimited ? await heldSlots(stores, tenant_id, clock) : [],
    max_devices,
  })
}

export function deviceView({
  stores,
  presence,
  updates,
  clock,
}: With<'stores' | 'clock'> & {
  presence: Presence
  updates: Pick<AgentStates, 'shown'>
}): DeviceView {
  return {
    async many(tenant_id, rows) {
      if (rows.length === 0) return []
      const namespace = await stores.namespaces.find(tenant_id)
      if (!namespace) throw new Failure('notFound')
      const room = await roomIn(stores, namespace, clock)
      const holders = await macHolders(tenant_id, rows)
      const budgets = await budgetsOf({ stores, clock }, tenant_id, rows)
      const shown = (row: DeviceRow): Device => ({
        uid: row.uid,
        name: row.name,
        identity: { mac: row.mac },
        info: {
          id: row.info_id,
          pretty_name: row.info_pretty_name,
          version: row.info_version,
          arch: row.info_arch,
          platform: row.info_platform,
        },
        public_key: row.public_key,
        tenant_id: row.tenant_id,
        ...presence.of(row),
        namespace: namespace.name,
        status: row.status,
        status_update_at: row.status_update_at,
        status_updated_at: row.status_update_at,
        created_at: row.created_at,
        remote_addr: row.remote_addr,
        position: JSON.parse(row.position) as Device['position'],
        tags: JSON.parse(row.tags) as string[],
        public_url: row.public_url === 1,
        public_url_address: row.public_url_address,
        ...(row.enrolled_with === null
          ? {}
          : { enrolled_with: JSON.parse(row.enrolled_with) as NonNullable<Device['enrolled_with']> }),
        acceptable: row.status !== 'accepted' && (room === 'all' || room.includes(row.uid)),
      })
      return rows.map((row) => {
        const budget = budgets.get(row.uid)
        return {
          ...shown(row),
          ...defined({
            agent: updates.shown(row, budget?.stopsUpdates),
            ping_interval: row.ping_s > 0 ? row.ping_s : undefined,
            replaces: row.status === 'accepted' ? undefined : holders.get(row.mac),
            data_budget: budget?.shown,
            conflict: conflictOf(row),
          }),
        }
      })
    },
  }

  /** Two machines use its identity, or did until a moment ago. */
  function conflictOf(row: DeviceRow): Device['conflict'] {
    if (row.conflict === null) return undefined
    const conflict = JSON.parse(row.conflict) as NonNullable<Device['conflict']>
    return conflict.last_at > iso(clock.now() - conflictQuiet_ms) ? conflict : undefined
  }

  /** Accepted devices by MAC, which rows that are not accepted would replace. */
  async function macHolders(
    tenant_id: string,
    rows: readonly DeviceRow[],
  ): Promise<Map<string, { uid: string; name: string }>> {
    const macs = new Set(
      rows.filter(({ status, mac }) => status !== 'accepted' && mac !== '').map(({ mac }) => mac),
    )
    const accepted = await stores.of(tenant_id).devices.acceptedByMacs([...macs])
    return new Map(accepted.map(({ mac, uid, name }) => [mac, { uid, name }]))
  }
}
