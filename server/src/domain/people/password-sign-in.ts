// Sign-in with a password, and the tokens of users who are signed in. Answers and timing do not reveal
// whether a user exists.
import { Failure } from '@hawser/contract/failures'
import { minute_ms } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import { callingUser, endOfIssued, signInOf, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { hashPassword, isForeign, passwordMatches, waiterOf, type WaitingCaller } from './credentials.ts'
import { issueToken, lockAsRead, userTarget } from './identity.ts'
import { signInPolicy, type Lockout } from './lockout.ts'
import { signInSubject, type SignIn, type SignInAttempt } from './sign-in.ts'

const mfa_token_ms = 30 * minute_ms

export function passwordSignIn(
  parts: With<'stores' | 'audit' | 'vault' | 'clock'> & { lockout: Lockout; signIn: SignIn },
): Pick<Rules<'users'>, 'login' | 'auth' | 'refresh' | 'namespaceToken' | 'token'> {
  const { stores, audit, lockout, signIn } = parts

  let noBcryptLeft = false
  /** Asks the database until no bcrypt hash is left: only an import adds more, while the server is stopped. */
  async function bcryptInUse(): Promise<boolean> {
    noBcryptLeft ||= !(await stores.users.anyBcrypt())
    return !noBcryptLeft
  }

  async function login(username: string, password: string, by: WaitingCaller, attempt: SignInAttempt) {
    const identifier = username.toLowerCase()
    const found = await stores.users.findByIdentifier(identifier)
    attempt.user = found
    const user = await lockout.judge(
      signInSubject(by.source, identifier),
      signInPolicy,
      (headers) => new Failure('wrongCredentials', { headers }),
      async () =>
        (await passwordMatches(password, found?.password, by, await bcryptInUse())) ? found : undefined,
      // The count continues with the second factor: otherwise the right password would buy any number of
      // codes.
      (row) => row.mfa_secret !== null,
    )
    if (isForeign(user.password))
      await stores.users.replaceHash(user.id, user.password, await hashPassword(password, by))
    const headers = { 'x-account-lockout': '0' }
    if (user.confirmed === 0) throw new Failure('unconfirmed', { headers })
    if (user.mfa_secret !== null) {
      const token = await stores.transaction(async (inside) => {
        await lockAsRead(inside, user)
        return issueToken(parts, inside, {
          kind: 'mfa-sign-in',
          user_id: user.id,
          lives_ms: mfa_token_ms,
          typed: identifier,
        })
      })
      throw new Failure('mfaRequired', { headers: { ...headers, 'x-mfa-token': token } })
    }
    return { answer: await signIn.signedIn(user, attempt), headers }
  }

  const signInWith: Rules<'users'>['login'] = ({ body }, caller, end) =>
    signIn.attempt('password', caller, (attempt) =>
      login(body.username, body.password, waiterOf(caller, end), attempt),
    )

  async function namespaceToken(caller: UserCaller, tenant: string) {
    const user = await callingUser(stores, caller)
    const session = await signIn.session(user, signInOf(caller.token_id), tenant, endOfIssued(user, caller))
    if (!session) throw new Failure('notFound')
    // A token for another namespace is a sign-in to that namespace.
    if (tenant !== caller.tenant_id)
      await audit.eventOnce(caller, {
        action: 'user.signed-in',
        target: userTarget(user),
        detail: { method: 'token of another namespace' },
        tenant_id: tenant,
      })
    return session
  }

  return {
    login: signInWith,
    auth: signInWith,

    async refresh({ query }, caller) {
      const user = await callingUser(stores, caller)
      const { token_id, token_tenant } = caller
      return signIn.renewed(
        user,
        signInOf(token_id),
        query.keep_namespace ? token_tenant : undefined,
        endOfIssued(user, caller),
      )
    },
    namespaceToken: ({ params }, caller) => namespaceToken(caller, params.tenant),
    token: ({ params }, caller) => namespaceToken(caller, params.tenant),
  }
}
