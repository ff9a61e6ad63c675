// The last step of every sign-in. Users (password), MFA (second factor) and set-up all end in `session`,
// which picks the namespace and signs the token. And what every attempt to sign in leaves behind: a report of
// who tried, from where, and what became of it. A report names people who have an account and nobody else,
// because people type passwords into the field for the name.
import { Failure, type FailureKind } from '@hawser/contract/failures'
import type { UserSession } from '@hawser/contract/users'
import { neighbourhood } from '../../kit/address.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { RequestOrigin } from '../callers/callers.ts'
import type { Tokens } from '../callers/tokens.ts'

const signInMethods = ['password', 'second-factor', 'recovery-code', 'reset-codes'] as const
export type SignInMethod = (typeof signInMethods)[number]

/** Why sign-ins are refused. The metrics have one count for each. */
const signInReasons = [
  'unknown-user',
  'password',
  'code',
  'locked',
  'unconfirmed',
  'busy',
  'unavailable',
  'failed',
] as const
export type SignInReason = (typeof signInReasons)[number]

/** What became of one attempt. `challenged`: the password was right, and the second factor is asked for. */
export interface SignInReport {
  readonly result: 'accepted' | 'challenged' | 'refused'
  readonly reason: SignInReason | undefined
  readonly method: SignInMethod
  /** Undefined when nobody has the name that was given. */
  readonly username: string | undefined
  readonly source: string
  readonly request_id: string | undefined
}

/** An attempt to sign in, while it is judged. */
export interface SignInAttempt {
  /** Set as soon as it is known who signs in. */
  username?: string | undefined
}

export interface SignInCounters {
  readonly accepted: Counter<SignInMethod>
  readonly challenged: Counter<'password'>
  readonly refused: Counter<SignInReason>
}

const reasons: { readonly [K in FailureKind]?: SignInReason } = {
  wrongCode: 'code',
  wrongToken: 'code',
  locked: 'locked',
  unconfirmed: 'unconfirmed',
  tooMany: 'busy',
  unavailable: 'unavailable',
}

function reasonOf(error: unknown, { username }: SignInAttempt): SignInReason {
  if (!(error instanceof Failure)) return 'failed'
  if (error.kind === 'wrongCredentials') return username === undefined ? 'unknown-user' : 'password'
  return reasons[error.kind] ?? 'failed'
}

export interface SignIn {
  /** Runs one attempt to sign in and reports what became of it. */
  attempt<T>(
    method: SignInMethod,
    from: RequestOrigin,
    work: (attempt: SignInAttempt) => Promise<T>,
  ): Promise<T>
  readonly counts: SignInCounters
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

export interface SignInParts {
  stores: Stores
  tokens: Tokens
  clock: Clock
  onAttempt(report: SignInReport): void
}

export function signIn({ stores, tokens, clock, onAttempt }: SignInParts): SignIn {
  const counts: SignInCounters = {
    accepted: new Counter(signInMethods),
    challenged: new Counter(['password']),
    refused: new Counter(signInReasons),
  }

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
    counts,
    async attempt(method, { source, request_id }, work) {
      const attempt: SignInAttempt = {}
      const report = (result: SignInReport['result'], reason?: SignInReason): void =>
        onAttempt({ result, reason, method, username: attempt.username, source, request_id })
      try {
        const value = await work(attempt)
        counts.accepted.add(method)
        report('accepted')
        return value
      } catch (error) {
        if (error instanceof Failure && error.kind === 'mfaRequired') {
          counts.challenged.add('password')
          report('challenged')
          throw error
        }
        const reason = reasonOf(error, attempt)
        counts.refused.add(reason)
        report('refused', reason)
        throw error
      }
    },
    session,
    async signedIn(user) {
      await stores.users.save(user.id, { last_login_at: iso(clock.now()) })
      return (await session(user))!
    },
  }
}
