// The last step of every sign-in, by password, second factor or set-up: `session` picks the namespace and
// signs the token. Every attempt leaves a report of who tried, from where, with which result. Reports name
// only people who have an account, because people type passwords into the field for the name.
import { Failure, type FailureKind } from '@hawser/contract/failures'
import type { UserSession } from '@hawser/contract/users'
import { neighbourhood } from '../../kit/address.ts'
import { day_ms, hour_ms, iso } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Stores } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import { stranger } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { AuditRefusals } from '../audit/refusals.ts'
import type { RequestOrigin } from '../callers/callers.ts'
import { user_token_hours, type Tokens } from '../callers/tokens.ts'
import { agentOf, mostSignIns } from './sign-ins.ts'

const signInMethods = ['password', 'second-factor', 'recovery-code', 'reset-codes'] as const
export type SignInMethod = (typeof signInMethods)[number]

/** Why sign-ins are refused; each has its count in the metrics. */
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

/** `challenged`: the password was right, and the second factor is next. */
export interface SignInReport {
  readonly result: 'accepted' | 'challenged' | 'refused'
  readonly reason: SignInReason | undefined
  readonly method: SignInMethod
  /** Undefined when nobody has the given name. */
  readonly username: string | undefined
  readonly source: string
  readonly request_id: string | undefined
}

export interface SignInAttempt extends SignInWay {
  /** Set as soon as it is known. */
  user?: Pick<UserRow, 'id' | 'username'> | undefined
}

/** For the audit log. */
interface SignInWay {
  readonly method: SignInMethod | 'set-up' | 'invitation'
  readonly from: RequestOrigin
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
  // The caller left before the password had its turn.
  requestTimeout: 'busy',
  unavailable: 'unavailable',
}

function reasonOf(error: unknown, { user }: SignInAttempt): SignInReason {
  if (!(error instanceof Failure)) return 'failed'
  if (error.kind === 'wrongCredentials') return user === undefined ? 'unknown-user' : 'password'
  return reasons[error.kind] ?? 'failed'
}

export interface SignIn {
  attempt<T>(
    method: SignInMethod,
    from: RequestOrigin,
    work: (attempt: SignInAttempt) => Promise<T>,
  ): Promise<T>
  readonly counts: SignInCounters
  /**
   * A new token and the profile, for the wanted namespace (undefined: the user is no member), else the
   * preferred one, else the oldest membership. The token, and every token issued for it, ends by `until`, in
   * seconds since 1970; without it, by the end of the longest sign-in that begins now.
   */
  session(user: UserRow, sign_in: string, tenant?: string, until?: number): Promise<UserSession | undefined>
  /**
   * Renews a token in its own namespace while the user is a member there, else as without one. The preferred
   * namespace stays as it is.
   */
  renewed(user: UserRow, sign_in: string, own: string | undefined, until?: number): Promise<UserSession>
  /** As `session`, and records the user's last sign-in, with its entry in the audit log. */
  signedIn(user: UserRow, way: SignInWay): Promise<UserSession>
}

/**
 * Counts wrong attempts by source and typed name. Counted by user, the number of tries would reveal that a
 * username and an address belong together.
 */
export function signInSubject(source: string, typed: string): string {
  return `sign-in ${neighbourhood(source)} ${typed}`
}

/** How long new tokens can prolong a sign-in; then the password is required again. */
const longestSignIn_ms = 90 * day_ms
/** The row of a sign-in outlives its newest token by half a day, so that not each new token causes a write. */
const noted_ms = 12 * hour_ms

export interface SignInParts extends With<'stores' | 'audit' | 'clock'> {
  auditedRefusals: Pick<AuditRefusals, 'add'>
  tokens: Tokens
  onAttempt(report: SignInReport): void
}

type Membership = Awaited<ReturnType<Stores['namespaces']['memberships']>>[number]

function userSessions({
  stores,
  tokens,
  clock,
}: Pick<SignInParts, 'stores' | 'tokens' | 'clock'>): Pick<SignIn, 'session' | 'renewed'> {
  const membershipOf = async ({ id }: UserRow, tenant: string | undefined): Promise<Membership | undefined> =>
    tenant === undefined ? undefined : stores.namespaces.member(tenant, id)

  async function session(
    user: UserRow,
    sign_in: string,
    tenant?: string,
    until?: number,
  ): Promise<UserSession | undefined> {
    const wanted = tenant ?? user.preferred_tenant ?? undefined
    const found = await membershipOf(user, wanted)
    if (tenant !== undefined && !found) return undefined
    const chosen = found ?? (await stores.namespaces.memberships(user.id, 1))[0]
    if (chosen && chosen.tenant_id !== user.preferred_tenant)
      await stores.users.save(user.id, { preferred_tenant: chosen.tenant_id })
    return issue(user, sign_in, chosen, until)
  }

  async function issue(
    user: UserRow,
    sign_in: string,
    chosen: Membership | undefined,
    until: number | undefined,
  ): Promise<UserSession> {
    if (chosen?.signed_in === 0) await stores.namespaces.signedIn(chosen.tenant_id, user.id)
    const now = clock.now()
    const end_s = until ?? Math.floor((now + longestSignIn_ms) / 1000)
    const last = Math.min(now + user_token_hours * hour_ms, end_s * 1000)
    await stores.signIns.prolong(sign_in, iso(last), iso(last + noted_ms))
    const claims = {
      sid: sign_in,
      id: user.id,
      tenant: chosen?.tenant_id ?? '',
      name: user.username,
      mfa: user.mfa_secret !== null,
      ver: `${user.epoch}.${chosen?.epoch ?? ''}`,
      until: end_s,
    }
    const token = await tokens.forUser(claims)
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
    async renewed(user, sign_in, own, until) {
      const stays = await membershipOf(user, own)
      return stays ? issue(user, sign_in, stays, until) : (await session(user, sign_in, undefined, until))!
    },
  }
}

export function signIn({ stores, audit, auditedRefusals, tokens, clock, onAttempt }: SignInParts): SignIn {
  const counts: SignInCounters = {
    accepted: new Counter(signInMethods),
    challenged: new Counter(['password']),
    refused: new Counter(signInReasons),
  }

  const { session, renewed } = userSessions({ stores, tokens, clock })

  return {
    counts,
    async attempt(method, from, work) {
      const { source, request_id } = from
      const attempt: SignInAttempt = { method, from }
      const report = (result: SignInReport['result'], reason?: SignInReason): void => {
        const { username, id: user_id } = attempt.user ?? {}
        // A name that nobody has may be a password that somebody typed into the wrong field.
        if (result === 'refused' && user_id !== undefined)
          auditedRefusals.add({
            scope: { user_id },
            by: stranger(source, request_id),
            action: 'user.sign-in.refused',
            target: { kind: 'user', id: user_id, name: username ?? '' },
            reason: reason ?? 'failed',
            detail: { method },
          })
        onAttempt({ result, reason, method, username, source, request_id })
      }
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
    renewed,
    async signedIn(user, { method, from }) {
      const sign_in = newUuid()
      const signed = (await session(user, sign_in))!
      const { id, username: name } = user
      const by = {
        actor: 'user',
        id,
        name,
        source: from.source,
        request_id: from.request_id ?? '',
        tenant_id: signed.tenant,
      } as const
      await audit.change(by, async (inside, record) => {
        // If the password changed since it was compared, no sign-in by the old one may follow.
        if ((await inside.users.lock(id))?.epoch !== user.epoch) throw new Failure('unauthenticated')
        const now = iso(clock.now())
        await inside.users.save(id, { last_login_at: now })
        await inside.signIns.trim(id, mostSignIns - 1)
        await inside.signIns.insert({
          id: sign_in,
          user_id: id,
          agent: agentOf(from.agent),
          source: from.source,
          created_at: now,
          used_from: from.source,
          used_at: now,
          expires_at: iso(clock.now() + user_token_hours * hour_ms + noted_ms),
        })
        record({ action: 'user.signed-in', target: { kind: 'user', id, name }, detail: { method } })
      })
      return signed
    },
  }
}
