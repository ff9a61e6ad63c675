// What proves who a user is (the e-mail addresses and the second factor), and what a token alone may change
// of it. A changed address is shown at once but counts only after its owner has opened the link sent there;
// until then e-mails that give access go to the former address. Every change is reported at once to the
// addresses that count, with a link that undoes it for 72 hours: the link restores addresses and second
// factor and ends every token. A password that was set since then stops working, too, because it may have
// been set with a link that went to a stranger's address.
//
// The first recovery address counts at once, because no earlier one exists that e-mails could go to.
//
// Any number of accounts may claim an address that nobody has confirmed. Whoever confirms it has it, and the other
// claims end. All their links go to the owner of the address, who may follow that of somebody else: while several
// accounts claim it, a link works only together with the password of its account.
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { neighbourhood } from '../../kit/address.ts'
import { hour_ms, iso, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import { theServer, type Audit, type Recorder } from '../audit/audit.ts'
import { logsOf } from '../audit/refusals.ts'
import { signInOf, type Caller } from '../callers/callers.ts'
import { passwordMatches, type WaitingCaller } from './credentials.ts'
import { fiveTries, type Lockout } from './lockout.ts'

export interface IdentityParts {
  stores: Stores
  audit: Audit
  vault: Vault
  clock: Clock
  lockout: Lockout
  mailer: Mailer
  emails: Emails
  background: Lifetime
}

/** What an e-mail about a change names. */
export type Changed = 'email' | 'recovery_email' | 'second factor'
type Address = Exclude<Changed, 'second factor'>

const undo_ms = 72 * hour_ms
const changes_per_hour = 10
/**
 * E-mails in an hour to a mailbox of which nobody has shown that it is theirs: from one network, and from all together,
 * so that one network cannot use up what the owner of the mailbox needs. When several have, the first e-mail for
 * another network comes out of a reserve.
 */
const unconfirmed_emails = { ofNetwork: 5, ofAll: 20, reserve: 10 }
const kinds = { email: 'confirm-email', recovery_email: 'confirm-recovery-email' } as const
const addresses = ['email', 'recovery_email'] as const
/** Links that make an address count, by the kind of their token, with the address that each is about. */
const links = [
  ['activation', 'email'],
  [kinds.email, 'email'],
  [kinds.recovery_email, 'recovery_email'],
] as const

/** The address that receives e-mails that give access: the last one that its owner confirmed. */
export const countingEmail = (user: UserRow): string => user.former_email ?? user.email
export const countingRecoveryEmail = (user: UserRow): string | null =>
  user.former_recovery_email ?? user.recovery_email

/** The address that waits to be confirmed instead of one that counts, if there is one. */
const waitingFor = (user: UserRow | undefined, which: Address): string | null =>
  (which === 'email' ? user?.former_email : user?.former_recovery_email) ? (user?.[which] ?? null) : null

/** The former address to store beside a new one: the one that counts, or null when both are the same. */
const formerOf = (counting: string | null, shown: string | null): string | null =>
  counting === shown ? null : counting

/** Adds the former addresses to a change of columns that replaces an address. */
export function withFormer(user: UserRow, columns: Partial<UserRow>): Partial<UserRow> {
  return {
    ...columns,
    ...(columns.email === undefined ? {} : { former_email: formerOf(countingEmail(user), columns.email) }),
    ...(columns.recovery_email === undefined
      ? {}
      : { former_recovery_email: formerOf(countingRecoveryEmail(user), columns.recovery_email) }),
  }
}

/**
 * Columns that prove who the user is. A change checks that they are as it read them; an undo restores them.
 */
const proofs = ['email', 'former_email', 'recovery_email', 'former_recovery_email', 'mfa_secret'] as const

/**
 * Locks a user whom the caller read before the transaction, and throws when the user has changed since: a
 * request that was under way when all tokens ended must not overwrite the change that ended them.
 */
export async function lockAsRead(inside: StoresInTransaction, user: UserRow): Promise<void> {
  const now = await inside.users.lock(user.id)
  if (now?.epoch !== user.epoch) throw new Failure('unauthenticated')
  if (proofs.some((proof) => now[proof] !== user[proof]))
    throw new Failure('conflict', {
      message: 'Another request changed the same at this moment; check the result and try again.',
    })
}

type Named = Pick<UserRow, 'id' | 'username'>

function noteEnded(record: Recorder, accounts: readonly Named[], detail: Record<string, string>): void {
  for (const { id, username: name } of accounts)
    record({ action: 'user.removed', target: { kind: 'user', id, name }, detail, tenant_id: '' })
}

/** Ends what others claim of an address, in the transaction in which it becomes this user's. */
export async function endClaims(
  inside: StoresInTransaction,
  record: Recorder,
  { id, email, username }: Named & Pick<UserRow, 'email'>,
): Promise<void> {
  noteEnded(record, await inside.addressClaims.end(email, id), { address_confirmed_by: username })
}

/** Ends claims that nobody has confirmed in time, and the accounts that registered before this moment with them. */
export async function endOldClaims(audit: Audit, registeredBefore: string): Promise<void> {
  await audit.change(theServer, async (inside, record) =>
    noteEnded(record, await inside.addressClaims.sweep(registeredBefore), {
      reason: 'address not confirmed',
    }),
  )
}

/**
 * Ends the invitations that a user made, into namespaces and to sessions: somebody else who was signed in as the user
 * may have made some to come back with. Those into namespaces can be sent again.
 */
async function endInvitations(
  inside: StoresInTransaction,
  record: Recorder,
  { id, username }: Named,
  now: string,
): Promise<void> {
  for (const { id: invitation, tenant_id, email, role } of await inside.presentedMemberInvitations.endOf(
    id,
    now,
  ))
    record({
      action: 'invitation.ended',
      target: { kind: 'invitation', id: invitation, name: email },
      detail: { role, invited_by: username },
      tenant_id,
    })
  for (const row of await inside.presentedInvitations.removeOf(id)) {
    const { tenant_id, session_uid, expires_at } = row
    if (expires_at <= now) continue
    const session = await inside.of(tenant_id).sessions.find(session_uid)
    record({
      action: 'session.invitation.revoked',
      target: { kind: 'session', id: session_uid, name: session?.username ?? '' },
      detail: { invitation: row.id, mode: row.mode, to: row.for_name, expires_at, created_by: username },
      tenant_id,
    })
  }
}

interface NewPassword {
  /** Its hash. */
  readonly password: string
  readonly now: string
  /** The token that sets it, which stays good. */
  readonly kept_token?: string
  /** How it came to be set, for the audit log. */
  readonly method?: string
}

/**
 * Sets the password of a locked user. The other sign-ins end, every one-time token that was issued under the old
 * password, and the invitations that the user made.
 */
export async function setPassword(
  inside: StoresInTransaction,
  record: Recorder,
  user: Named,
  { password, now, kept_token, method }: NewPassword,
): Promise<void> {
  const { id, username: name } = user
  await inside.users.savePassword(id, password, kept_token)
  await inside.signIns.endOthers(id, kept_token === undefined ? '' : signInOf(kept_token))
  for (const kind of ['recovery', 'mfa-sign-in', 'mfa-reset-main'] as const)
    await inside.tokens.removeOf(id, kind)
  for (const tenant_id of await logsOf(inside, id))
    record({
      action: 'user.password.changed',
      target: { kind: 'user', id, name },
      ...(method === undefined ? {} : { detail: { method } }),
      tenant_id,
    })
  await endInvitations(inside, record, user, now)
}

const address = new RegExp(patterns.email, 'u')

/** Where an e-mail arrives: most servers deliver anna+anything@example.com to anna@example.com. */
export const mailboxOf = (email: string): string => email.replace(/\+[^@]*@/, '@')

/**
 * Finds the user whom another person named: by user name, or by confirmed e-mail address. An address never
 * matches a user name, and an unconfirmed address matches nobody: otherwise whoever registered it first would
 * get the rights that are meant for its owner.
 */
export function findOther(stores: Pick<Stores, 'users'>, identifier: string): Promise<UserRow | undefined> {
  const name = identifier.toLowerCase()
  return address.test(name) ? stores.users.findByConfirmedEmail(name) : stores.users.findByUsername(name)
}

interface Confirmation {
  readonly token: string
  readonly password?: string | undefined
  readonly accountOf?: string | undefined
}

export type Identity = ReturnType<typeof identity>

export function identity(parts: IdentityParts) {
  const { stores, audit, vault, clock, lockout, mailer, emails, background } = parts
  const issued = (lives_ms: number) => ({ token: newUuid(), expires_at: iso(clock.now() + lives_ms) })

  /** Counts an e-mail to an address that nobody has confirmed; false when there were too many in this hour. */
  async function mayEmailUnconfirmed(email: string, source: string): Promise<boolean> {
    const now = clock.now()
    const counted = (subject: string): Promise<number> =>
      stores.attempts.count(`unconfirmed ${subject}`, iso(now), iso(now + hour_ms))
    const mailbox = mailboxOf(email)
    const ofNetwork = await counted(`${neighbourhood(source)} ${mailbox}`)
    if (ofNetwork > unconfirmed_emails.ofNetwork) return false
    if ((await counted(mailbox)) <= unconfirmed_emails.ofAll) return true
    return ofNetwork === 1 && (await counted(`reserve ${mailbox}`)) <= unconfirmed_emails.reserve
  }

  /**
   * Sends the link that confirms an address, if the address waits for one. The previous link ends. `source` is where
   * the request came from.
   */
  async function sendConfirmation(user_id: string, which: Address, source: string): Promise<void> {
    const kind = kinds[which]
    const claimed = waitingFor(await stores.users.find(user_id), which)
    if (claimed === null || !(await mayEmailUnconfirmed(claimed, source))) return
    const { token, expires_at } = issued(undo_ms)
    // The user is locked so that the link goes to the address that it confirms: a change of the address ends
    // the link.
    const about = await stores.transaction(async (inside) => {
      const user = await inside.users.lock(user_id)
      if (!user || waitingFor(user, which) !== claimed) return undefined
      await inside.tokens.removeOf(user_id, kind)
      await inside.tokens.insert({ kind, hash: vault.mark(kind, token), user_id, expires_at })
      return { to: claimed, name: user.name, username: user.username }
    })
    if (about) await mailer.send(emails.confirmAddress({ ...about, token }))
  }

  /**
   * Refuses the eleventh change in an hour, because each change sends e-mails and stores the state before.
   */
  async function countChange(user_id: string): Promise<void> {
    const now = clock.now()
    const count = await stores.attempts.count(`addresses ${user_id}`, iso(now), iso(now + hour_ms))
    if (count > changes_per_hour) throw new Failure('tooMany', { retryAfter: hour_ms / 1000 })
  }

  /** Runs a change in which a user takes an address; the token is wrong when somebody else was quicker. */
  async function confirming(by: Caller, work: Parameters<typeof audit.change<void>>[1]): Promise<void> {
    try {
      await audit.change(by, work)
    } catch (error) {
      throw stores.isDuplicate(error) ? new Failure('wrongToken') : error
    }
  }

  /** The good token of a link, with the user who waits for it. */
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

  /** Throws unless the password is that of the user. */
  async function mustMatch(user: UserRow, password: string, by: WaitingCaller): Promise<void> {
    await lockout.judge(
      `password ${user.id}`,
      fiveTries,
      () => new Failure('wrongCredentials', { message: 'This is not the password of the account.' }),
      async () => (await passwordMatches(password, user.password, by)) || undefined,
    )
  }

  /** Makes the shown address of a locked user count by this change, unless somebody has it already. */
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
    /** The addresses that the columns change. A change of any counts towards the hourly limit. */
    async changed(user: UserRow, columns: Partial<UserRow>): Promise<Address[]> {
      const found = addresses.filter(
        (which) => columns[which] !== undefined && columns[which] !== user[which],
      )
      if (found.length > 0) await countChange(user.id)
      return found
    },

    countChange,

    /**
     * Stores the state before a change, inside the transaction that makes the change. Gives a function to
     * call after the commit, which sends e-mails to the addresses that count now and to new ones that need
     * confirming.
     */
    async saveUndo(
      inside: StoresInTransaction,
      user: UserRow,
      changed: readonly Changed[],
      source: string,
    ): Promise<() => void> {
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
      // A link that went to the previous address must not confirm the new one.
      for (const which of confirming) await inside.tokens.removeOf(user.id, kinds[which])
      const former = changed.includes('recovery_email') ? countingRecoveryEmail(user) : null
      const recipients = new Set([countingEmail(user), ...(former === null ? [] : [former])])
      return () =>
        background.later('email.changed', async () => {
          for (const to of recipients)
            await mailer.send(emails.changed({ to, name: user.name, changed, token }))
          for (const which of confirming) await sendConfirmation(user.id, which, source)
        })
    },

    mayEmailUnconfirmed,
    sendConfirmation,

    /**
     * Makes the address count to which the link was sent. `accountOf` is the address of an account that waits for its
     * first confirmation, and for nothing else.
     */
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
        const target = { kind: 'user', id: user.id, name: user.username }
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
        // Links and codes that were sent to the former address end here.
        for (const ended of which === 'email'
          ? (['recovery', 'mfa-reset-main'] as const)
          : (['mfa-reset-recovery'] as const))
          await inside.tokens.removeOf(user.id, ended)
      })
    },

    /**
     * Restores the state before the change that the link is about; gives whether a new password is needed.
     * The addresses that the account loses get an e-mail, too, because a stranger may have used the link.
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
          // An empty hash matches no password.
          ...(passwordGone ? { password: '' } : {}),
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
            target: { kind: 'user', id, name: user.username },
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
