// Whether a login still counts: its person may have lost the membership or the API key since, its public key
// may allow less, and the namespace may no longer hold sessions.
import { second_ms, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import { stillLetsIn } from '../access/logins.ts'
import { reasons, type SessionLogin } from './connections.ts'

type Whose = Pick<SessionLogin, 'tenant_id' | 'person'>

export function loginRights(stores: Stores, rows: CheckedRows) {
  /** A text that changes with the role, membership or password of the person; undefined: they have no access. */
  async function standing({ tenant_id, person }: Whose): Promise<string | undefined> {
    if (person.kind === 'api-key') {
      const key = await rows.apiKey(tenant_id, person.id)
      return key && `${key.role} ${key.creator_role} ${key.creator_epoch}`
    }
    if (person.kind !== 'user') return ''
    const found = await rows.user(tenant_id, person.id)
    return found && found.role !== null ? `${found.role} ${found.member_epoch} ${found.epoch}` : undefined
  }

  async function lostPerson(whose: Whose): Promise<string | undefined> {
    if ((await standing(whose)) !== undefined) return undefined
    return whose.person.kind === 'api-key' ? reasons.noKey : reasons.notMember
  }

  /** `inDoubt`: the answer while it is unknown whether the key lets the login in. */
  async function lostRight(login: SessionLogin, inDoubt = true): Promise<string | undefined> {
    const lost = await lostPerson(login)
    if (lost !== undefined || login.key === undefined) return lost
    const [key, device] = await Promise.all([
      rows.publicKey(login.tenant_id, login.key),
      rows.device(login.tenant_id, login.device_uid),
    ])
    if (!key) return reasons.noPublicKey
    const letsIn = device !== undefined && ((await stillLetsIn(key, device, login)) ?? inDoubt)
    return letsIn ? undefined : reasons.changedPublicKey
  }

  async function mayBeHeld(held: SessionLogin): Promise<boolean> {
    const { tenant_id, person, key, standing: before, restored } = held
    if (restored !== undefined && (await stores.of(tenant_id).sessions.find(restored))?.active !== 1)
      return false
    const namespace = await rows.namespace(tenant_id)
    if (!namespace || namespace.hold_sessions === 0) return false
    const isAnybody = person.kind === 'unknown' && key === undefined
    if (isAnybody && namespace.hold_unknown === 0) return false
    if ((await lostRight(held, false)) !== undefined) return false
    return before === undefined || before === (await standing(held))
  }

  return { standing, lostPerson, lostRight, mayBeHeld }
}

type CheckedRows = ReturnType<typeof checkedRows>

/** Rows of people and namespaces for one check, each read once. */
export const checkedRows = (stores: Stores, clock: Clock) => ({
  namespace: once((tenant_id) => stores.namespaces.find(tenant_id)),
  user: once((tenant_id, id) => stores.callers.user(id, tenant_id)),
  /** Undefined also for a key that has expired, or whose creator has left. */
  apiKey: once(async (tenant_id, name) => {
    const key = await stores.callers.keyNamed(tenant_id, name)
    return key && (key.expires_in <= 0 || key.expires_in * second_ms > clock.now()) ? key : undefined
  }),
  publicKey: once((tenant_id, fingerprint) => stores.of(tenant_id).publicKeys.find(fingerprint)),
  device: once((tenant_id, uid) => stores.of(tenant_id).devices.find(uid)),
})

function once<T>(
  read: (tenant_id: string, id: string) => Promise<T>,
): (tenant_id: string, id?: string) => Promise<T> {
  const known = new Map<string, Promise<T>>()
  return (tenant_id, id = '') => {
    const row = known.get(`${tenant_id} ${id}`) ?? read(tenant_id, id)
    known.set(`${tenant_id} ${id}`, row)
    return row
  }
}
