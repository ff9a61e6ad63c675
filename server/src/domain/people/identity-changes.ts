// Changes of a user's addresses, password or second factor, and their undoing. Every change is e-mailed at
// once to the addresses that count, with a link that undoes it for 72 hours: it restores addresses and second
// factor and ends every token. A password set since then stops working, too, because a stranger may have
// received the link that set it.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { beyond, peopleLimits } from '@hawser/contract/limits'
import { hour_ms, iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import type { Parts } from '../audit/parts.ts'
import { logsOf } from '../audit/refusals.ts'
import type { Caller } from '../callers/callers.ts'
import type { confirmations } from './confirmations.ts'
import { counted } from './email-bounds.ts'
import {
  confirmationKinds,
  countingEmail,
  countingRecoveryEmail,
  endInvitations,
  userTarget,
  type Address,
  type Changed,
} from './identity.ts'

export interface IdentityChangeParts extends Omit<Parts, 'bus'> {
  confirmations: ReturnType<typeof confirmations>
}

const undo_ms = 72 * hour_ms
const addresses = ['email', 'recovery_email'] as const

/** Each change sends e-mails and stores the state before. */
async function countChange(parts: IdentityChangeParts, user_id: string): Promise<void> {
  const { addresses: limit } = peopleLimits
  const { max, window_ms } = limit
  if ((await counted(parts, `addresses ${user_id}`, window_ms)) > max) throw beyond(limit, window_ms / 1000)
}

export type IdentityChanges = ReturnType<typeof identityChanges>

export function identityChanges(parts: IdentityChangeParts) {
  const { audit, vault, clock, mailer, emails, background, confirmations } = parts

  return {
    /** The addresses that the columns change. A change of any counts towards the hourly limit. */
    async changed(user: UserRow, columns: Partial<UserRow>): Promise<Address[]> {
      const found = addresses.filter(
        (which) => columns[which] !== undefined && columns[which] !== user[which],
      )
      if (found.length > 0) await countChange(parts, user.id)
      return found
    },

    countChange: (user_id: string): Promise<void> => countChange(parts, user_id),

    /**
     * Stores the state before a change, in its transaction. The returned function, called after the commit,
     * e-mails the addresses that count and new ones that need confirming.
     */
    async saveUndo(
      inside: StoresInTransaction,
      user: UserRow,
      changed: readonly Changed[],
      source: string,
    ): Promise<() => void> {
      const token = newUuid()
      await inside.identityChanges.insert({
        user_id: user.id,
        hash: vault.mark('undo', token),
        epoch: user.epoch,
        email: countingEmail(user),
        recovery_email: countingRecoveryEmail(user),
        mfa_secret: user.mfa_secret,
        mfa_recovery_codes: JSON.stringify(await inside.users.recoveryCodes(user.id)),
        expires_at: iso(clock.now() + undo_ms),
      })
      const confirming = addresses.filter((which) => changed.includes(which))
      // A link that went to the previous address must not confirm the new one.
      for (const which of confirming) await inside.tokens.removeOf(user.id, confirmationKinds[which])
      const former = changed.includes('recovery_email') ? countingRecoveryEmail(user) : null
      const recipients = new Set([countingEmail(user), ...(former === null ? [] : [former])])
      return () =>
        background.later('email.changed', async () => {
          for (const to of recipients)
            await mailer.send(emails.changed({ to, name: user.name, changed, token }))
          for (const which of confirming) await confirmations.send(user.id, which, source)
        })
    },

    /**
     * Restores the state before a change; returns whether a new password is needed. Addresses that the
     * account loses get an e-mail, too, because a stranger may have used the link.
     */
    async undo(token: string, caller: Caller): Promise<{ user_id: string; passwordGone: boolean }> {
      const { user, before, passwordGone } = await audit.change(caller, async (inside, record) => {
        const before = await inside.identityChanges.spend(vault.mark('undo', token), iso(clock.now()))
        const user = before && (await inside.users.endTokens(before.user_id))
        if (!user) throw new Failure('wrongToken')
        const { id } = user
        await inside.signIns.endOthers(id, '')
        const passwordGone = user.epoch !== before.epoch + 1
        await inside.users.save(id, {
          email: before.email,
          former_email: null,
          recovery_email: before.recovery_email,
          former_recovery_email: null,
          ...defined({ password: passwordGone ? '' : undefined }),
        })
        if (user.mfa_secret !== before.mfa_secret) {
          await inside.users.save(id, { mfa_secret: before.mfa_secret })
          // A code that was used since then is stored as an empty text.
          const codes = (JSON.parse(before.mfa_recovery_codes) as string[]).filter((code) => code !== '')
          await inside.users.setRecoveryCodes(id, codes)
        }
        await inside.users.removeDraft(id)
        await inside.tokens.removeAllOf(id)
        await inside.identityChanges.removeAfter(id, before.id)
        await inside.identityChanges.raiseEpochs(id)
        for (const tenant_id of await logsOf(inside, id))
          record({
            action: 'user.identity.restored',
            target: userTarget(user),
            detail: { password_ended: passwordGone },
            tenant_id,
          })
        await endInvitations(inside, record, user, iso(clock.now()))
        return { user, before, passwordGone }
      })
      const gone = new Set([user.former_email, user.email, user.former_recovery_email, user.recovery_email])
      for (const kept of [null, before.email, before.recovery_email]) gone.delete(kept)
      background.later('email.undone', async () => {
        for (const to of gone) if (to !== null) await mailer.send(emails.undone({ to, name: user.name }))
      })
      return { user_id: user.id, passwordGone }
    },
  }
}
