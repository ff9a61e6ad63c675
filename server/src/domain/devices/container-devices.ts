// Containers as devices. Each container of a connector is a device, pending at first or accepted if the
// connector says so, and reachable while it runs unless rejected. The device stays the same while its
// container exists; when that is gone, a new container of its name takes over the device with its status,
// tags, notes and sessions. containers.ts handles names and devices without a successor.
import type { ContainerDevice, ContainerDevices, WatchedConnector } from '../../connectors/supervisor.ts'
import { iso } from '../../kit/clock.ts'
import { deviceUid, newUid } from '../../kit/ids.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { calledColumns, connecting, mayGiveUp, type Containers } from './containers.ts'
import { roomIn } from './device-view.ts'
import { freshDevice, nameFrom } from './device-facts.ts'
import type { Presence } from './presence.ts'

export interface ContainerDeviceParts extends With<'stores' | 'audit' | 'bus' | 'clock'> {
  presence: Presence
  version: string
  containers: Containers
  publicPem(identity: WatchedConnector['identity']): string
  accept(tenant_id: string, uid: string): Promise<void>
  onError(uid: string, error: unknown): void
}

/** The short form of a container's id, which people see and which replaces a MAC. */
const shortId = 12

export interface ContainerDeviceRules extends ContainerDevices {
  leave(tenant_id: string, connector: string): Promise<void>
}

type Listed = Parameters<ContainerDevices['settle']>[1]

interface Found {
  readonly container: Listed['containers'][number]
  readonly mac: string
  readonly name: string
}

/** Device names have no capital letters and no dots. */
const containerName = (name: string, mac = ''): string => nameFrom(name.replaceAll('.', '_'), mac)

type Facts = Pick<
  DeviceRow,
  'mac' | 'remote_addr' | `info_${'id' | 'pretty_name' | 'version' | 'arch' | 'platform'}`
>

/** Devices know the short form of an id, so a second container with the same one is left out. */
function foundIn({ containers }: Listed): Found[] {
  const found = new Map<string, Found>()
  for (const container of containers) {
    const mac = container.id.slice(0, shortId)
    if (!found.has(mac)) found.set(mac, { container, mac, name: containerName(container.name, mac) })
  }
  return [...found.values()]
}

interface Matched {
  readonly known: readonly { at: Found; row: DeviceRow }[]
  readonly fresh: readonly Found[]
  readonly gone: readonly DeviceRow[]
}

/**
 * `removed`: devices whose containers were gone before, oldest first. A container is the device that it was,
 * else the one whose container is gone and had its name.
 */
function match(
  { found, more }: { found: readonly Found[]; more: number },
  living: readonly DeviceRow[],
  removed: readonly DeviceRow[],
): Matched {
  const listed = new Set(found.map(({ mac }) => mac))
  // A cut list may omit existing containers, whose devices stay.
  const gone = more === 0 ? living.filter(({ mac }) => !listed.has(mac)) : []
  const byMac = new Map([...removed, ...living].map((row) => [row.mac, row]))
  const own = new Map(found.map((at) => [at.mac, byMac.get(at.mac)]))
  const isOwn = new Set([...own.values()].map((row) => row?.uid))
  const heirless = new Map(
    [...removed, ...gone].filter(({ uid }) => !isOwn.has(uid)).map((row) => [row.container || row.name, row]),
  )
  const known: { at: Found; row: DeviceRow }[] = []
  const fresh: Found[] = []
  for (const at of found) {
    const row = own.get(at.mac) ?? heirless.get(at.name)
    if (row && !isOwn.has(row.uid)) heirless.delete(at.name)
    if (row) known.push({ at, row })
    // A container that never ran while it was watched is no device yet.
    else if (at.container.running) fresh.push(at)
  }
  const taken = new Set(known.map(({ row }) => row.uid))
  return { known, fresh, gone: gone.filter(({ uid }) => !taken.has(uid)) }
}

function changeOf(row: DeviceRow, name: string, facts: Facts, now: string): Partial<DeviceRow> {
  const next: Partial<DeviceRow> = {
    ...facts,
    ...calledColumns(row, name),
    ...(row.status === 'removed' ? { status: 'pending', status_update_at: now, decided: 0 } : {}),
  }
  return Object.fromEntries(
    Object.entries(next).filter(([key, value]) => row[key as keyof DeviceRow] !== value),
  )
}

function listedChanges(parts: ContainerDeviceParts) {
  const { stores, audit, presence, bus, clock } = parts

  /** Returns the uids of those that came back. */
  async function bringUpToDate(
    tenant_id: string,
    changes: readonly { row: DeviceRow; change: Partial<DeviceRow> }[],
  ): Promise<Set<string>> {
    if (changes.length === 0) return new Set()
    const saved = await audit.change(connecting(tenant_id), async (inside, record) => {
      const mine = inside.of(tenant_id).devices
      const done: (typeof changes)[number][] = []
      for (const { row, change } of changes) {
        // Somebody may have decided about it or named it at this moment.
        const now = await mine.find(row.uid)
        if (now?.status !== row.status || now.named !== row.named) continue
        await mine.save(row.uid, change)
        if (change.mac !== undefined) recordSuccession(record, row, change.mac)
        done.push({ row, change })
      }
      return done
    })
    for (const { row, change } of saved)
      if (change.mac !== undefined || change.name !== undefined)
        bus.tell('device.changed', { tenant_id, uid: row.uid, status: change.status ?? row.status })
    return new Set(saved.filter(({ change }) => change.status !== undefined).map(({ row }) => row.uid))
  }

  function recordSuccession(record: Recorder, { uid, name, mac }: DeviceRow, container: string): void {
    record({
      action: 'device.updated',
      target: { kind: 'device', id: uid, name },
      before: { container: mac },
      after: { container },
    })
  }

  async function add(
    { tenant_id, uid: connector }: WatchedConnector,
    device: Facts & Pick<DeviceRow, 'public_key' | 'name'>,
  ): Promise<void> {
    const now = iso(clock.now())
    const { mac, name, public_key } = device
    const mine = stores.of(tenant_id).devices
    const derived = deviceUid({ mac, public_key, tenant_id })
    const holder = await mine.find(derived)
    // Another node stored it first.
    if (holder?.mac === mac && holder.connector === connector) return
    // A device that this container began may be another container's now, or a stranger's who knew its id.
    const uid = holder ? newUid() : derived
    try {
      await audit.change(connecting(tenant_id), async (inside, record) => {
        await inside.of(tenant_id).devices.insert({
          ...device,
          ...freshDevice(now),
          uid,
          online: 0,
          // Only this server has the private key, so nobody else can claim to be this device.
          proved: 1,
          connector,
          container: name,
        })
        record({
          action: 'device.enrolled',
          target: { kind: 'device', id: uid, name },
          after: { name, status: 'pending' },
          detail: { connector },
        })
      })
    } catch (error) {
      if (!stores.isDuplicate(error)) throw error
    }
  }

  /** Devices with an obstacle are tried again with the next list. */
  async function acceptAll(tenant_id: string, waiting: readonly DeviceRow[]): Promise<boolean> {
    const namespace = waiting.length === 0 ? undefined : await stores.namespaces.find(tenant_id)
    if (!namespace) return false
    const mine = stores.of(tenant_id).devices
    const names = new Set(
      (await mine.acceptedByNames(waiting.map(({ name }) => name))).map((row) => row.name),
    )
    const macs = new Set((await mine.acceptedByMacs(waiting.map(({ mac }) => mac))).map((row) => row.mac))
    const room = await roomIn(stores, namespace, clock)
    let accepted = false
    for (const { uid, name, mac } of waiting) {
      if (names.has(name) || macs.has(mac) || (room !== 'all' && !room.includes(uid))) continue
      names.add(name)
      accepted = true
      // A person may have decided, or the room may be used up: then it stays pending.
      await parts.accept(tenant_id, uid).catch((error: unknown) => parts.onError(uid, error))
    }
    return accepted
  }

  async function removeUnlessUsed(row: DeviceRow): Promise<void> {
    const { tenant_id, uid } = row
    const removed = await audit.change(connecting(tenant_id), async (inside, record) => {
      const { devices, sessions } = inside.of(tenant_id)
      if ((await sessions.anyOfDevice(uid)) || !(await devices.remove(uid))) return false
      record({ action: 'device.removed', target: { kind: 'device', id: uid, name: row.name } })
      return true
    })
    if (!removed) return
    presence.forget(uid)
    bus.tell('device.changed', { tenant_id, uid, status: 'gone' })
  }

  return { bringUpToDate, add, acceptAll, removeUnlessUsed }
}

export function containerDevices(parts: ContainerDeviceParts): ContainerDeviceRules {
  const { stores, clock } = parts
  const { bringUpToDate, add, acceptAll, removeUnlessUsed } = listedChanges(parts)

  return {
    async settle(connector, list, engine) {
      const { tenant_id } = connector
      const mine = stores.of(tenant_id).devices
      const public_key = parts.publicPem(connector.identity)
      const factsOf = ({ container, mac }: Found): Facts => ({
        mac,
        info_id: 'docker',
        info_pretty_name: container.image,
        info_version: parts.version,
        info_arch: engine.arch,
        info_platform: 'connector',
        remote_addr: connector.engine.address,
      })
      const found = foundIn(list)
      const living = await mine.ofConnector(connector.uid)
      const macs = new Set(living.map(({ mac }) => mac))
      const unknown = found.filter(({ mac }) => !macs.has(mac))
      const removed = await mine.goneOfConnector(connector.uid, unknown)
      const { known, fresh, gone } = match({ found, more: list.more }, living, removed)
      const at_now = iso(clock.now())
      const changes = known
        .map(({ at, row }) => ({ row, change: changeOf(row, at.name, factsOf(at), at_now) }))
        .filter(({ change }) => Object.keys(change).length > 0)
      const cameBack = await bringUpToDate(tenant_id, changes)
      await parts.containers.gone(
        tenant_id,
        gone.filter(mayGiveUp).map(({ uid }) => uid),
      )
      await parts.containers.followNames(tenant_id, connector.uid)
      for (const at of fresh) await add(connector, { ...factsOf(at), public_key, name: at.name })
      const now = await mine.ofConnector(connector.uid)
      const listed = new Set(found.map(({ mac }) => mac))
      const isWaiting = ({ uid, mac, status, decided }: DeviceRow): boolean =>
        listed.has(mac) && status === 'pending' && decided === 0 && (connector.accept || cameBack.has(uid))
      const accepted = await acceptAll(tenant_id, now.filter(isWaiting))
      const rows = accepted ? await mine.ofConnector(connector.uid) : now
      const byMac = new Map(rows.map((row) => [row.mac, row]))
      return found.flatMap(({ container, mac }): ContainerDevice[] => {
        const row = byMac.get(mac)
        if (!row || !container.running || row.status === 'rejected') return []
        return [
          { container, name: row.name, device: { uid: row.uid, tenant_id, public_key, mustProve: true } },
        ]
      })
    },

    async leave(tenant_id, connector) {
      const mine = stores.of(tenant_id).devices
      const all = [...(await mine.ofConnector(connector)), ...(await mine.goneOfConnector(connector))]
      for (const row of all) await removeUnlessUsed(row)
      await parts.containers.gone(
        tenant_id,
        (await mine.ofConnector(connector)).filter(mayGiveUp).map(({ uid }) => uid),
      )
    },
  }
}
