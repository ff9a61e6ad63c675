// Devices without an agent, as they join. The enrolment key with which a device signs in decides its
// namespace. The host key of its own SSH server, which the gateway has verified, is its identity. So a device
// stays the same whichever enrolment key it uses, and one host key is a separate device in every namespace.
// New devices are pending, unless an accept rule of the namespace fits.
import { Failure } from '@hawser/contract/failures'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { iso, type Clock } from '../../kit/clock.ts'
import { hostKeyUid } from '../../kit/ids.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import { freshDevice, nameFrom } from './enrolment.ts'
import type { Joining } from './joining.ts'
import type { TunnelDevice } from './tunnels.ts'

/** A connection that signed in with an enrolment key. */
export interface JoiningDevice {
  readonly tenant_id: string
  /** The fingerprint of the key. */
  readonly enrolment_key: string
  /** The name that the device asks for; empty: none. */
  readonly name: string
  readonly source: string
}

/** What the gateway learned of the device's SSH server. */
export interface SshHost {
  /** PEM. */
  readonly public_key: string
  /** SHA-256, as OpenSSH shows it. */
  readonly fingerprint: string
  /** Its ident without the protocol: `OpenSSH_9.2p1 Debian-2`. */
  readonly software: string
}

export interface AgentlessRules {
  /**
   * The name of the namespace, if this key may enrol devices there. Undefined for an unknown namespace and
   * for an unknown key alike.
   */
  admit(tenant_id: string, key: { fingerprint: string; line: string }): Promise<string | undefined>
  /** Whether the namespace still has the enrolment key. */
  hasKey(tenant_id: string, enrolment_key: string): Promise<boolean>
  /** Gives the device, and creates it if it is new. Throws a Failure with a sentence for its owner. */
  join(joining: JoiningDevice, host: SshHost): Promise<DeviceJoin>
}

/** A device that joins, and what its connection may do. */
export interface DeviceJoin {
  readonly device: TunnelDevice
  readonly status: DeviceRow['status']
  /** The device was last connected with another enrolment key. */
  readonly isRival: boolean
  /** Notes how the device is connected now, once the connection has become its tunnel. */
  connected(): Promise<void>
}

export interface AgentlessParts {
  stores: Stores
  clock: Clock
  joining: Joining
}

const longestInfo = 255

export function agentless({ stores, clock, joining }: AgentlessParts): AgentlessRules {
  return {
    async admit(tenant_id, { fingerprint, line }) {
      const key = await stores.of(tenant_id).enrolmentKeys.find(fingerprint)
      // Two keys can share an MD5 fingerprint, so the whole key is compared.
      return key?.public_key === line ? (await stores.namespaces.find(tenant_id))?.name : undefined
    },
    hasKey: async (tenant_id, enrolment_key) =>
      (await stores.of(tenant_id).enrolmentKeys.find(enrolment_key)) !== undefined,

    async join({ tenant_id, enrolment_key, name, source }, { public_key, fingerprint, software }) {
      const uid = hostKeyUid(tenant_id, public_key)
      const mine = stores.of(tenant_id).devices
      const reported = {
        info_id: agentlessPlatform,
        info_pretty_name: `${software.slice(0, longestInfo - fingerprint.length - 12)}, host key ${fingerprint}`,
        info_version: software.split(' ', 1)[0]!.slice(0, longestInfo),
        info_arch: '',
        info_platform: agentlessPlatform,
        remote_addr: source,
        enrolment_key,
      }
      const device = { uid, tenant_id, public_key, mustProve: true }
      const row = await mine.find(uid)
      if (row) {
        if (row.status === 'rejected')
          throw new Failure('forbidden', { message: 'The device was rejected in this namespace.' })
        const isChanged = (Object.keys(reported) as (keyof typeof reported)[]).some(
          (key) => row[key] !== reported[key],
        )
        return {
          device,
          status: row.status,
          isRival: row.enrolment_key !== enrolment_key,
          async connected() {
            if (isChanged) await mine.save(uid, reported)
          },
        }
      }
      const asked = nameFrom(name, `ssh-${uid.slice(0, 8)}`)
      const { status } = await joining.join(
        tenant_id,
        {
          ...reported,
          ...freshDevice(iso(clock.now())),
          uid,
          hostname: name,
          mac: '',
          public_key,
          online: 0,
          proved: 1,
        },
        { name: asked },
      )
      return { device, status, isRival: false, connected: async () => undefined }
    },
  }
}
