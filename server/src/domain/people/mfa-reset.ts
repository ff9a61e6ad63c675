// Resetting the second factor with two codes, one sent to each address of the user. Codes are single use and
// stored as keyed hashes. Wrong codes count per source, so that strangers lock out themselves and not the
// person they name.
import { neighbourhood } from '../../kit/address.ts'
import { day_ms, iso } from '../../kit/clock.ts'
import { newLegibleCode } from '../../kit/ids.ts'
import type { Parts } from '../audit/parts.ts'
import type { Caller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { counted, mayEmail } from './email-bounds.ts'
import { countingEmail, countingRecoveryEmail } from './identity.ts'
import { fiveTries, type Lockout } from './lockout.ts'
import { switchOff, wrongCode } from './mfa.ts'
import type { SignIn } from './sign-in.ts'

export interface MfaResetParts extends Omit<Parts, 'bus'> {
  lockout: Lockout
  signIn: SignIn
}

/**
 * From all sources in one day; then both codes of a reset end. An attacker with one code must guess the 40
 * bits of the other.
 */
const wrong_resets = 1000

const resetKinds = ['mfa-reset-main', 'mfa-reset-recovery'] as const

const addresses = ['main', 'recovery'] as const
type Codes = Readonly<Record<(typeof addresses)[number], string>>

export function mfaReset(parts: MfaResetParts): Pick<Rules<'mfa'>, 'requestReset' | 'reset'> {
  const { stores, audit, vault, clock, lockout, signIn, mailer, emails, background } = parts
  const markOf = (which: keyof Codes, user_id: string, code: string) =>
    vault.mark(`mfa-reset-${which}`, `${user_id} ${code.trim().toUpperCase()}`)

  async function begin(user_id: string, codes: Codes) {
    // Locked, so that the codes go to the addresses that count when they begin to work: an undo ends them.
    return stores.transaction(async (inside) => {
      const user = await inside.users.lock(user_id)
      const recovery = user && countingRecoveryEmail(user)
      if (!user?.mfa_secret || !recovery) return undefined
      await inside.attempts.clear(`mfa reset ${user_id}`)
      for (const which of addresses) {
        const kind = `mfa-reset-${which}` as const
        await inside.tokens.removeOf(user_id, kind)
        await inside.tokens.insert({
          kind,
          hash: markOf(which, user_id, codes[which]),
          user_id,
          expires_at: iso(clock.now() + day_ms),
        })
      }
      return { main: countingEmail(user), recovery, name: user.name }
    })
  }

  /** Switches the second factor off; returns the changed user. */
  async function spend(id: string, given: Codes, caller: Caller) {
    const now = iso(clock.now())
    const main = markOf('main', id, given.main)
    const recovery = markOf('recovery', id, given.recovery)
    // Both codes or none: one right code alone is not used up, and the answer does not show it was right.
    if (
      !(await stores.tokens.find('mfa-reset-main', main, now)) ||
      !(await stores.tokens.find('mfa-reset-recovery', recovery, now))
    ) {
      const missed = await counted(parts, `mfa reset ${id}`, day_ms)
      if (missed >= wrong_resets) for (const kind of resetKinds) await stores.tokens.removeOf(id, kind)
      return undefined
    }
    return audit.change(caller, async (inside, record) => {
      const locked = await inside.users.lock(id)
      if (
        !(await inside.tokens.spend('mfa-reset-main', main, now)) ||
        !(await inside.tokens.spend('mfa-reset-recovery', recovery, now))
      )
        // Another request spent it. The throw rolls back, so that this one spends neither code.
        throw wrongCode()
      if (locked) await switchOff(inside, record, locked)
      return locked && { ...locked, mfa_secret: null }
    })
  }

  return {
    requestReset({ body }) {
      // After the answer, which then takes the same time whether or not the user exists.
      background.later('email.mfa-reset', async () => {
        const found = await stores.users.findByIdentifier(body.identifier.toLowerCase())
        if (!found?.mfa_secret || !countingRecoveryEmail(found)) return
        const { id } = found
        if (!(await mayEmail(parts, 'mfa-reset', found))) return
        const codes = { main: newLegibleCode(8), recovery: newLegibleCode(8) }
        const to = await begin(id, codes)
        if (!to) return
        for (const which of addresses)
          await mailer.send(emails.mfaReset({ to: to[which], name: to.name, id, code: codes[which], which }))
      })
    },

    reset({ params: { user_id: id }, body }, caller) {
      return signIn.attempt('reset-codes', caller, async (attempt) => {
        attempt.user = await stores.users.find(id)
        const codes = { main: body.main_email_code, recovery: body.recovery_email_code }
        const user = await lockout.judge(
          `mfa reset ${neighbourhood(caller.source)} ${id}`,
          fiveTries,
          wrongCode,
          () => spend(id, codes, caller),
        )
        // The token is made for the user as read in that transaction: any later change, an undo too, ends it.
        return signIn.signedIn(user, attempt)
      })
    },
  }
}
