// How many namespaces an account may own. Namespaces share the server's bounds fairly, so a self-made account
// must not multiply its share by founding more of them.
import { Failure } from '@hawser/contract/failures'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'

export interface OwnershipLimits {
  /** For accounts that registered themselves or were invited; 0: no limit. */
  readonly namespaceLimit: number
}

/**
 * Refuses an owner at the limit. The transaction locks the owner, so that two requests cannot both find room
 * for the last namespace. `giver` hands it over: nobody escapes the limit by giving namespaces to an account
 * without one, because the recipient is not asked.
 */
export async function requireRoom(
  { namespaces }: Pick<StoresInTransaction, 'namespaces'>,
  owner: Pick<UserRow, 'id' | 'username' | 'registered' | 'max_namespaces'>,
  { namespaceLimit }: OwnershipLimits,
  giver?: Pick<UserRow, 'registered'>,
): Promise<void> {
  const isLimited = owner.registered === 1 || giver?.registered === 1
  const most = owner.max_namespaces > 0 ? owner.max_namespaces : isLimited ? namespaceLimit : 0
  if (most === 0 || (await namespaces.countOwnedBy(owner.id)) < most) return
  if (giver)
    throw new Failure('namespaceLimit', { message: `${owner.username} may not own more namespaces.` })
  throw new Failure('namespaceLimit', {
    message:
      'You already own the maximum number of namespaces. Delete one you no longer need, or ask the administrator of this server for more.',
  })
}
