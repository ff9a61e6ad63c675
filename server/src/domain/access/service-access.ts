// Who may open a service: one decision, which is asked when somebody comes, and again whenever something
// changed that it depends on. To strangers a service that does not exist, one that they may not open and one
// of a device that is not accepted are the same: nothing.
import { rank, type Role } from '@hawser/contract/access'
import type { SessionPerson } from '@hawser/contract/sessions'
import { agentlessPlatform } from '@hawser/contract/tunnel'
import { unknownPerson } from '@hawser/contract/sessions'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { DeviceRow } from '../../storage/devices.ts'
import type { ServiceRow } from '../../storage/services.ts'
import type { With } from '../audit/parts.ts'
import { standingOf } from '../callers/callers.ts'
import type { Logins } from './logins.ts'
import { policyOf } from './policies.ts'
import { sessionPolicy } from './session-policy.ts'

/** A sign-in of a person. */
export interface SignedIn {
  readonly kind: 'user'
  readonly user_id: string
  readonly epoch: number
  readonly token_id: string
}

/** The sign-in of a browser at a service, or the link that it came by, until when. Nobody: a stranger. */
export type Visitor =
  | (SignedIn & { readonly ends_at: number })
  | { readonly kind: 'link'; readonly link_hash: string; readonly ends_at: number }
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

/** Why there is nothing for a visitor. Administrators of the namespace read it, the visitor does not. */
export type WhyNotAdmitted =
  | 'expired'
  | 'not-signed-in'
  | 'not-a-member'
  | 'role'
  | 'audience'
  | 'device-not-accepted'
  | 'policy'
  | 'firewall'
  | 'device-limit'

export type Decision =
  | { readonly admitted: Admitted }
  /** Without a service: there is none at the address. */
  | { readonly refused?: WhyNotAdmitted; readonly service?: ServiceRow; readonly admitted?: undefined }

export interface ServiceAccess {
  decide(address: string, visitor: SignedIn | Visitor, source: string): Promise<Decision>
  /** Undefined: there is nothing for this visitor at the address. */
  admit(address: string, visitor: SignedIn | Visitor, source: string): Promise<Admitted | undefined>
}

export interface ServiceAccessParts extends With<'stores' | 'clock'> {
  logins: Pick<Logins, 'firewall' | 'withinLimit'>
}

/**
 * For whom the firewall is asked. Agents connect without a user of the device, so the rules for every user apply;
 * the named user is logged in by some agents, and always on devices without one.
 */
const usersFor = ({ username }: ServiceRow, { info_platform }: DeviceRow): ReadonlySet<string> =>
  new Set(info_platform === agentlessPlatform && username !== '' ? [username] : ['', username])

export function serviceAccess({ stores, clock, logins }: ServiceAccessParts): ServiceAccess {
  /** How the visitor may open it, and who that is. */
  async function judge(
    service: ServiceRow,
    visitor: SignedIn | Visitor,
  ): Promise<Pick<Admitted, 'person' | 'role' | 'method'> | WhyNotAdmitted> {
    if (service.audience === 'public') return { person: unknownPerson, role: undefined, method: 'public' }
    if (visitor.kind === 'link') {
      const fits = service.audience === 'link' && visitor.link_hash === service.link_hash
      return fits ? { person: unknownPerson, role: undefined, method: 'link' } : 'audience'
    }
    if (visitor.kind === 'nobody') return 'not-signed-in'
    const standing = await standingOf(stores, { ...visitor, tenant_id: service.tenant_id })
    if (!standing) return 'not-signed-in'
    if (standing.role === null) return 'not-a-member'
    const { user_id } = visitor
    if (service.audience === 'people') {
      if (!(JSON.parse(service.people) as string[]).includes(user_id)) return 'audience'
    } else if (rank(standing.role) < rank(service.role)) return 'role'
    const person = { kind: 'user', id: user_id, name: standing.username } as const
    return { person, role: standing.role, method: 'sign-in' }
  }

  async function decide(address: string, visitor: SignedIn | Visitor, source: string): Promise<Decision> {
    const service = await stores.presentedServices.find(address)
    if (!service) return {}
    const no = (refused: WhyNotAdmitted): Decision => ({ refused, service })
    if (service.expires_at !== null && Date.parse(service.expires_at) <= clock.now()) return no('expired')
    const judged = await judge(service, visitor)
    if (typeof judged === 'string') return no(judged)
    const [device, namespace] = await Promise.all([
      stores.of(service.tenant_id).devices.find(service.device_uid),
      stores.namespaces.find(service.tenant_id),
    ])
    if (device?.status !== 'accepted' || !namespace) return no('device-not-accepted')
    if (sessionPolicy(policyOf(namespace)).services() !== undefined) return no('policy')
    const to = { device, namespace }
    for (const user of usersFor(service, device))
      if (!(await logins.firewall(to, user, source)).allowed) return no('firewall')
    if (!(await logins.withinLimit(to))) return no('device-limit')
    return { admitted: { service, ...to, ...judged } }
  }

  return {
    decide,
    admit: async (address, visitor, source) => (await decide(address, visitor, source)).admitted,
  }
}
