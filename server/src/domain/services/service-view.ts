// A service as members see it, as the audit log has it, and in the form of ShellHub.
import type { Service, WebEndpoint } from '@hawser/contract/services'
import { hostAndPort } from '../../kit/address.ts'
import { second_ms } from '../../kit/clock.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { ServiceRow } from '../../storage/services.ts'
import type { Stores } from '../../storage/stores.ts'
import type { ServiceAddresses } from './addresses.ts'

export const peopleOf = ({ people }: Pick<ServiceRow, 'people'>): string[] => JSON.parse(people) as string[]

export const targetOf = ({ id, name }: Pick<ServiceRow, 'id' | 'name'>) => ({ kind: 'service', id, name })

/** Holds no secret: of a link only whether there is one. */
export const audited = (row: ServiceRow) => ({
  device: row.device_uid,
  name: row.name,
  target: `${row.scheme}://${hostAndPort(row)}`,
  check: row.certificate,
  tls_name: row.tls_name,
  pinned: row.pinned,
  audience: row.audience,
  role: row.role,
  people: peopleOf(row),
  host_header: row.host_header,
  identify: row.identify === 1,
  username: row.username,
  expires_at: row.expires_at ?? '',
})

export function serviceView(stores: Stores, addresses: ServiceAddresses) {
  async function many(tenant_id: string, rows: readonly ServiceRow[]): Promise<Service[]> {
    const uids = [...new Set(rows.map(({ device_uid }) => device_uid))]
    const devices = await stores.of(tenant_id).devices.findMany(uids)
    const names = new Map(devices.map(({ uid, name }) => [uid, name]))
    const isNamed = rows.some(({ people }) => people !== '[]')
    const members = isNamed ? await stores.namespaces.members(tenant_id) : []
    const users = new Map(members.map(({ id, username }) => [id, username]))
    return rows.map((row) => ({
      id: row.id,
      device_uid: row.device_uid,
      device_name: names.get(row.device_uid) ?? '',
      name: row.name,
      host: row.host,
      port: row.port,
      scheme: row.scheme,
      check: row.certificate,
      tls_name: row.tls_name,
      audience: row.audience,
      role: row.role,
      people: peopleOf(row).flatMap((id) => {
        const username = users.get(id)
        return username === undefined ? [] : [{ id, username }]
      }),
      host_header: row.host_header,
      identify: row.identify === 1,
      username: row.username,
      address: row.address,
      url: addresses.urlOf(row.address),
      expires_at: row.expires_at,
      public_url: row.public_url === 1,
      ...(row.pinned === '' ? {} : { pinned: row.pinned }),
      created_at: row.created_at,
      created_by: row.created_by,
    }))
  }
  return {
    many,
    async one(row: ServiceRow): Promise<Service> {
      const [service] = await many(row.tenant_id, [row])
      return service!
    },
  }
}

export const never = '0001-01-01T00:00:00Z'

export function webEndpointOf(
  row: ServiceRow,
  device: WebEndpoint['device'],
  namespace: Pick<NamespaceRow, 'name'>,
  addresses: ServiceAddresses,
): WebEndpoint {
  const { expires_at, created_at } = row
  return {
    address: row.address,
    full_address: addresses.hostOf(row.address),
    namespace: namespace.name,
    device_uid: row.device_uid,
    device,
    host: row.host,
    port: row.port,
    ttl: expires_at === null ? -1 : Math.round((Date.parse(expires_at) - Date.parse(created_at)) / second_ms),
    expires_in: expires_at ?? never,
    created_at,
    tls: {
      enabled: row.scheme === 'https',
      verify: row.scheme === 'https' && row.certificate === 'verify',
      domain: row.tls_name,
    },
  }
}
