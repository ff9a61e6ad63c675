// The names and places of devices that are containers, offered by a connector or by an agent in its
// connector mode. The device follows its container: it is renamed with it, unless a person named the device or
// an accepted device has the name. When the container is gone for good, its device gives up name and place and
// is `removed`; its record, tags and sessions stay for a successor under the same name.
import { iso } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import { theServer, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { deviceActor } from './device-rows.ts'
import { holdSlot } from './device-view.ts'
import type { Presence } from './presence.ts'
import type { Timeline } from './timeline.ts'

export interface ContainerParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  presence: Presence
  timeline: Pick<Timeline, 'note'>
  onTaken(error: unknown): void
}

type ContainerRow = Pick<DeviceRow, 'uid' | 'name' | 'container'>
type CalledRow = ContainerRow & Pick<DeviceRow, 'status' | 'named'>

export interface Containers {
  /**
   * Renames accepted devices after their containers, where names are free: of this connector, or of agents
   * (null).
   */
  followNames(tenant_id: string, connector: string | null): Promise<void>
  /** Stores the present name of an agent's container, and follows it. */
  called(row: DeviceRow, name: string): Promise<void>
  /** According to their engine or the agent. */
  gone(tenant_id: string, uids: readonly string[], said?: AuditActor): Promise<void>
}

export const connecting = (tenant_id: string): AuditActor => ({ ...theServer, name: 'connector', tenant_id })

/** Names of devices that are not accepted may coincide. */
export function calledColumns(row: CalledRow, container: string) {
  // On a device from before names were followed, a name that does not fit is a person's.
  const named = row.container === '' && row.name !== container ? 1 : row.named
  return { container, named, name: named === 0 && row.status !== 'accepted' ? container : row.name } as const
}

/** A device that a person rejected or set back stays: the decision counts for its successor, too. */
export const mayGiveUp = ({ status, decided }: Pick<DeviceRow, 'status' | 'decided'>): boolean =>
  status === 'accepted' || (status === 'pending' && decided === 0)

/**
 * The devices that may take the names of their containers. A name is free when nobody has it, or when its
 * owner takes another one at the same time, so that devices may swap or rotate names.
 */
export function namesToTake<Row extends ContainerRow>(
  wanting: readonly Row[],
  holders: readonly Pick<DeviceRow, 'uid' | 'name'>[],
): Row[] {
  const holderOf = new Map(holders.map(({ name, uid }) => [name, uid]))
  const movers = new Map<string, Row>()
  const wanted = new Set<string | null>()
  for (const row of wanting) {
    if (!wanted.has(row.container)) movers.set(row.uid, row)
    wanted.add(row.container)
  }
  const waiting = new Map<string, string>()
  const blocked: string[] = []
  for (const [uid, { container }] of movers) {
    const holder = holderOf.get(container ?? '')
    if (holder === undefined) continue
    waiting.set(holder, uid)
    if (!movers.has(holder)) blocked.push(uid)
  }
  for (let uid = blocked.pop(); uid !== undefined; uid = blocked.pop()) {
    movers.delete(uid)
    const next = waiting.get(uid)
    if (next !== undefined && movers.has(next)) blocked.push(next)
  }
  return [...movers.values()]
}

/** No device can be called this; it stands in while names are swapped. */
const parked = (uid: string): string => `/${uid}`
/** Per connector, without sessions and waiting for a successor. */
const mostGone = 1_000

function following(parts: ContainerParts): Containers['followNames'] {
  const { stores, audit, bus, timeline } = parts

  async function plan(
    inside: Pick<StoresInTransaction, 'of'>,
    tenant_id: string,
    connector: string | null,
  ): Promise<DeviceRow[]> {
    const mine = inside.of(tenant_id).devices
    const wanting = await mine.toRename(connector)
    return namesToTake(wanting, await mine.acceptedByNames(wanting.map(({ container }) => container ?? '')))
  }

  async function rename(inside: StoresInTransaction, record: Recorder, row: DeviceRow): Promise<void> {
    const { tenant_id, uid, name } = row
    const after = row.container ?? name
    await inside.of(tenant_id).devices.save(uid, { name: after })
    record(renamed(row, after))
  }

  /** Somebody may take a name at this moment: then the next list or report tries again. */
  async function orTaken(...change: Parameters<typeof audit.change<DeviceRow[]>>): Promise<DeviceRow[]> {
    try {
      return await audit.change(...change)
    } catch (error) {
      if (!stores.isDuplicate(error)) throw error
      parts.onTaken(error)
      return []
    }
  }

  async function followNames(tenant_id: string, connector: string | null): Promise<void> {
    // Mostly there is nothing to do, which costs no transaction.
    if ((await plan(stores, tenant_id, connector)).length === 0) return
    const moved = await orTaken(connecting(tenant_id), async (inside, record) => {
      const movers = await plan(inside, tenant_id, connector)
      const wanted = new Set(movers.map(({ container }) => container))
      const mine = inside.of(tenant_id).devices
      // Accepted names differ at every moment: names that others take are given up first.
      for (const { uid, name } of movers) if (wanted.has(name)) await mine.save(uid, { name: parked(uid) })
      for (const row of movers) await rename(inside, record, row)
      return movers
    })
    for (const { uid, name, container } of moved) {
      timeline.note(uid, { kind: 'followed-name', before: name, after: container ?? '' })
      bus.tell('device.changed', { tenant_id, uid, status: 'accepted' })
    }
  }

  return followNames
}

export function containers(parts: ContainerParts): Containers {
  const { stores, audit, presence, bus, clock, timeline } = parts
  const followNames = following(parts)

  /** Undefined: the device stays as it is. */
  async function giveUp(
    inside: StoresInTransaction,
    record: Recorder,
    tenant_id: string,
    uid: string,
  ): Promise<GivenUp | undefined> {
    const { devices: mine, sessions } = inside.of(tenant_id)
    const row = await mine.find(uid)
    if (!row || !mayGiveUp(row)) return undefined
    const { connector } = row
    const target = { kind: 'device', id: uid, name: row.name }
    const before = { status: row.status }
    const detail = { why: 'Its container is gone.' }
    if (row.status === 'pending' && !(await sessions.anyOfDevice(uid))) {
      await mine.remove(uid)
      record({ action: 'device.removed', target, before, detail })
      return { uid, connector, status: 'gone' }
    }
    const now = iso(clock.now())
    const container = row.container || row.name
    await mine.save(uid, { status: 'removed', status_update_at: now, container })
    await sessions.closeOfDevice(uid)
    // Any machine can call itself a container, come and go: it holds its slot as a deleted device does.
    const namespace =
      connector === null && row.status === 'accepted' ? await inside.namespaces.find(tenant_id) : undefined
    if (namespace) await holdSlot(inside, namespace, uid, clock)
    record({ action: 'device.removed', target, before, after: { status: 'removed' }, detail })
    return { uid, connector, status: 'removed' }
  }

  return {
    followNames,

    async called({ tenant_id, uid, remote_addr: source }, name) {
      const status = await audit.change(
        deviceActor({ tenant_id, uid, name, source }),
        async (inside, record) => {
          const mine = inside.of(tenant_id).devices
          // A person may have named it at this moment.
          const row = await mine.find(uid)
          if (!row) return undefined
          const next = calledColumns(row, name)
          await mine.save(uid, next)
          if (next.name !== row.name) record(renamed(row, next.name))
          return row.status
        },
      )
      if (status) bus.tell('device.changed', { tenant_id, uid, status })
      await followNames(tenant_id, null)
    },

    async gone(tenant_id, uids, said = connecting(tenant_id)) {
      if (uids.length === 0) return
      const outcomes = await audit.change(said, async (inside, record) => {
        const all: GivenUp[] = []
        for (const uid of uids) {
          const outcome = await giveUp(inside, record, tenant_id, uid)
          if (outcome) all.push(outcome)
        }
        return all
      })
      const touched = outcomes.flatMap(({ connector, status }) => (status === 'removed' && connector) || [])
      for (const connector of new Set(touched))
        await stores.of(tenant_id).devices.forgetGone(connector, mostGone)
      for (const { uid, status } of outcomes) {
        if (status === 'gone') presence.forget(uid)
        else timeline.note(uid, { kind: 'followed-status', status })
        bus.tell('device.changed', { tenant_id, uid, status })
      }
    },
  }
}

interface GivenUp extends Pick<DeviceRow, 'uid' | 'connector'> {
  readonly status: 'removed' | 'gone'
}

const renamed = ({ uid, name }: Pick<DeviceRow, 'uid' | 'name'>, after: string) =>
  ({
    action: 'device.updated',
    target: { kind: 'device', id: uid, name },
    before: { name },
    after: { name: after },
  }) as const
