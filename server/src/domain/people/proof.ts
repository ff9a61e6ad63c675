// Makes a signed-in user prove again who they are, before something that a stolen token alone must not be
// able to do: with a code where there is a second factor, else with the password.
import { Failure } from '@hawser/contract/failures'
import type { UserRow } from '../../storage/users.ts'
import type { With } from '../audit/parts.ts'
import type { UserCaller } from '../callers/callers.ts'
import { passwordMatches, type WaitingCaller } from './credentials.ts'
import type { Lockout } from './lockout.ts'
import { spendCode } from './mfa.ts'

/** Throws without proof. Five wrong tries lock the sign-in for a quarter of an hour. */
export type ProofOfUser = (
  user: UserRow,
  given: { readonly password?: string | undefined; readonly code?: string | undefined },
  caller: WaitingCaller & Pick<UserCaller, 'id' | 'token_id'>,
) => Promise<void>

export function proofOfUser(parts: With<'stores' | 'vault' | 'clock'> & { lockout: Lockout }): ProofOfUser {
  return async (user, { password, code }, caller) => {
    const hasFactor = user.mfa_secret !== null
    const missing = hasFactor
      ? !code && 'code: a code of your second factor is needed'
      : !password && 'password: your password is needed'
    if (missing) throw new Failure('invalid', { message: missing })
    await parts.lockout.judgeSignedIn(
      'proof',
      caller,
      () =>
        hasFactor
          ? new Failure('wrongCode')
          : new Failure('wrongCredentials', { message: 'This is not your password.' }),
      async () =>
        (hasFactor
          ? await spendCode(parts, user, code ?? '')
          : await passwordMatches(password ?? '', user.password, caller)) || undefined,
    )
  }
}
