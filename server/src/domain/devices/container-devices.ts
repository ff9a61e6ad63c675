// Containers as devices. Each container of a connector is a device of the namespace, identified by its id and
// the connector's key. It appears as pending, or as accepted if the connector says so, and is reachable while
// it runs, unless somebody rejected it. When a container is removed its device is removed, too, unless it has
// had sessions: a sweep must not delete recordings.
import type { ContainerDevice, ContainerDevices, WatchedConnector } from '../../connectors/supervisor.ts'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { deviceUid } from '../../kit/ids.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import { theServer, type Audit } from '../audit/audit.ts'
import { freshDevice, nameFrom } from './enrolment.ts'
import type { Presence } from './presence.ts'

export interface ContainerDeviceParts {
  stores: Stores
  audit: Audit
  presence: Presence
  bus: Bus
  clock: Clock
  version: string
  /** The connector's public key in the form that devices have. */
  publicPem(identity: WatchedConnector['identity']): string
  accept(tenant_id: string, uid: string): Promise<void>
  onError(uid: string, error: unknown): void
}

/** Length of the short form of a container's id, which people see and which identifies the device. */
const shortId = 12

export interface ContainerDeviceRules extends ContainerDevices {
  /** Removes the devices of a deleted connector. */
  leave(tenant_id: string, connector: string): Promise<void>
}

export function containerDevices(parts: ContainerDeviceParts): ContainerDeviceRules {
  const { stores, audit, presence, bus, clock } = parts
  const connecting = (tenant_id: string) => ({ ...theServer, name: 'connector', tenant_id })

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

  return {
    async settle(connector, { containers, more }, facts) {
      const { tenant_id } = connector
      const devices = stores.of(tenant_id).devices
      const public_key = parts.publicPem(connector.identity)
      const known = new Map((await devices.ofConnector(connector.uid)).map((row) => [row.uid, row]))
      const reached: ContainerDevice[] = []
      for (const container of containers) {
        const mac = container.id.slice(0, shortId)
        const uid = deviceUid({ mac, public_key, tenant_id })
        const row = known.get(uid)
        known.delete(uid)
        // A container that never ran while it was watched is no device yet.
        if (!row && !container.running) continue
        const reported = {
          info_id: 'docker',
          info_pretty_name: container.image,
          info_version: parts.version,
          info_arch: facts.arch,
          info_platform: 'connector',
          remote_addr: connector.engine.address,
        }
        const name = row?.name ?? nameFrom(container.name.replaceAll('.', '_'), mac)
        if (!row) await add(connector, { ...reported, uid, mac, public_key, name })
        else if (
          (Object.keys(reported) as (keyof typeof reported)[]).some((key) => row[key] !== reported[key])
        )
          await devices.save(uid, reported)
        if (container.running && row?.status !== 'rejected')
          reached.push({ container, name, device: { uid, tenant_id, public_key, mustProve: true } })
      }
      // When the list was cut, a container that is not in it may still exist.
      if (more === 0) for (const row of known.values()) await removeUnlessUsed(row)
      return reached
    },

    async leave(tenant_id, connector) {
      for (const row of await stores.of(tenant_id).devices.ofConnector(connector)) await removeUnlessUsed(row)
    },
  }

  type NewContainer = Pick<
    DeviceRow,
    | 'uid'
    | 'mac'
    | 'public_key'
    | 'name'
    | 'remote_addr'
    | `info_${'id' | 'pretty_name' | 'version' | 'arch' | 'platform'}`
  >

  async function add(
    { tenant_id, uid: connector, accept }: WatchedConnector,
    device: NewContainer,
  ): Promise<void> {
    const now = iso(clock.now())
    try {
      await audit.change(connecting(tenant_id), async (inside, record) => {
        await inside.of(tenant_id).devices.insert({
          ...device,
          ...freshDevice(now),
          online: 0,
          // Only this server has the private key, so nobody else can claim to be this device.
          proved: 1,
          connector,
        })
        record({
          action: 'device.enrolled',
          target: { kind: 'device', id: device.uid, name: device.name },
          after: { name: device.name, status: 'pending' },
          detail: { connector },
        })
      })
    } catch (error) {
      // Another node was quicker.
      if (!stores.isDuplicate(error)) throw error
      return
    }
    if (!accept) return
    // When its name is taken or the namespace is full, the device stays pending until somebody decides.
    await parts.accept(tenant_id, device.uid).catch((error: unknown) => parts.onError(device.uid, error))
  }
}
