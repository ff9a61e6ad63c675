// Containers as devices. Each container of a connector is a device of the namespace, known by its id and the
// connector's key: it appears pending, or accepted if the connector says so, and is reached while it runs,
// unless somebody rejected it. When its container is gone for good a device goes too, but not one that has a
// history: what was recorded is not ours to delete.
import type { ContainerDevice, ContainerDevices, WatchedConnector } from '../../connectors/supervisor.ts'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { deviceUid } from '../../kit/ids.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import { freshDevice, nameFrom } from './enrolment.ts'
import type { Presence } from './presence.ts'

export interface ContainerDeviceParts {
  stores: Stores
  presence: Presence
  bus: Bus
  clock: Clock
  version: string
  /** The connector's public key, as devices have it. */
  publicPem(identity: WatchedConnector['identity']): string
  accept(tenant_id: string, uid: string): Promise<void>
  onError(uid: string, error: unknown): void
}

/** Devices are known by the short form of a container's id, which is the one that people see. */
const shown = 12

export interface ContainerDeviceRules extends ContainerDevices {
  /** The connector is gone, and so are its containers. */
  leave(tenant_id: string, connector: string): Promise<void>
}

export function containerDevices(parts: ContainerDeviceParts): ContainerDeviceRules {
  const { stores, presence, bus, clock } = parts

  async function removeUnlessUsed(row: DeviceRow): Promise<void> {
    const { tenant_id, uid } = row
    const removed = await stores.transaction(async (inside) => {
      const { devices, sessions } = inside.of(tenant_id)
      return !(await sessions.anyOfDevice(uid)) && (await devices.remove(uid))
    })
    if (!removed) return
    presence.forget(uid)
    bus.tell('device.changed', { tenant_id, uid, status: 'gone' })
  }

  return {
    async settle(connector, { containers, more }, facts) {
      const { tenant_id } = connector
      const devices = stores.of(tenant_id).devices
      const public_key = parts.publicPem(connector.identity)
      const known = new Map((await devices.ofConnector(connector.uid)).map((row) => [row.uid, row]))
      const reached: ContainerDevice[] = []
      for (const container of containers) {
        const mac = container.id.slice(0, shown)
        const uid = deviceUid({ mac, public_key, tenant_id })
        const row = known.get(uid)
        known.delete(uid)
        // What has never run is no device yet.
        if (!row && !container.running) continue
        const told = {
          info_id: 'docker',
          info_pretty_name: container.image,
          info_version: parts.version,
          info_arch: facts.arch,
          info_platform: 'connector',
          remote_addr: connector.engine.address,
        }
        const name = row?.name ?? nameFrom(container.name.replaceAll('.', '_'), mac)
        if (!row) await enter(connector, { ...told, uid, mac, public_key, name })
        else if ((Object.keys(told) as (keyof typeof told)[]).some((key) => row[key] !== told[key]))
          await devices.save(uid, told)
        if (container.running && row?.status !== 'rejected')
          reached.push({ container, name, device: { uid, tenant_id, public_key, mustProve: true } })
      }
      // Those that were not listed because there are too many may still be there.
      if (more === 0) for (const row of known.values()) await removeUnlessUsed(row)
      return reached
    },

    async leave(tenant_id, connector) {
      for (const row of await stores.of(tenant_id).devices.ofConnector(connector)) await removeUnlessUsed(row)
    },
  }

  type Told = Pick<
    DeviceRow,
    | 'uid'
    | 'mac'
    | 'public_key'
    | 'name'
    | 'remote_addr'
    | `info_${'id' | 'pretty_name' | 'version' | 'arch' | 'platform'}`
  >

  async function enter({ tenant_id, uid: connector, accept }: WatchedConnector, told: Told): Promise<void> {
    const now = iso(clock.now())
    try {
      await stores.of(tenant_id).devices.insert({
        ...told,
        ...freshDevice(now),
        online: 0,
        // Whoever else comes with its name and key has to prove what only we can.
        proved: 1,
        connector,
      })
    } catch (error) {
      // Another node was quicker.
      if (!stores.isDuplicate(error)) throw error
      return
    }
    if (!accept) return
    // Its name may be taken, or the namespace full: then it waits for somebody to decide.
    await parts.accept(tenant_id, told.uid).catch((error: unknown) => parts.onError(told.uid, error))
  }
}
