// Which devices may hold a tunnel, and what a tunnel says about a device: while one is up the device is online. Pending
// devices may hold one, so that they can be reached the moment they are accepted.
import { device as deviceAccess } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import type { Stores } from '../storage/stores.ts'
import type { From, Gate } from './callers.ts'
import type { Presence } from './presence.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** As the agent sent it: PEM. */
  readonly public_key: string
  /** Its agent has proved once that it holds the private key; one that does not is somebody else. */
  readonly mustProve: boolean
}

export interface TunnelRules {
  /** Throws a Failure unless the token is that of a device which may connect. */
  admit(bearer: string | undefined, from: From): Promise<TunnelDevice>
  proved(device: TunnelDevice): Promise<void>
  up(device: TunnelDevice): void
  down(device: TunnelDevice): Promise<void>
  /** Another node has its tunnel now. */
  moved(device: TunnelDevice): void
  claim(device: TunnelDevice): Promise<number>
}

export interface TunnelParts {
  stores: Stores
  gate: Gate
  presence: Presence
  /** There are other nodes: tunnels are numbered by the database. */
  clustered: boolean
}

export function tunnelRules({ stores, gate, presence, clustered }: TunnelParts): TunnelRules {
  let claimed = 0
  return {
    async admit(bearer, from) {
      const caller = await gate.admit(deviceAccess, { bearer, apiKey: undefined, tenant: undefined }, from)
      if (caller.kind !== 'device') throw new Failure('unauthenticated')
      const row = await stores.of(caller.tenant_id).devices.find(caller.uid)
      if (!row) throw new Failure('unauthenticated')
      return { uid: row.uid, tenant_id: row.tenant_id, public_key: row.public_key, mustProve: row.proved === 1 }
    },
    async proved({ tenant_id, uid, mustProve }) {
      if (!mustProve) await stores.of(tenant_id).devices.save(uid, { proved: 1 })
    },
    up: ({ uid }) => presence.up(uid),
    down: ({ uid }) => presence.down(uid),
    moved: ({ uid }) => presence.forget(uid),
    async claim({ tenant_id, uid }) {
      if (!clustered) return ++claimed
      const number = await stores.of(tenant_id).devices.claimTunnel(uid)
      if (number === undefined) throw new Failure('unauthenticated')
      return number
    },
  }
}
