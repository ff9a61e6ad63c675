// The second factor. TOTP with SHA-1, 6 digits, 30 s, one step either side. A code works once, because the
// time step it belongs to is stored. Recovery codes and reset codes are single use; only their keyed hashes
// are stored. Every wrong code is counted: at sign-in towards the sign-in lock, elsewhere per operation and
// sign-in, and per source where no token is needed, so that strangers lock out themselves and not the person
// they name.
import { Secret, TOTP } from 'otpauth'
import { Failure } from '@hawser/contract/failures'
import { neighbourhood } from '../../kit/address.ts'
import { day_ms, hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { newBase32, newLegibleCode } from '../../kit/ids.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import { sameText, type Vault } from '../../kit/secrets.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Audit, Recorder } from '../audit/audit.ts'
import { logsOf } from '../audit/refusals.ts'
import { callingUser } from '../callers/callers.ts'
import { countingEmail, countingRecoveryEmail, lockAsRead, type Identity } from './identity.ts'
import { fiveTries, signInPolicy, type Lockout } from './lockout.ts'
import type { Rules } from '../callers/rules.ts'
import { signInSubject, type SignIn } from './sign-in.ts'

export interface MfaParts {
  stores: Stores
  audit: Audit
  vault: Vault
  clock: Clock
  lockout: Lockout
  signIn: SignIn
  mailer: Mailer
  emails: Emails
  identity: Identity
  background: Lifetime
}

const period_s = 30
const recovery_codes = 6
const wrong_codes_per_sign_in = 5
const recovered_ms = 10 * minute_ms
const resets_per_hour = 5
/** From all sources together, so that many addresses give an attacker with the password no more tries. */
const wrong_codes_per_hour = 20
/**
 * From all sources together in one day; then both codes of a reset end. An attacker who has one of the codes
 * must guess the 40 bits of the other.
 */
const wrong_resets = 1000

const resetKinds = ['mfa-reset-main', 'mfa-reset-recovery'] as const

function totp(secret: string, label = ''): TOTP {
  return new TOTP({
    issuer: 'Hawser',
    label,
    secret: Secret.fromBase32(secret),
    algorithm: 'SHA1',
    digits: 6,
    period: period_s,
  })
}

/** The time step whose code this is, if it is one of the present three. */
function stepOf(secret: string, code: string, now_ms: number): number | undefined {
  const delta = /^\d{6}$/.test(code)
    ? totp(secret).validate({ token: code, window: 1, timestamp: now_ms })
    : null
  return delta === null ? undefined : Math.floor(now_ms / 1000 / period_s) + delta
}

/** The keyed hash under which a recovery code is stored. */
export function recoveryMark(vault: Vault, user_id: string, code: string): string {
  return vault.mark('recovery code', `${user_id} ${code.trim().toUpperCase()}`)
}

/** Whether this is a code of the user's secret that was not used before. Marks the code as used. */
export async function spendCode(
  { stores, vault, clock }: Pick<MfaParts, 'stores' | 'vault' | 'clock'>,
  user: UserRow,
  code: string,
): Promise<boolean> {
  if (user.mfa_secret === null) return false
  const step = stepOf(vault.open('mfa secret', user.mfa_secret), code, clock.now())
  return step !== undefined && (await stores.users.spendStep(user.id, step))
}

export function mfa({
  stores,
  audit,
  vault,
  clock,
  lockout,
  signIn,
  mailer,
  emails,
  identity,
  background,
}: MfaParts): Rules<'mfa'> {
  const wrongCode = () => new Failure('wrongCode')
  const codeMark = (user_id: string, code: string) => recoveryMark(vault, user_id, code)
  const resetMark = (kind: string, user_id: string, code: string) =>
    vault.mark(kind, `${user_id} ${code.trim().toUpperCase()}`)

  async function switchOff(inside: StoresInTransaction, user_id: string): Promise<void> {
    await inside.users.save(user_id, { mfa_secret: null })
    await inside.users.setRecoveryCodes(user_id, [])
    for (const kind of ['mfa-sign-in', 'mfa-recovered', 'mfa-reset-main', 'mfa-reset-recovery'] as const)
      await inside.tokens.removeOf(user_id, kind)
  }

  /** Says in all logs of the user that the second factor changed. */
  async function note(
    inside: StoresInTransaction,
    record: Recorder,
    action: 'user.mfa.enabled' | 'user.mfa.disabled',
    { id, username: name }: UserRow,
  ): Promise<void> {
    for (const tenant_id of await logsOf(inside, id))
      record({ action, target: { kind: 'user', id, name }, tenant_id })
  }

  return {
    authenticate({ body }, caller) {
      return signIn.attempt('second-factor', caller, async (attempt) => {
        const kind = 'mfa-sign-in'
        const hash = vault.mark(kind, body.token)
        const token = await stores.tokens.find(kind, hash, iso(clock.now()))
        const user = token?.user_id ? await stores.users.find(token.user_id) : undefined
        attempt.user = user
        if (!user) throw wrongCode()
        const everywhere = `mfa codes ${user.id}`
        const missed = await stores.attempts.find(everywhere, iso(clock.now()))
        if (missed && missed.count >= wrong_codes_per_hour)
          throw new Failure('locked', { retryAfter: (Date.parse(missed.expires_at) - clock.now()) / 1000 })
        // A sign-in that a former version began has no name.
        const subject = signInSubject(caller.source, token?.typed ?? user.id)
        await lockout.judge(subject, signInPolicy, wrongCode, async () => {
          if (await spendCode({ stores, vault, clock }, user, body.code)) return true
          await stores.attempts.count(everywhere, iso(clock.now()), iso(clock.now() + hour_ms))
          if ((await stores.tokens.miss(kind, hash)) >= wrong_codes_per_sign_in)
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
        const hash = codeMark(user?.id ?? '', body.recovery_code)
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

    requestReset({ body }) {
      // Runs after the answer, so that the answer takes the same time whether or not the user exists.
      background.later('email.mfa-reset', async () => {
        const found = await stores.users.findByIdentifier(body.identifier.toLowerCase())
        if (!found?.mfa_secret || !countingRecoveryEmail(found)) return
        const { id } = found
        const now = clock.now()
        if (
          (await stores.attempts.count(`email mfa-reset ${id}`, iso(now), iso(now + hour_ms))) >
          resets_per_hour
        )
          return
        const codes = { main: newLegibleCode(8), recovery: newLegibleCode(8) }
        // The user is locked so that the codes go to the addresses that count when the codes begin to work:
        // an undo ends them.
        const to = await stores.transaction(async (inside) => {
          const user = await inside.users.lock(id)
          const recovery = user && countingRecoveryEmail(user)
          if (!user?.mfa_secret || !recovery) return undefined
          await inside.attempts.clear(`mfa reset ${id}`)
          for (const which of ['main', 'recovery'] as const) {
            const kind = `mfa-reset-${which}` as const
            await inside.tokens.removeOf(id, kind)
            await inside.tokens.insert({
              kind,
              hash: resetMark(kind, id, codes[which]),
              user_id: id,
              expires_at: iso(now + day_ms),
            })
          }
          return { main: countingEmail(user), recovery, name: user.name }
        })
        if (!to) return
        for (const which of ['main', 'recovery'] as const)
          await mailer.send(emails.mfaReset({ to: to[which], name: to.name, id, code: codes[which], which }))
      })
    },

    reset({ params, body }, caller) {
      return signIn.attempt('reset-codes', caller, async (attempt) => {
        const id = params.user_id
        attempt.user = await stores.users.find(id)
        const user = await lockout.judge(
          `mfa reset ${neighbourhood(caller.source)} ${id}`,
          fiveTries,
          wrongCode,
          async () => {
            const now = iso(clock.now())
            const main = resetMark('mfa-reset-main', id, body.main_email_code)
            const recovery = resetMark('mfa-reset-recovery', id, body.recovery_email_code)
            // Both codes or none: one right code alone is not used up, and the answer does not show it was
            // right.
            if (
              !(await stores.tokens.find('mfa-reset-main', main, now)) ||
              !(await stores.tokens.find('mfa-reset-recovery', recovery, now))
            ) {
              const missed = await stores.attempts.count(`mfa reset ${id}`, now, iso(clock.now() + day_ms))
              if (missed >= wrong_resets)
                for (const kind of resetKinds) await stores.tokens.removeOf(id, kind)
              return undefined
            }
            return audit.change(caller, async (inside, record) => {
              const locked = await inside.users.lock(id)
              if (
                !(await inside.tokens.spend('mfa-reset-main', main, now)) ||
                !(await inside.tokens.spend('mfa-reset-recovery', recovery, now))
              )
                // Another request was quicker. The throw rolls back, so that this request
                // spends neither code.
                throw wrongCode()
              await switchOff(inside, id)
              if (locked) await note(inside, record, 'user.mfa.disabled', locked)
              return locked && { ...locked, mfa_secret: null }
            })
          },
        )
        // The token is made for the user as read in that transaction: any later change, an undo too, ends it.
        return signIn.signedIn(user, attempt)
      })
    },

    async generate(_, caller) {
      const user = await callingUser(stores, caller)
      if (user.mfa_secret !== null)
        throw new Failure('conflict', { message: 'The second factor is on already.' })
      const secret = newBase32(32)
      const codes = Array.from({ length: recovery_codes }, () => newBase32(16))
      await stores.users.saveDraft({
        user_id: user.id,
        secret: vault.seal('mfa draft', secret),
        code_hashes: JSON.stringify(codes.map((code) => codeMark(user.id, code))),
        created_at: iso(clock.now()),
      })
      return { link: totp(secret, user.username).toString(), secret, recovery_codes: codes }
    },

    async enable({ body }, caller) {
      const user = await callingUser(stores, caller)
      if (user.mfa_secret !== null)
        throw new Failure('conflict', { message: 'The second factor is on already.' })
      if (user.recovery_email === null)
        throw new Failure('invalid', { message: 'Set a recovery e-mail address first.' })
      const draft = await stores.users.findDraft(user.id)
      const given = body.recovery_codes.map((code) => codeMark(user.id, code)).toSorted()
      const known = draft ? (JSON.parse(draft.code_hashes) as string[]).toSorted() : []
      if (
        !draft ||
        !sameText(vault.open('mfa draft', draft.secret), body.secret) ||
        given.join() !== known.join()
      )
        throw new Failure('invalid', {
          message: 'secret and recovery_codes must be those that Generate MFA credentials gave last.',
        })
      const step = await lockout.judgeSignedIn('mfa enable', caller, wrongCode, async () =>
        stepOf(body.secret, body.code, clock.now()),
      )
      await identity.countChange(user.id)
      const notify = await audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await note(inside, record, 'user.mfa.enabled', user)
        const notifyOwner = await identity.saveUndo(inside, user, ['second factor'], caller.source)
        await inside.users.save(user.id, {
          mfa_secret: vault.seal('mfa secret', body.secret),
          mfa_step: step,
        })
        await inside.users.setRecoveryCodes(user.id, known)
        await inside.users.removeDraft(user.id)
        return notifyOwner
      })
      notify()
    },

    async disable({ body }, caller) {
      const user = await callingUser(stores, caller)
      if (user.mfa_secret === null)
        throw new Failure('conflict', { message: 'The second factor is off already.' })
      const { code, recovery_code } = body
      if (!code && !recovery_code)
        throw new Failure('invalid', { message: 'code or recovery_code: one of them is needed' })
      await lockout.judgeSignedIn('mfa disable', caller, wrongCode, async () => {
        if (code) return (await spendCode({ stores, vault, clock }, user, code)) || undefined
        const hash = codeMark(user.id, recovery_code!)
        const spent =
          (await stores.transaction((inside) => inside.users.spendRecoveryCode(user.id, hash))) ||
          (await stores.tokens.spend('mfa-recovered', hash, iso(clock.now())))
        return spent || undefined
      })
      await audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await switchOff(inside, user.id)
        await note(inside, record, 'user.mfa.disabled', user)
      })
    },
  }
}
