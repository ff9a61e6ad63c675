// Confirmation of e-mail addresses by a link. Any number of accounts may claim an unconfirmed address. The
// first to confirm it has it, and the other claims end. All their links go to the owner of the address, who
// might open the link of a stranger's account: while several accounts claim it, a link works only together
// with its account's password.
import { Failure } from '@hawser/contract/failures'
import { hour_ms, iso } from '../../kit/clock.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import type { Caller } from '../callers/callers.ts'
import { passwordMatches, type WaitingCaller } from './credentials.ts'
import { mayEmailUnconfirmed } from './email-bounds.ts'
import { confirmationKinds, endClaims, issueToken, userTarget, type Address } from './identity.ts'
import { fiveTries, type Lockout } from './lockout.ts'

interface ConfirmationParts extends With<'stores' | 'audit' | 'vault' | 'clock' | 'mailer' | 'emails'> {
  lockout: Lockout
}

const link_ms = 72 * hour_ms
const links = [
  ['activation', 'email'],
  [confirmationKinds.email, 'email'],
  [confirmationKinds.recovery_email, 'recovery_email'],
] as const

/** Links that went to the address that a confirmed one replaces. */
const replaced = { email: ['recovery', 'mfa-reset-main'], recovery_email: ['mfa-reset-recovery'] } as const

const waitingFor = (user: UserRow | undefined, which: Address): string | null =>
  (which === 'email' ? user?.former_email : user?.former_recovery_email) ? (user?.[which] ?? null) : null

interface Confirmation {
  readonly token: string
  readonly password?: string | undefined
  readonly accountOf?: string | undefined
}

export function confirmations(parts: ConfirmationParts) {
  const { stores, audit, vault, clock, lockout, mailer, emails } = parts

  /** The token is wrong when somebody else took the address first. */
  async function confirming(by: Caller, work: Parameters<typeof audit.change<void>>[1]): Promise<void> {
    try {
      await audit.change(by, work)
    } catch (error) {
      throw stores.isDuplicate(error) ? new Failure('wrongToken') : error
    }
  }

  async function claimOf(token: string, only: (typeof links)[number][0] | undefined) {
    for (const [kind, which] of links) {
      if (only !== undefined && kind !== only) continue
      const hash = vault.mark(kind, token)
      const found = await stores.tokens.find(kind, hash, iso(clock.now()))
      const user = found?.user_id ? await stores.users.find(found.user_id) : undefined
      if (user) return { kind, which, hash, user }
    }
    throw new Failure('wrongToken')
  }

  async function mustMatch(user: UserRow, password: string, by: WaitingCaller): Promise<void> {
    await lockout.judge(
      `password ${user.id}`,
      fiveTries,
      () => new Failure('wrongCredentials', { message: 'This is not the password of the account.' }),
      async () => (await passwordMatches(password, user.password, by)) || undefined,
    )
  }

  /** Makes the shown address of a locked user count, unless somebody has it already. */
  async function take(
    inside: StoresInTransaction,
    record: Recorder,
    user: UserRow,
    change: { former_email: null } | { confirmed: 1 },
    isProved: boolean,
  ): Promise<void> {
    if ((await inside.users.taken({ email: user.email }, user.id)).length > 0) throw new Failure('wrongToken')
    const claims = await inside.addressClaims.of(user.email, 2)
    if (!isProved && claims.some(({ id }) => id !== user.id)) throw new Failure('passwordRequired')
    await inside.users.save(user.id, change)
    await endClaims(inside, record, user)
  }

  return {
    /**
     * Sends the link that confirms an address, if one waits; the previous link ends. `source`: the request's
     * address.
     */
    async send(user_id: string, which: Address, source: string): Promise<void> {
      const claimed = waitingFor(await stores.users.find(user_id), which)
      if (claimed === null || !(await mayEmailUnconfirmed(parts, claimed, source))) return
      // Locked, so that the link goes to the address that it confirms, since a change of the address ends the
      // link.
      const about = await stores.transaction(async (inside) => {
        const user = await inside.users.lock(user_id)
        if (!user || waitingFor(user, which) !== claimed) return undefined
        const kind = confirmationKinds[which]
        await inside.tokens.removeOf(user_id, kind)
        const token = await issueToken(parts, inside, { kind, user_id, lives_ms: link_ms })
        return { to: claimed, name: user.name, username: user.username, token }
      })
      if (about) await mailer.send(emails.confirmAddress(about))
    },

    /** `accountOf`: the address of an account that waits for its first confirmation, and for nothing else. */
    async confirm(
      { token, password, accountOf }: Confirmation,
      caller: Caller,
      by: WaitingCaller,
    ): Promise<void> {
      const claim = await claimOf(token, accountOf === undefined ? undefined : 'activation')
      const { kind, which, hash } = claim
      if (password !== undefined) await mustMatch(claim.user, password, by)
      await confirming(caller, async (inside, record) => {
        await inside.addressClaims.hold(accountOf ?? claim.user.email)
        const user = await inside.users.lock(claim.user.id)
        const isSpent = user && (await inside.tokens.spend(kind, hash, iso(clock.now())))
        if (!isSpent || (accountOf !== undefined && user.email !== accountOf)) throw new Failure('wrongToken')
        const target = userTarget(user)
        const isProved = password !== undefined && user.password === claim.user.password
        if (kind === 'activation') {
          await take(inside, record, user, { confirmed: 1 }, isProved)
          record({ action: 'user.activated', target, tenant_id: '' })
          return
        }
        if (waitingFor(user, which) === null) throw new Failure('wrongToken')
        if (which === 'email') await take(inside, record, user, { former_email: null }, isProved)
        else await inside.users.save(user.id, { former_recovery_email: null })
        record({ action: 'user.email.confirmed', target, detail: { which }, tenant_id: '' })
        for (const ended of replaced[which]) await inside.tokens.removeOf(user.id, ended)
      })
    },
  }
}
