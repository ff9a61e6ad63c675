// Who may open a service: one decision, which is asked when somebody comes, and again whenever something
// changed that it depends on. To strangers a service that does not exist, one that they may not open and one
// of a device that is not accepted are the same: nothing.
import { rank, type Role } from '@hawser/contract/access'
import type { SessionPerson } from '@hawser/contract/sessions'
import { unknownPerson } from '@hawser/contract/sessions'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { ServiceRow } from '../../storage/services.ts'
import type { With } from '../audit/parts.ts'
import { standingOf } from '../callers/callers.ts'
import type { Logins } from './logins.ts'
import { policyOf } from './policies.ts'
import { sessionPolicy } from './session-policy.ts'

/** The sign-in of a browser at a service, or the link that it came by. Nobody: a stranger. */
export type Visitor =
  | { readonly kind: 'user'; readonly user_id: string; readonly epoch: number; readonly token_id: string }
  | { readonly kind: 'link'; readonly link_hash: string }
  | { readonly kind: 'nobody' }

export interface Admitted {
  readonly service: ServiceRow
  readonly device: DeviceRow
  readonly namespace: NamespaceRow
  readonly person: SessionPerson
  /** Of a signed-in person. */
  readonly role: Role | undefined
  readonly method: 'sign-in' | 'link' | 'public'
}

export interface ServiceAccess {
  /** Undefined: there is nothing for this visitor at the address. */
  admit(address: string, visitor: Visitor, source: string): Promise<Admitted | undefined>
}

export interface ServiceAccessParts extends With<'stores' | 'clock'> {
  logins: Pick<Logins, 'firewall' | 'withinLimit'>
}

export function serviceAccess({ stores, clock, logins }: ServiceAccessParts): ServiceAccess {
  /** How the visitor may open it, and who that is. */
  async function judge(
    service: ServiceRow,
    visitor: Visitor,
  ): Promise<Pick<Admitted, 'person' | 'role' | 'method'> | undefined> {
    if (service.audience === 'public') return { person: unknownPerson, role: undefined, method: 'public' }
    if (visitor.kind === 'link') {
      const fits = service.audience === 'link' && visitor.link_hash === service.link_hash
      return fits ? { person: unknownPerson, role: undefined, method: 'link' } : undefined
    }
    if (visitor.kind === 'nobody') return undefined
    const standing = await standingOf(stores, { ...visitor, tenant_id: service.tenant_id })
    if (!standing || standing.role === null) return undefined
    const { user_id } = visitor
    const may =
      service.audience === 'people'
        ? (JSON.parse(service.people) as string[]).includes(user_id)
        : rank(standing.role) >= rank(service.role)
    const person = { kind: 'user', id: user_id, name: standing.username } as const
    return may ? { person, role: standing.role, method: 'sign-in' } : undefined
  }

  return {
    async admit(address, visitor, source) {
      const service = await stores.presentedServices.find(address)
      if (!service || (service.expires_at !== null && Date.parse(service.expires_at) <= clock.now()))
        return undefined
      const judged = await judge(service, visitor)
      if (!judged) return undefined
      const [device, namespace] = await Promise.all([
        stores.of(service.tenant_id).devices.find(service.device_uid),
        stores.namespaces.find(service.tenant_id),
      ])
      if (device?.status !== 'accepted' || !namespace) return undefined
      if (sessionPolicy(policyOf(namespace)).services() !== undefined) return undefined
      const to = { device, namespace }
      // No Unix user is involved, so only rules for every user apply.
      if (!(await logins.firewall(to, '', source)).allowed || !(await logins.withinLimit(to)))
        return undefined
      return { service, ...to, ...judged }
    },
  }
}
