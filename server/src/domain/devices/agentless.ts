// Devices without an agent, as they join. The enrolment key with which a device signs in decides its
// namespace. The host key of its own SSH server, verified by the gateway, is its identity: the same with
// every enrolment key, and a separate device in every namespace. A device belongs to one enrolment key while
// connected, and some minutes longer, as long as that key exists. A rival with another key may stand in while
// the device is silent; its own key takes the place back. New devices are pending, unless an accept rule
// matches.
import { Failure } from '@hawser/contract/failures'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { iso, minute_ms } from '../../kit/clock.ts'
import { hostKeyUid } from '../../kit/ids.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { With } from '../audit/parts.ts'
import { freshDevice, nameFrom } from './device-facts.ts'
import type { Joining } from './joining.ts'
import type { Presence } from './presence.ts'
import type { TunnelDevice } from './tunnels.ts'

export interface JoiningDevice {
  readonly tenant_id: string
  readonly enrolment_key: string
  /** Empty: none. */
  readonly name: string
  readonly source: string
}

export interface SshHost {
  readonly public_key: string
  readonly fingerprint: string
  /** The server's ident without the protocol: `OpenSSH_9.2p1 Debian-2`. */
  readonly software: string
}

export interface AgentlessRules {
  /**
   * The name of the namespace, if this key may enrol devices there. An unknown namespace and an unknown key
   * look alike.
   */
  admit(tenant_id: string, key: { fingerprint: string; line: string }): Promise<string | undefined>
  hasKey(tenant_id: string, enrolment_key: string): Promise<boolean>
  /** Throws a Failure with a sentence for the device's owner. */
  join(joining: JoiningDevice, host: SshHost): Promise<DeviceJoin>
}

export interface DeviceJoin {
  readonly device: TunnelDevice
  readonly status: DeviceRow['status']
  /** The device is connected with another enrolment key, or may still come back with it. */
  readonly isRival: boolean
  /** Stores how the device is connected; called once the connection has become its tunnel, and only then. */
  connected(): Promise<void>
}

export interface AgentlessParts extends With<'stores' | 'clock'> {
  joining: Joining
  presence: Pick<Presence, 'of'>
}

const longestInfo = 255
/** After this long, a device belongs to the key that it connects with next. */
const away_ms = 5 * minute_ms

export function agentless({ stores, clock, joining, presence }: AgentlessParts): AgentlessRules {
  const started_at = clock.now()

  async function isOthers(row: DeviceRow, enrolment_key: string): Promise<boolean> {
    const theirs = row.enrolment_key
    if (!theirs || theirs === enrolment_key) return false
    if (!(await stores.of(row.tenant_id).enrolmentKeys.find(theirs))) return false
    const { online, last_seen } = presence.of(row)
    return online || Math.max(Date.parse(last_seen), started_at) > clock.now() - away_ms
  }

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
        const isRival = await isOthers(row, enrolment_key)
        const own = isRival ? { ...reported, enrolment_key: row.enrolment_key } : reported
        return {
          device,
          status: row.status,
          isRival,
          connected: async () => void (await mine.save(uid, own)),
        }
      }
      const asked = nameFrom(name, `ssh-${uid.slice(0, 8)}`)
      const { status } = await joining.join(
        tenant_id,
        {
          ...reported,
          // No key owns the device before a connection with it is its tunnel.
          enrolment_key: '',
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
      return { device, status, isRival: false, connected: async () => void (await mine.save(uid, reported)) }
    },
  }
}
