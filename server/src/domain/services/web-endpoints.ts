// Public services in the form of ShellHub's newer interface.
import { invariant } from '@hawser/contract/failures'
import type { WebEndpoint } from '@hawser/contract/services'
import { iso, second_ms, type Clock } from '../../kit/clock.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { ServiceRow } from '../../storage/services.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Rules } from '../callers/rules.ts'
import type { ServiceAddresses } from './addresses.ts'
import type { ServiceChanges } from './services.ts'
import { webEndpointOf } from './service-view.ts'

export interface WebEndpointParts {
  readonly stores: Stores
  readonly clock: Clock
  readonly addresses: ServiceAddresses
  readonly view: { many(tenant_id: string, rows: readonly DeviceRow[]): Promise<WebEndpoint['device'][]> }
  readonly changes: ServiceChanges
}

export function webEndpoints(parts: WebEndpointParts): Rules<'webEndpoints'> {
  const { stores, clock, addresses, view, changes } = parts

  async function many(tenant_id: string, rows: readonly ServiceRow[]) {
    const namespace = await stores.namespaces.find(tenant_id)
    const uids = [...new Set(rows.map(({ device_uid }) => device_uid))]
    const devices = await view.many(tenant_id, await stores.of(tenant_id).devices.findMany(uids))
    const byUid = new Map(devices.map((device) => [device.uid, device]))
    return rows.flatMap((row) => {
      const device = byUid.get(row.device_uid)
      return device && namespace ? [webEndpointOf(row, device, namespace, addresses)] : []
    })
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).services.list(query, { audience: 'public' })
      return { items: await many(tenant_id, items), total }
    },
    async create({ body }, caller) {
      const { uid, host, port, ttl, tls } = body
      const row = await changes.add(
        uid,
        {
          name: `${host}:${port}`.slice(0, 64),
          host,
          port,
          audience: 'public',
          role: 'observer',
          scheme: tls?.enabled ? 'https' : 'http',
          check: tls?.enabled && tls.verify ? 'verify' : 'none',
          tls_name: tls?.domain ?? '',
          expires_at: ttl > 0 ? iso(clock.now() + ttl * second_ms) : null,
        },
        caller,
      )
      const [endpoint] = await many(caller.tenant_id, [row])
      invariant(endpoint, 'a service that was just made is shown')
      return endpoint
    },
    remove: ({ params }, caller) =>
      changes.drop(async (mine) => {
        const row = await mine.findByAddress(params.address)
        return row?.audience === 'public' ? row : undefined
      }, caller),
  }
}
