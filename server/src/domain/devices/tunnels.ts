// Which devices may hold a tunnel, and what a tunnel says about a device: while one is up the device is
// online. Pending devices may hold one, so that they can be reached the moment they are accepted.
import { Failure } from '@hawser/contract/failures'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Gate } from '../callers/callers.ts'
import type { Presence } from './presence.ts'
import type { ShellHubTokens } from '../callers/shellhub-tokens.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** As the agent sent it: PEM. */
  readonly public_key: string
  /** Its agent has proved once that it holds the private key; one that does not is somebody else. */
  readonly mustProve: boolean
  /**
   * It came from a ShellHub, and this is a token of ours: once its agent has proved itself, ShellHub's is not
   * taken any more.
   */
  readonly renewed?: boolean
}

export interface TunnelRules {
  /**
   * Throws a Failure unless the token is that of a device which may connect. `inTurn` is asked in between, as
   * soon as it is known whose token it is: after a restart most of those who come must wait, and cost no look
   * into the database.
   */
  admit(bearer: string | undefined, inTurn: (uid: string) => void): Promise<TunnelDevice>
  /** By a signature: from now on it must. */
  proved(device: TunnelDevice): Promise<void>
  /** Its agent holds the private key, in whichever way that was proved. */
  recognised(device: TunnelDevice): Promise<void>
  /** A sign of life. */
  up(device: TunnelDevice, number: number): void
  down(device: TunnelDevice, number: number): Promise<void>
  /** Another node has its tunnel now. */
  moved(device: TunnelDevice): void
  claim(device: TunnelDevice): Promise<number>
}

export interface TunnelParts {
  stores: Stores
  gate: Gate
  shellHub: Pick<ShellHubTokens, 'replaced' | 'countIn'>
  presence: Presence
  clock: Clock
  /** There are other nodes: tunnels are numbered by the database. */
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
      if (!row || row.status === 'rejected' || (byShellHub && shellHub.replaced(row)))
        throw new Failure('unauthenticated')
      const renewed = !byShellHub && row.token_at === null && (await shellHub.countIn(tenant_id))
      return {
        uid: row.uid,
        tenant_id: row.tenant_id,
        public_key: row.public_key,
        mustProve: row.proved === 1,
        renewed,
      }
    },
    async proved({ tenant_id, uid, mustProve }) {
      if (!mustProve) await stores.of(tenant_id).devices.save(uid, { proved: 1 })
    },
    async recognised({ tenant_id, uid, renewed }) {
      // Not before: whoever knows what a device is called can get a token for it, and would lock out its
      // agent.
      if (renewed) await stores.of(tenant_id).devices.save(uid, { token_at: iso(clock.now()) })
    },
    // Numbers of one node alone are not in the database.
    up: ({ uid }, number) => presence.up(uid, clustered ? number : 0),
    down: ({ uid }, number) => presence.down(uid, clustered ? number : 0),
    moved: ({ uid }) => presence.forget(uid),
    async claim({ tenant_id, uid }) {
      if (!clustered) return ++claimed
      const number = await stores.of(tenant_id).devices.claimTunnel(uid)
      if (number === undefined) throw new Failure('unauthenticated')
      return number
    },
  }
}
