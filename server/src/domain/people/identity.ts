// What proves who somebody is (the addresses and the second factor), and what a token alone may do to it. A
// changed address is shown at once, but counts only when it is confirmed by the link that goes there: until
// then the e-mails that let one in go to the former one. Every change is told at once to the addresses that
// count, with a link that for 72 hours puts everything back as it was before: the addresses, the second
// factor, and no token stays good. A password that was set since then stops working, too, because it may have
// been set with a link that went to a stranger's address.
//
// The first recovery address counts at once: there is none before it to which anything could go.
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { hour_ms, iso, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Letters } from '../../mail/emails.ts'
import type { Post } from '../../mail/mailer.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'

export interface IdentityParts {
  stores: Stores
  vault: Vault
  clock: Clock
  post: Post
  letters: Letters
  background: Lifetime
}

/** What a letter about a change names. */
export type Changed = 'email' | 'recovery_email' | 'second factor'
type Address = Exclude<Changed, 'second factor'>

const undo_ms = 72 * hour_ms
const changes_per_hour = 10
const kinds = { email: 'confirm-email', recovery_email: 'confirm-recovery-email' } as const
const addresses = ['email', 'recovery_email'] as const

/** The address to which everything goes that lets one in. */
export const countingEmail = (user: UserRow): string => user.former_email ?? user.email
export const countingRecoveryEmail = (user: UserRow): string | null =>
  user.former_recovery_email ?? user.recovery_email

/**
 * What becomes of the former address when another one is shown: it goes on counting, unless the new one is
 * the same.
 */
const formerOf = (counting: string | null, shown: string | null): string | null =>
  counting === shown ? null : counting

/** The columns that change with the addresses that are shown. */
export function withFormer(user: UserRow, columns: Partial<UserRow>): Partial<UserRow> {
  return {
    ...columns,
    ...(columns.email === undefined ? {} : { former_email: formerOf(countingEmail(user), columns.email) }),
    ...(columns.recovery_email === undefined
      ? {}
      : { former_recovery_email: formerOf(countingRecoveryEmail(user), columns.recovery_email) }),
  }
}

/** What a change is judged by, and an undo brings back. */
const proofs = ['email', 'former_email', 'recovery_email', 'former_recovery_email', 'mfa_secret'] as const

/**
 * Locks a user who was read before the transaction, and refuses to go on when they are not as they were: a
 * request that was on its way when all tokens ended must not write over what ended them.
 */
export async function lockAsRead(inside: StoresInTransaction, user: UserRow): Promise<void> {
  const now = await inside.users.lock(user.id)
  if (now?.epoch !== user.epoch) throw new Failure('unauthenticated')
  if (proofs.some((proof) => now[proof] !== user[proof]))
    throw new Failure('conflict', {
      message: 'Another request changed the same at this moment; look, and try again.',
    })
}

/** Sets the password of a user who is locked. What was on its way for the old one is worth nothing now. */
export async function setPassword(
  inside: StoresInTransaction,
  id: string,
  password: string,
  kept_token?: string,
): Promise<void> {
  await inside.users.savePassword(id, password, kept_token)
  for (const kind of ['recovery', 'mfa-sign-in', 'mfa-reset-main'] as const)
    await inside.tokens.removeOf(id, kind)
}

const address = new RegExp(patterns.email, 'u')

/**
 * Whom others mean by a name that they typed: a user name, or a confirmed e-mail. An address never matches a
 * user name, and one that nobody has confirmed matches nobody: else whoever typed it first would get what is
 * meant for its owner.
 */
export function findOther(stores: Pick<Stores, 'users'>, identifier: string): Promise<UserRow | undefined> {
  const name = identifier.toLowerCase()
  return address.test(name) ? stores.users.findByConfirmedEmail(name) : stores.users.findByUsername(name)
}

export type Identity = ReturnType<typeof identity>

export function identity({ stores, vault, clock, post, letters, background }: IdentityParts) {
  const issued = (lives_ms: number) => ({ token: newUuid(), expires_at: iso(clock.now() + lives_ms) })

  /** Sends the link that confirms an address, if it waits for one; it ends the link before. */
  async function sendConfirmation(user_id: string, which: Address): Promise<void> {
    const kind = kinds[which]
    const { token, expires_at } = issued(undo_ms)
    // Locked, so that the link goes to the very address that it confirms: whoever changes the address ends
    // the link.
    const about = await stores.transaction(async (inside) => {
      const user = await inside.users.lock(user_id)
      const waiting = which === 'email' ? user?.former_email : user?.former_recovery_email
      const to = user?.[which]
      if (!user || !waiting || !to) return undefined
      await inside.tokens.removeOf(user_id, kind)
      await inside.tokens.insert({ kind, hash: vault.mark(kind, token), user_id, expires_at })
      return { to, name: user.name }
    })
    if (about) await post.send(letters.confirmAddress({ ...about, token }))
  }

  /** Refuses the eleventh change in an hour, since each sends letters and keeps what was before. */
  async function countChange(user_id: string): Promise<void> {
    const now = clock.now()
    const count = await stores.attempts.count(`addresses ${user_id}`, iso(now), iso(now + hour_ms))
    if (count > changes_per_hour) throw new Failure('tooMany', { retryAfter: hour_ms / 1000 })
  }

  return {
    /** Whether the columns change an address; if so, it is counted. */
    async changed(user: UserRow, columns: Partial<UserRow>): Promise<Address[]> {
      const found = addresses.filter(
        (which) => columns[which] !== undefined && columns[which] !== user[which],
      )
      if (found.length > 0) await countChange(user.id)
      return found
    },

    countChange,

    /**
     * Keeps what is before a change, inside the transaction that makes it. What it gives is called after the
     * commit and tells those whom it concerns: the addresses that count now, and new ones that wait to be
     * confirmed.
     */
    async keep(inside: StoresInTransaction, user: UserRow, changed: readonly Changed[]): Promise<() => void> {
      const { token, expires_at } = issued(undo_ms)
      await inside.identityChanges.insert({
        user_id: user.id,
        hash: vault.mark('undo', token),
        epoch: user.epoch,
        email: countingEmail(user),
        recovery_email: countingRecoveryEmail(user),
        mfa_secret: user.mfa_secret,
        mfa_recovery_codes: JSON.stringify(await inside.users.recoveryCodes(user.id)),
        expires_at,
      })
      const confirming = addresses.filter((which) => changed.includes(which))
      // A link that went to the address before this one confirms nothing any more.
      for (const which of confirming) await inside.tokens.removeOf(user.id, kinds[which])
      const former = changed.includes('recovery_email') ? countingRecoveryEmail(user) : null
      const told = new Set([countingEmail(user), ...(former === null ? [] : [former])])
      return () =>
        background.later('letter.changed', async () => {
          for (const to of told) await post.send(letters.changed({ to, name: user.name, changed, token }))
          for (const which of confirming) await sendConfirmation(user.id, which)
        })
    },

    sendConfirmation,

    /** Makes the address count that the link went to. */
    async confirm(token: string): Promise<void> {
      await stores.transaction(async (inside) => {
        for (const which of addresses) {
          const hash = vault.mark(kinds[which], token)
          const found = await inside.tokens.find(kinds[which], hash, iso(clock.now()))
          if (!found?.user_id || !(await inside.tokens.spend(kinds[which], hash, iso(clock.now())))) continue
          await inside.users.save(
            found.user_id,
            which === 'email' ? { former_email: null } : { former_recovery_email: null },
          )
          // What is on its way to the former address is worth nothing now.
          for (const kind of which === 'email'
            ? (['recovery', 'mfa-reset-main'] as const)
            : (['mfa-reset-recovery'] as const))
            await inside.tokens.removeOf(found.user_id, kind)
          return
        }
        throw new Failure('wrongToken')
      })
    },

    /**
     * Puts everything back as it was before the change that the link is about; tells whether a new password
     * is needed. The addresses that are no longer the account's are told, too: the link may be in the hands
     * of a stranger.
     */
    async undo(token: string): Promise<{ user_id: string; passwordGone: boolean }> {
      const { user, before, passwordGone } = await stores.transaction(async (inside) => {
        const before = await inside.identityChanges.spend(vault.mark('undo', token), iso(clock.now()))
        const user = before && (await inside.users.endTokens(before.user_id))
        if (!user) throw new Failure('wrongToken')
        const { id } = user
        const passwordGone = user.epoch !== before.epoch + 1
        await inside.users.save(id, {
          email: before.email,
          former_email: null,
          recovery_email: before.recovery_email,
          former_recovery_email: null,
          // Empty is no hash of any password.
          ...(passwordGone ? { password: '' } : {}),
        })
        if (user.mfa_secret !== before.mfa_secret) {
          await inside.users.save(id, { mfa_secret: before.mfa_secret })
          // Those that were spent since are empty.
          const codes = (JSON.parse(before.mfa_recovery_codes) as string[]).filter((code) => code !== '')
          await inside.users.setRecoveryCodes(id, codes)
        }
        await inside.users.removeDraft(id)
        await inside.tokens.removeAllOf(id)
        await inside.identityChanges.removeAfter(id, before.id)
        await inside.identityChanges.raiseEpochs(id)
        return { user, before, passwordGone }
      })
      const gone = new Set([user.former_email, user.email, user.former_recovery_email, user.recovery_email])
      for (const kept of [null, before.email, before.recovery_email]) gone.delete(kept)
      background.later('letter.undone', async () => {
        for (const to of gone) if (to !== null) await post.send(letters.undone({ to, name: user.name }))
      })
      return { user_id: user.id, passwordGone }
    },
  }
}
