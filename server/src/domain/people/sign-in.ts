// The last step of every sign-in. Users (password), MFA (second factor) and set-up all end in `session`,
// which picks the namespace and signs the token.
import type { UserSession } from '@hawser/contract/users'
import { neighbourhood } from '../../kit/address.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Tokens } from '../callers/tokens.ts'

export interface SignIn {
  /**
   * A new token and the profile: for the namespace asked for, else the preferred one, else the oldest
   * membership. The token, and every token issued for it, ends no later than `until`, in seconds since 1970.
   * Undefined when the user is no member of the namespace asked for.
   */
  session(user: UserRow, tenant?: string, until?: number): Promise<UserSession | undefined>
  /** The same, and stores the time as the user's last sign-in. */
  signedIn(user: UserRow): Promise<UserSession>
}

/** The subject under which wrong attempts at signing in are counted: one source and one user. */
export function signInSubject(source: string, who: string): string {
  return `sign-in ${neighbourhood(source)} ${who}`
}

export function signIn({ stores, tokens, clock }: { stores: Stores; tokens: Tokens; clock: Clock }): SignIn {
  async function session(user: UserRow, tenant?: string, until?: number): Promise<UserSession | undefined> {
    const memberships = await stores.namespaces.memberships(user.id)
    const wanted = tenant ?? user.preferred_tenant
    const found = memberships.find((membership) => membership.tenant_id === wanted)
    if (tenant !== undefined && !found) return undefined
    const chosen = found ?? memberships[0]
    if (chosen && chosen.tenant_id !== user.preferred_tenant)
      await stores.users.save(user.id, { preferred_tenant: chosen.tenant_id })
    const token = await tokens.forUser({
      id: user.id,
      tenant: chosen?.tenant_id ?? '',
      name: user.username,
      mfa: user.mfa_secret !== null,
      ver: `${user.epoch}.${chosen?.epoch ?? ''}`,
      ...(until === undefined ? {} : { until }),
    })
    return {
      token,
      id: user.id,
      user: user.username,
      name: user.name,
      email: user.email,
      recovery_email: user.recovery_email ?? '',
      tenant: chosen?.tenant_id ?? '',
      role: chosen?.role ?? '',
      mfa: user.mfa_secret !== null,
    }
  }
  return {
    session,
    async signedIn(user) {
      await stores.users.save(user.id, { last_login_at: iso(clock.now()) })
      return (await session(user))!
    },
  }
}
