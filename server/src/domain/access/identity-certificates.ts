// Identity certificates tell the SSH gateway which user or API key is signed in at the client. A certificate
// names and lets nobody in. It counts only while the user is a member with the same password, or the key
// exists, so the gateway asks at each login.
import type { SessionPerson } from '@hawser/contract/sessions'
import { iso, minute_ms, second_ms } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import { standingOf, type MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { soundKey, type KeyReader } from './public-keys.ts'

export type IdentityClaims =
  | {
      readonly kind: 'user'
      readonly tenant_id: string
      readonly user_id: string
      /** The token's epoch; a new password starts another. */
      readonly epoch: number
      readonly token_id: string
    }
  | {
      readonly kind: 'api-key'
      readonly tenant_id: string
      readonly name: string
      /** Another user may make a key of the same name later. */
      readonly created_by: string
    }

/** Implemented by the gateway. */
export interface IdentitySigner {
  sign(line: string, claim: IdentityClaims, until_ms: number): Promise<string>
}

export interface IdentityReader {
  /** Undefined when the claim no longer holds. */
  personOf(claim: IdentityClaims): Promise<SessionPerson | undefined>
}

const life_ms = 5 * minute_ms

function claimOf(caller: MemberCaller): IdentityClaims {
  const { tenant_id } = caller
  if (caller.kind === 'key')
    return { kind: 'api-key', tenant_id, name: caller.name, created_by: caller.created_by }
  return { kind: 'user', tenant_id, user_id: caller.id, epoch: caller.epoch, token_id: caller.token_id }
}

export function identityCertificates({
  stores,
  clock,
  keys,
  signer,
}: With<'stores' | 'clock'> & {
  keys: KeyReader
  signer: IdentitySigner
}): Rules<'identityCertificates'> & { identities: IdentityReader } {
  async function userOf(claim: IdentityClaims & { kind: 'user' }): Promise<SessionPerson | undefined> {
    const standing = await standingOf(stores, claim)
    if (!standing?.role) return undefined
    return { kind: 'user', id: claim.user_id, name: standing.username }
  }

  async function keyOf({
    tenant_id,
    name,
    created_by,
  }: IdentityClaims & { kind: 'api-key' }): Promise<SessionPerson | undefined> {
    const row = await stores.of(tenant_id).apiKeys.find(name)
    const maker =
      row?.created_by === created_by ? await stores.callers.user(created_by, tenant_id) : undefined
    return maker?.role ? { kind: 'api-key', id: name, name, created_by: maker.username } : undefined
  }

  return {
    async create({ body }, caller) {
      const { line } = soundKey(keys, body.public_key, 'public_key')
      const until_ms = Math.min(clock.now() + life_ms, (caller.exp ?? Infinity) * second_ms)
      return { certificate: await signer.sign(line, claimOf(caller), until_ms), expires_at: iso(until_ms) }
    },
    identities: { personOf: (claim) => (claim.kind === 'user' ? userOf(claim) : keyOf(claim)) },
  }
}
