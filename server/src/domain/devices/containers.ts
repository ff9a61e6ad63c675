// The names and places of devices that are containers, whoever offers them: a connector, or an agent in its
// connector mode. The device follows its container: it is renamed with it, unless a person named the device or
// an accepted device has the name. When the container is gone for good, its device gives up name and place and
// is `removed`; its record, tags and sessions stay for a successor under the same name.
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { theServer, type Audit, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { Presence } from './presence.ts'
import type { Timeline } from './timeline.ts'

export interface ContainerParts {
  stores: Stores
  audit: Audit
  presence: Presence
  bus: Bus
  clock: Clock
  timeline: Pick<Timeline, 'note'>
}

type ContainerRow = Pick<DeviceRow, 'uid' | 'name' | 'container'>
type CalledRow = ContainerRow & Pick<DeviceRow, 'status' | 'named'>

export interface Containers {
  /** Gives accepted devices the names of their containers, as far as those are free. */
  followNames(tenant_id: string): Promise<void>
  /** Notes what the container of an agent is called now, and follows it. */
  called(row: DeviceRow, name: string): Promise<void>
  /** The containers of these devices are gone for good. */
  gone(tenant_id: string, uids: readonly string[]): Promise<void>
}

/** The actor of changes that follow from what an engine says. */
export const connecting = (tenant_id: string): AuditActor => ({ ...theServer, name: 'connector', tenant_id })

/** What a device remembers of its container's name. Names of devices that are not accepted need not differ. */
export function calledColumns(row: CalledRow, container: string) {
  // A device from before names were followed: a name that does not fit is a person's.
  const named = row.container === '' && row.name !== container ? 1 : row.named
  return { container, named, name: named === 0 && row.status !== 'accepted' ? container : row.name } as const
}

/**
 * Which of the devices may take the names of their containers. A name is free when nobody has it, or when
 * whoever has it takes another one at the same time. So two devices may swap names, and three may rotate them.
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
  for (let before = -1; before !== movers.size;) {
    before = movers.size
    for (const [uid, { container }] of movers) {
      const holder = holderOf.get(container ?? '')
      if (holder !== undefined && !movers.has(holder)) movers.delete(uid)
    }
  }
  return [...movers.values()]
}

export function containers({ stores, audit, presence, bus, clock, timeline }: ContainerParts): Containers {
  async function plan(inside: Pick<StoresInTransaction, 'of'>, tenant_id: string): Promise<DeviceRow[]> {
    const mine = inside.of(tenant_id).devices
    const wanting = await mine.toRename()
    return namesToTake(wanting, await mine.acceptedByNames(wanting.map(({ container }) => container ?? '')))
  }

  async function rename(inside: StoresInTransaction, record: Recorder, row: DeviceRow): Promise<void> {
    const { tenant_id, uid, name } = row
    const after = row.container ?? name
    await inside.of(tenant_id).devices.save(uid, { name: after })
    record({
      action: 'device.updated',
      target: { kind: 'device', id: uid, name },
      before: { name },
      after: { name: after },
    })
  }

  /** Somebody may take one of the names in this moment: then the next change tries again. */
  async function orTaken(...change: Parameters<typeof audit.change<DeviceRow[]>>): Promise<DeviceRow[]> {
    try {
      return await audit.change(...change)
    } catch (error) {
      if (!stores.isDuplicate(error)) throw error
      return []
    }
  }

  async function followNames(tenant_id: string): Promise<void> {
    // Most of the time nothing is to be done, which costs no transaction.
    if ((await plan(stores, tenant_id)).length === 0) return
    const renamed = await orTaken(connecting(tenant_id), async (inside, record) => {
      const movers = await plan(inside, tenant_id)
      const wanted = new Set(movers.map(({ container }) => container))
      const mine = inside.of(tenant_id).devices
      // Accepted names differ at every moment: names that others take are given up first.
      for (const { uid, name } of movers) if (wanted.has(name)) await mine.save(uid, { name: uid })
      for (const row of movers) await rename(inside, record, row)
      return movers
    })
    for (const { uid, name, container } of renamed) {
      timeline.note(uid, { kind: 'renamed', before: name, after: container ?? '' })
      bus.tell('device.changed', { tenant_id, uid, status: 'accepted' })
    }
  }

  /** What becomes of a device whose container is gone; undefined: it stays as it is. */
  async function giveUp(
    inside: StoresInTransaction,
    record: Recorder,
    tenant_id: string,
    uid: string,
  ): Promise<'removed' | 'gone' | undefined> {
    const { devices: mine, sessions } = inside.of(tenant_id)
    const row = await mine.find(uid)
    // A person's decision counts for the successor, too.
    const isOpen = row?.status === 'pending' && row.decided === 0
    if (!row || (row.status !== 'accepted' && !isOpen)) return undefined
    const target = { kind: 'device', id: uid, name: row.name }
    const before = { status: row.status }
    const detail = { why: 'Its container is gone.' }
    if (isOpen && !(await sessions.anyOfDevice(uid))) {
      await mine.remove(uid)
      record({ action: 'device.removed', target, before, detail })
      return 'gone'
    }
    const container = row.container || row.name
    await mine.save(uid, { status: 'removed', status_update_at: iso(clock.now()), container })
    await sessions.closeOfDevice(uid)
    record({ action: 'device.removed', target, before, after: { status: 'removed' }, detail })
    return 'removed'
  }

  return {
    followNames,

    async called(row, name) {
      const { tenant_id, uid } = row
      await stores.of(tenant_id).devices.save(uid, calledColumns(row, name))
      await followNames(tenant_id)
    },

    async gone(tenant_id, uids) {
      if (uids.length === 0) return
      const outcomes = await audit.change(connecting(tenant_id), async (inside, record) => {
        const all: { uid: string; status: 'removed' | 'gone' }[] = []
        for (const uid of uids) {
          const status = await giveUp(inside, record, tenant_id, uid)
          if (status) all.push({ uid, status })
        }
        return all
      })
      for (const { uid, status } of outcomes) {
        if (status === 'gone') presence.forget(uid)
        else timeline.note(uid, { kind: 'status', status })
        bus.tell('device.changed', { tenant_id, uid, status })
      }
      await followNames(tenant_id)
    },
  }
}
