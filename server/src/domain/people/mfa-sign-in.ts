// Sign-in with the second factor, or with a recovery code in its place. Wrong codes count towards the sign-in
// lock, and recovery codes per source, so that strangers lock out themselves and not the person they name.
import { neighbourhood } from '../../kit/address.ts'
import { Failure } from '@hawser/contract/failures'
import { peopleLimits as limits } from '@hawser/contract/limits'
import { iso, minute_ms } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import { counted } from './email-bounds.ts'
import { fiveTries, signInPolicy, type Lockout } from './lockout.ts'
import { recoveryMark, spendCode, wrongCode } from './mfa.ts'
import { signInSubject, type SignIn } from './sign-in.ts'

export interface MfaSignInParts extends With<'stores' | 'vault' | 'clock'> {
  lockout: Lockout
  signIn: SignIn
}

const recovered_ms = 10 * minute_ms

export function mfaSignIn(parts: MfaSignInParts): Pick<Rules<'mfa'>, 'authenticate' | 'recover'> {
  const { stores, vault, clock, lockout, signIn } = parts

  return {
    authenticate({ body }, caller) {
      return signIn.attempt('second-factor', caller, async (attempt) => {
        const kind = 'mfa-sign-in'
        const hash = vault.mark(kind, body.token)
        const token = await stores.tokens.find(kind, hash, iso(clock.now()))
        const user = token?.user_id ? await stores.users.find(token.user_id) : undefined
        attempt.user = user
        if (!user) throw wrongCode()
        // From all sources together, so that many addresses give an attacker with the password no more tries.
        const everywhere = `mfa codes ${user.id}`
        const missed = await stores.attempts.find(everywhere, iso(clock.now()))
        if (missed && missed.count >= limits.codesOfAll.max)
          throw new Failure('locked', { retryAfter: (Date.parse(missed.expires_at) - clock.now()) / 1000 })
        // A sign-in that a former version began has no name.
        const subject = signInSubject(caller.source, token?.typed ?? user.id)
        await lockout.judge(subject, signInPolicy, wrongCode, async () => {
          if (await spendCode(parts, user, body.code)) return true
          await counted(parts, everywhere, limits.codesOfAll.window_ms)
          if ((await stores.tokens.miss(kind, hash)) >= limits.codes.max)
            await stores.tokens.spend(kind, hash, iso(clock.now()))
          return undefined
        })
        if (!(await stores.tokens.spend(kind, hash, iso(clock.now())))) throw wrongCode()
        if (missed) await stores.attempts.clear(everywhere)
        return signIn.signedIn(user, attempt)
      })
    },

    recover({ body }, caller) {
      return signIn.attempt('recovery-code', caller, async (attempt) => {
        const identifier = body.identifier.toLowerCase()
        const user = await stores.users.findByIdentifier(identifier)
        attempt.user = user
        const hash = recoveryMark(vault, user?.id ?? '', body.recovery_code)
        const expires_ms = clock.now() + recovered_ms
        // An unknown user costs the same look-up, so that time does not reveal who exists.
        await lockout.judge(
          `mfa recover ${neighbourhood(caller.source)} ${identifier}`,
          fiveTries,
          wrongCode,
          () =>
            stores.transaction(async (inside) => {
              if (!(await inside.users.spendRecoveryCode(user?.id ?? '', hash)) || !user) return undefined
              await inside.tokens.removeOf(user.id, 'mfa-recovered')
              await inside.tokens.insert({
                kind: 'mfa-recovered',
                hash,
                user_id: user.id,
                expires_at: iso(expires_ms),
              })
              return true
            }),
        )
        return {
          answer: await signIn.signedIn(user!, attempt),
          headers: { 'x-expires-at': String(Math.floor(expires_ms / 1000)) },
        }
      })
    },
  }
}
