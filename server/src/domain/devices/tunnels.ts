// Which devices may open a tunnel, and what a tunnel says about a device, which is online while it is open.
// Pending devices may open one, so that people can reach them the moment they are accepted. Anybody who knows
// a device can get a token for it, so what such a token's calls say counts only after a tunnel with that very
// token has proved the device's key.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { TunnelDevice as AnyTunnelDevice } from '../../tunnel/tunnel.ts'
import { theServer, type Audit } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { Gate, SignedDevice } from '../callers/callers.ts'
import { infoColumns } from './device-facts.ts'
import type { Presence } from './presence.ts'
import type { DeviceReports } from './reports.ts'
import type { ShellHubTokens } from '../callers/shellhub-tokens.ts'

/** `token` is the SHA-256 of the token that the tunnel came with. */
export interface TunnelDevice extends AnyTunnelDevice {
  /** The changes that the proof makes to the stored device. */
  readonly onProof?: Partial<Pick<DeviceRow, 'token_at' | 'proved_token'>>
  /** The device as the caller who got the token described it. */
  readonly said?: SignedDevice['said']
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
   * Throws a Failure unless the token's device may connect, and a RefusedDevice if it once might. Calls
   * `inTurn` before it reads the database: after a restart most devices must wait, without a query. `source`:
   * the tunnel's address.
   */
  admit(
    bearer: string | undefined,
    inTurn: (signed: SignedDevice) => void,
    source: string,
  ): Promise<TunnelDevice>
  /** The agent proved itself by a signature, and must do so from then on. */
  proved(device: TunnelDevice): Promise<void>
  /** The agent has proved the private key in some way. `reports`: it describes the device in the tunnel. */
  recognised(
    device: TunnelDevice,
    tunnel: { readonly source?: string | undefined; readonly reports: boolean },
  ): Promise<void>
  up(device: TunnelDevice, number: number): void
  down(device: TunnelDevice, number: number): Promise<void>
  /** In milliseconds since 1970, by this node. */
  heardAt(device: TunnelDevice): number | undefined
  /** Another node has its tunnel. */
  moved(device: TunnelDevice): void
  /** Two machines use the device's identity. */
  conflicted(
    device: TunnelDevice,
    report: { began_at: number; seen_at: number; addresses: readonly string[] },
  ): Promise<void>
  /** The number of a new tunnel, higher than that of any earlier one of the device. */
  claim(device: TunnelDevice): Promise<number>
}

export interface TunnelParts extends With<'stores' | 'bus' | 'clock'> {
  audit: Pick<Audit, 'eventOnce'>
  gate: Gate
  shellHub: Pick<ShellHubTokens, 'replaced' | 'countIn'>
  presence: Presence
  reports: Pick<DeviceReports, 'take'>
  /** Whether there are other nodes; then the database numbers tunnels. */
  clustered: boolean
}

export function tunnelRules({
  stores,
  audit,
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
      // Once an agent has proved itself with a token of ours, ShellHub's no longer counts. Only after the
      // proof: anyone who knows the device can get a token, and would otherwise lock out its agent.
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
        onProof: defined({
          token_at: isRenewed ? iso(clock.now()) : undefined,
          proved_token: isUnbound ? (sole_token ?? '') : undefined,
        }),
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
    // A single node's numbers are not in the database.
    up: ({ uid }, number) => presence.up(uid, clustered ? number : 0),
    down: ({ uid }, number) => presence.down(uid, clustered ? number : 0),
    heardAt: ({ uid }) => presence.heardAt(uid),
    moved: ({ uid }) => presence.forget(uid),
    async conflicted({ tenant_id, uid }, { began_at, seen_at, addresses }) {
      const conflict = JSON.stringify({ since: iso(began_at), last_at: iso(seen_at), addresses })
      await stores.of(tenant_id).devices.save(uid, { conflict })
      await audit.eventOnce(
        { ...theServer, tenant_id },
        { action: 'device.conflict', target: { kind: 'device', id: uid, name: '' }, detail: { addresses } },
      )
    },
    async claim({ tenant_id, uid }) {
      if (!clustered) return ++claimed
      const number = await stores.of(tenant_id).devices.claimTunnel(uid)
      if (number === undefined) throw new Failure('unauthenticated')
      return number
    },
  }
}

/** Whether the description or the address differs from what is stored. */
function isNews(row: DeviceRow, said: SignedDevice['said'], source: string): boolean {
  const facts: Partial<DeviceRow> = { remote_addr: source, ...(said?.info ? infoColumns(said.info) : {}) }
  return (Object.keys(facts) as (keyof DeviceRow)[]).some((name) => row[name] !== facts[name])
}
