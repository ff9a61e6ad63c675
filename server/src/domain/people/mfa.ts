// Switching the second factor on and off. TOTP with SHA-1, 6 digits, 30 s, one step either side. A code works
// once, because its time step is stored. Recovery codes are single use and stored as keyed hashes. Wrong
// codes count per operation and sign-in.
import { Secret, TOTP } from 'otpauth'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import { newBase32 } from '../../kit/ids.ts'
import { sameText, type Vault } from '../../kit/secrets.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { logsOf } from '../audit/refusals.ts'
import { callingUser } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { lockAsRead, userTarget } from './identity.ts'
import type { IdentityChanges } from './identity-changes.ts'
import type { Lockout } from './lockout.ts'

export interface MfaParts extends With<'stores' | 'audit' | 'vault' | 'clock'> {
  lockout: Lockout
  identityChanges: IdentityChanges
}

const period_s = 30
const recovery_codes = 6

export const wrongCode = (): Failure => new Failure('wrongCode')

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

/** One of the present three time steps, or undefined. */
function stepOf(secret: string, code: string, now_ms: number): number | undefined {
  const delta = /^\d{6}$/.test(code)
    ? totp(secret).validate({ token: code, window: 1, timestamp: now_ms })
    : null
  return delta === null ? undefined : Math.floor(now_ms / 1000 / period_s) + delta
}

export function recoveryMark(vault: Vault, user_id: string, code: string): string {
  return vault.mark('recovery code', `${user_id} ${code.trim().toUpperCase()}`)
}

/** Whether the code is right and unused, in which case it is marked as used. */
export async function spendCode(
  { stores, vault, clock }: Pick<MfaParts, 'stores' | 'vault' | 'clock'>,
  user: UserRow,
  code: string,
): Promise<boolean> {
  if (user.mfa_secret === null) return false
  const step = stepOf(vault.open('mfa secret', user.mfa_secret), code, clock.now())
  return step !== undefined && (await stores.users.spendStep(user.id, step))
}

async function note(
  inside: StoresInTransaction,
  record: Recorder,
  action: 'user.mfa.enabled' | 'user.mfa.disabled',
  user: UserRow,
): Promise<void> {
  for (const tenant_id of await logsOf(inside, user.id))
    record({ action, target: userTarget(user), tenant_id })
}

/** For a locked user. */
export async function switchOff(inside: StoresInTransaction, record: Recorder, user: UserRow): Promise<void> {
  await inside.users.save(user.id, { mfa_secret: null })
  await inside.users.setRecoveryCodes(user.id, [])
  for (const kind of ['mfa-sign-in', 'mfa-recovered', 'mfa-reset-main', 'mfa-reset-recovery'] as const)
    await inside.tokens.removeOf(user.id, kind)
  await note(inside, record, 'user.mfa.disabled', user)
}

export function mfa(parts: MfaParts): Pick<Rules<'mfa'>, 'generate' | 'enable' | 'disable'> {
  const { stores, audit, vault, clock, lockout, identityChanges } = parts
  const codeMark = (user_id: string, code: string) => recoveryMark(vault, user_id, code)

  return {
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
      await identityChanges.countChange(user.id)
      const notify = await audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await note(inside, record, 'user.mfa.enabled', user)
        const notifyOwner = await identityChanges.saveUndo(inside, user, ['second factor'], caller.source)
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
        if (code) return (await spendCode(parts, user, code)) || undefined
        const hash = codeMark(user.id, recovery_code!)
        const spent =
          (await stores.transaction((inside) => inside.users.spendRecoveryCode(user.id, hash))) ||
          (await stores.tokens.spend('mfa-recovered', hash, iso(clock.now())))
        return spent || undefined
      })
      await audit.change(caller, async (inside, record) => {
        await lockAsRead(inside, user)
        await switchOff(inside, record, user)
      })
    },
  }
}
