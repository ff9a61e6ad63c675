// Which devices may open a tunnel, and what a tunnel says about a device: while one is open the device is
// online. Pending devices may open one, so that people can reach them the moment they are accepted. Anybody
// who knows a device can get a token for it. So what such a token's calls say of the device, and what they
// change, counts only after a tunnel with that very token has proved the device's key.
import { Failure } from '@hawser/contract/failures'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Bus } from '../../bus/bus.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Gate, SignedDevice } from '../callers/callers.ts'
import { infoColumns } from './enrolment.ts'
import type { Presence } from './presence.ts'
import type { DeviceReports } from './reports.ts'
import type { ShellHubTokens } from '../callers/shellhub-tokens.ts'

export interface TunnelDevice {
  readonly uid: string
  readonly tenant_id: string
  /** The PEM that the agent sent. */
  readonly public_key: string
  /** SHA-256 of the token that the tunnel came with. */
  readonly token?: string
  /** Its agent proved once that it has the private key, so every later tunnel must prove it, too. */
  readonly mustProve: boolean
  /** A proof of the key changes something, though the tunnel may not need it. */
  readonly wantsProof?: boolean
  /** The changes that the proof makes to the stored device. */
  readonly onProof?: Partial<Pick<DeviceRow, 'token_at' | 'proved_token'>>
  /** Nobody has proved its key by a token so far; false: its tunnels are judged by the key alone. */
  readonly isFirstProof?: boolean
  /** The device as the caller who got the token described it. */
  readonly said?: SignedDevice['said']
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
   * one. It calls `inTurn` before it reads the database: after a restart most devices must wait, and these
   * should cost no query. `source` is the address that the tunnel comes from.
   */
  admit(
    bearer: string | undefined,
    inTurn: (signed: SignedDevice) => void,
    source: string,
  ): Promise<TunnelDevice>
  /** The agent proved itself by a signature; from now on it must always do so. */
  proved(device: TunnelDevice): Promise<void>
  /**
   * The agent has the private key, in whichever way it proved that. `reports`: it says in the tunnel what
   * there is to know of the device.
   */
  recognised(
    device: TunnelDevice,
    tunnel: { readonly source?: string | undefined; readonly reports: boolean },
  ): Promise<void>
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
  reports: Pick<DeviceReports, 'take'>
  bus: Bus
  clock: Clock
  /** Whether there are other nodes; then the database numbers tunnels. */
  clustered: boolean
}

export function tunnelRules({
  stores,
  gate,
  shellHub,
  presence,
  reports,
  bus,
  clock,
  clustered,
}: TunnelParts): TunnelRules {
  let claimed = 0
  return {
    async admit(bearer, inTurn, source) {
      const signed = await gate.deviceOfToken(bearer)
      inTurn(signed)
      const { uid, tenant_id, byShellHub, token, sole_token, said } = signed
      const row = await stores.of(tenant_id).devices.find(uid)
      if (!row || row.status === 'rejected') throw new RefusedDevice(uid)
      if (byShellHub && shellHub.replaced(row)) throw new Failure('unauthenticated')
      // Once an agent has proved itself with a token of ours, ShellHub's no longer counts. Only after
      // the proof: anyone who knows the device can get a token, and would otherwise lock out its agent.
      const isRenewed = !byShellHub && row.token_at === null && (await shellHub.countIn(tenant_id))
      const isUnbound =
        row.proved_token === null || (sole_token !== undefined && sole_token !== row.proved_token)
      return {
        uid: row.uid,
        tenant_id: row.tenant_id,
        public_key: row.public_key,
        token,
        mustProve: row.proved === 1,
        wantsProof: isRenewed || isUnbound || isNews(row, said, source),
        onProof: {
          ...(isRenewed ? { token_at: iso(clock.now()) } : {}),
          ...(isUnbound ? { proved_token: sole_token ?? '' } : {}),
        },
        isFirstProof: row.proved_token === null,
        said,
        version: row.info_version,
        unaccepted: row.status !== 'accepted',
      }
    },
    async proved({ tenant_id, uid, mustProve }) {
      if (!mustProve) await stores.of(tenant_id).devices.save(uid, { proved: 1 })
    },
    async recognised(device, tunnel) {
      const { tenant_id, uid, onProof = {} } = device
      if (!device.wantsProof) return
      const { devices } = stores.of(tenant_id)
      if (Object.keys(onProof).length > 0) await devices.save(uid, onProof)
      if (!tunnel.reports) await reports.take(device, device.said ?? {}, tunnel.source)
      if (!device.isFirstProof) return
      // Auth device remembers on every node whether the key was ever proved.
      const row = await devices.find(uid)
      if (row) bus.tell('device.changed', { tenant_id, uid, status: row.status })
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

/** Whether the device is said to be something else than what is stored, or comes from another address. */
function isNews(row: DeviceRow, said: SignedDevice['said'], source: string): boolean {
  const facts: Partial<DeviceRow> = { remote_addr: source, ...(said?.info ? infoColumns(said.info) : {}) }
  return (Object.keys(facts) as (keyof DeviceRow)[]).some((name) => row[name] !== facts[name])
}
