// Devices without an agent, as they join. Whose key it was that let them sign in says to which namespace they
// come; who they are says the host key of their own SSH server, which the gateway has seen proved. So a
// device is the same one whichever enrolment key it comes with, and a host key is a device of its own in
// every namespace. New ones wait as pending.
import { Failure } from '@hawser/contract/failures'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { neighbourhood } from '../../kit/address.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { hostKeyUid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import { freshDevice, nameFrom } from './enrolment.ts'
import type { TunnelDevice } from './tunnels.ts'

/** Somebody who signed in with an enrolment key. */
export interface Newcomer {
  readonly tenant_id: string
  /** The fingerprint of the key. */
  readonly enrolment_key: string
  /** What the device would like to be called; empty: it said nothing. */
  readonly name: string
  readonly source: string
}

/** What was learned of its SSH server. */
export interface Host {
  /** PEM. */
  readonly public_key: string
  /** SHA-256, as OpenSSH shows it. */
  readonly fingerprint: string
  /** Its ident without the protocol: `OpenSSH_9.2p1 Debian-2`. */
  readonly software: string
}

export interface AgentlessRules {
  /**
   * The name of the namespace, if this very key may bring devices there. One answer for all that is not so.
   */
  welcome(tenant_id: string, key: { fingerprint: string; line: string }): Promise<string | undefined>
  /** Whether the key that was good still is. */
  isWelcome(tenant_id: string, enrolment_key: string): Promise<boolean>
  /** The device, which is made if it is new. Throws a Failure with a sentence for its owner. */
  join(newcomer: Newcomer, host: Host): Promise<{ device: TunnelDevice; status: DeviceRow['status'] }>
}

export interface AgentlessParts {
  stores: Stores
  clock: Clock
  /** New devices from one address. */
  newPerSource: Limiter
  /** The disk is full: nothing is added that can wait. */
  isFull(): boolean
}

const longestInfo = 255

export function agentless({ stores, clock, newPerSource, isFull }: AgentlessParts): AgentlessRules {
  return {
    async welcome(tenant_id, { fingerprint, line }) {
      const key = await stores.of(tenant_id).enrolmentKeys.find(fingerprint)
      // The fingerprint finds it; whether it is the very key, the key itself says.
      return key?.public_key === line ? (await stores.namespaces.find(tenant_id))?.name : undefined
    },
    isWelcome: async (tenant_id, enrolment_key) =>
      (await stores.of(tenant_id).enrolmentKeys.find(enrolment_key)) !== undefined,

    async join({ tenant_id, enrolment_key, name, source }, { public_key, fingerprint, software }) {
      const uid = hostKeyUid(tenant_id, public_key)
      const mine = stores.of(tenant_id).devices
      const told = {
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
        if ((Object.keys(told) as (keyof typeof told)[]).some((key) => row[key] !== told[key]))
          await mine.save(uid, told)
        return { device, status: row.status }
      }
      if (isFull())
        throw new Failure('unavailable', { message: 'The disk of the server is full.', retryAfter: 60 })
      const wait_s = newPerSource.take(neighbourhood(source))
      if (wait_s > 0)
        throw new Failure('tooMany', {
          message: 'Too many new devices from one address; wait a little.',
          retryAfter: wait_s,
        })
      try {
        await mine.insert({
          ...told,
          uid,
          name: nameFrom(name, `ssh-${uid.slice(0, 8)}`),
          mac: '',
          public_key,
          ...freshDevice(iso(clock.now())),
          online: 0,
          proved: 1,
        })
      } catch (error) {
        // It came twice at once; what the other one inserted is what we would have.
        if (!stores.isDuplicate(error)) throw error
      }
      return { device, status: 'pending' }
    },
  }
}
