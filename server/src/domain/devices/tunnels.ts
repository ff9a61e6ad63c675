// Which devices may open a tunnel, and what a tunnel says about a device: while one is open the device is
// online. Pending devices may open one, so that people can reach them the moment they are accepted.
import { Failure } from '@hawser/contract/failures'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Gate } from '../callers/callers.ts'
import type { Presence } from './presence.ts'
import type { ShellHubTokens } from '../callers/shellhub-tokens.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** The PEM that the agent sent. */
  readonly public_key: string
  /** Its agent proved once that it has the private key, so every later tunnel must prove it, too. */
  readonly mustProve: boolean
  /**
   * The device came from a ShellHub and now uses a token of ours. Once its agent has proved itself,
   * ShellHub's token does not count any more.
   */
  readonly renewed?: boolean
  /** Of its agent, as it was last reported. */
  readonly version?: string
  /** Nobody may have anything running on it: it is pending or unused. */
  readonly unaccepted?: boolean
}

/** The token was good once, and its device was rejected or removed, or its namespace deleted. */
export class RefusedDevice extends Failure {
  readonly uid: string
  constructor(uid: string) {
    super('unauthenticated')
    this.uid = uid
  }
}

export interface TunnelRules {
  /**
   * Throws a Failure unless the token is that of a device which may connect, and a RefusedDevice if it was
   * one. It calls `inTurn` before it
   * reads the database: after a restart most devices must wait, and these should cost no query.
   */
  admit(bearer: string | undefined, inTurn: (uid: string) => void): Promise<TunnelDevice>
  /** The agent proved itself by a signature; from now on it must always do so. */
  proved(device: TunnelDevice): Promise<void>
  /** The agent has the private key, in whichever way it proved that. */
  recognised(device: TunnelDevice): Promise<void>
  /** A heartbeat through the tunnel. */
  up(device: TunnelDevice, number: number): void
  down(device: TunnelDevice, number: number): Promise<void>
  /** When this node last heard the device, in milliseconds since 1970. */
  heardAt(device: TunnelDevice): number | undefined
  /** Another node has its tunnel now. */
  moved(device: TunnelDevice): void
  /** Two machines use the device's identity. */
  conflicted(
    device: TunnelDevice,
    report: { began_at: number; seen_at: number; addresses: readonly string[] },
  ): Promise<void>
  /** The number of a new tunnel, higher than that of any earlier one of the device. */
  claim(device: TunnelDevice): Promise<number>
}

export interface TunnelParts {
  stores: Stores
  gate: Gate
  shellHub: Pick<ShellHubTokens, 'replaced' | 'countIn'>
  presence: Presence
  clock: Clock
  /** Whether there are other nodes; then the database numbers tunnels. */
  clustered: boolean
}

export function tunnelRules({
  stores,
  gate,
  shellHub,
  presence,
  clock,
  clustered,
}: TunnelParts): TunnelRules {
  let claimed = 0
  return {
    async admit(bearer, inTurn) {
      const { uid, tenant_id, byShellHub } = await gate.deviceOfToken(bearer)
      inTurn(uid)
      const row = await stores.of(tenant_id).devices.find(uid)
      if (!row || row.status === 'rejected') throw new RefusedDevice(uid)
      if (byShellHub && shellHub.replaced(row)) throw new Failure('unauthenticated')
      const renewed = !byShellHub && row.token_at === null && (await shellHub.countIn(tenant_id))
      return {
        uid: row.uid,
        tenant_id: row.tenant_id,
        public_key: row.public_key,
        mustProve: row.proved === 1,
        renewed,
        version: row.info_version,
        unaccepted: row.status !== 'accepted',
      }
    },
    async proved({ tenant_id, uid, mustProve }) {
      if (!mustProve) await stores.of(tenant_id).devices.save(uid, { proved: 1 })
    },
    async recognised({ tenant_id, uid, renewed }) {
      // Only after the proof: anyone who knows a device's identity can get a token for it, and would
      // otherwise lock out its agent.
      if (renewed) await stores.of(tenant_id).devices.save(uid, { token_at: iso(clock.now()) })
    },
    // The numbers of a single node are not in the database.
    up: ({ uid }, number) => presence.up(uid, clustered ? number : 0),
    down: ({ uid }, number) => presence.down(uid, clustered ? number : 0),
    heardAt: ({ uid }) => presence.heardAt(uid),
    moved: ({ uid }) => presence.forget(uid),
    async conflicted({ tenant_id, uid }, { began_at, seen_at, addresses }) {
      const conflict = JSON.stringify({ since: iso(began_at), last_at: iso(seen_at), addresses })
      await stores.of(tenant_id).devices.save(uid, { conflict })
    },
    async claim({ tenant_id, uid }) {
      if (!clustered) return ++claimed
      const number = await stores.of(tenant_id).devices.claimTunnel(uid)
      if (number === undefined) throw new Failure('unauthenticated')
      return number
    },
  }
}
