// A user's e-mail addresses, password and second factor. A changed address is shown at once but counts only
// after its owner has opened the link sent there (confirmations.ts); until then e-mails that give access go
// to the former address. Every change can be undone (identity-changes.ts). The first recovery address counts
// at once, because no earlier one exists that e-mails could go to.
import { Failure } from '@hawser/contract/failures'
import { patterns } from '@hawser/contract/fields'
import { iso, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Vault } from '../../kit/secrets.ts'
import type { TokenKind } from '../../storage/one-time-tokens.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { UserRow } from '../../storage/users.ts'
import { theServer, type Audit, type Recorder } from '../audit/audit.ts'
import { logsOf } from '../audit/refusals.ts'
import { signInOf } from '../callers/callers.ts'

export type Changed = 'email' | 'recovery_email' | 'second factor'
export type Address = Exclude<Changed, 'second factor'>

/** The kind of the token that confirms each address. */
export const confirmationKinds = { email: 'confirm-email', recovery_email: 'confirm-recovery-email' } as const

/** The last address that its owner confirmed, which receives e-mails that give access. */
export const countingEmail = (user: UserRow): string => user.former_email ?? user.email
export const countingRecoveryEmail = (user: UserRow): string | null =>
  user.former_recovery_email ?? user.recovery_email

/** The former address to store with a new one: the one that counts, or null when both are the same. */
const formerOf = (counting: string | null, shown: string | null): string | null =>
  counting === shown ? null : counting

/** Adds the former addresses to a change that replaces an address. */
export function withFormer(user: UserRow, columns: Partial<UserRow>): Partial<UserRow> {
  return {
    ...columns,
    ...(columns.email !== undefined && { former_email: formerOf(countingEmail(user), columns.email) }),
    ...(columns.recovery_email !== undefined && {
      former_recovery_email: formerOf(countingRecoveryEmail(user), columns.recovery_email),
    }),
  }
}

/** A change checks that these columns are as it read them; an undo restores them. */
const proofs = ['email', 'former_email', 'recovery_email', 'former_recovery_email', 'mfa_secret'] as const

/**
 * Locks a user who was read before the transaction, and throws when the user has changed since: a request
 * that was under way when all tokens ended must not overwrite that change.
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

export const userTarget = ({ id, username: name }: Named) => ({ kind: 'user', id, name })

interface NewToken {
  readonly kind: TokenKind
  readonly user_id: string
  readonly lives_ms: number
  /** The name that was typed at sign-in. */
  readonly typed?: string
}

/** The database gets the token's keyed hash only. */
export async function issueToken(
  { vault, clock }: { readonly vault: Vault; readonly clock: Clock },
  inside: StoresInTransaction,
  { lives_ms, ...about }: NewToken,
): Promise<string> {
  const token = newUuid()
  const expires_at = iso(clock.now() + lives_ms)
  await inside.tokens.insert({ ...about, hash: vault.mark(about.kind, token), expires_at })
  return token
}

function noteEnded(record: Recorder, accounts: readonly Named[], detail: Record<string, string>): void {
  for (const account of accounts)
    record({ action: 'user.removed', target: userTarget(account), detail, tenant_id: '' })
}

/** Runs in the transaction in which the address becomes this user's. */
export async function endClaims(
  inside: StoresInTransaction,
  record: Recorder,
  { id, email, username }: Named & Pick<UserRow, 'email'>,
): Promise<void> {
  noteEnded(record, await inside.addressClaims.end(email, id), { address_confirmed_by: username })
}

/** Also ends accounts that registered before this moment with such a claim. */
export async function endOldClaims(audit: Audit, registeredBefore: string): Promise<void> {
  await audit.change(theServer, async (inside, record) =>
    noteEnded(record, await inside.addressClaims.sweep(registeredBefore), {
      reason: 'address not confirmed',
    }),
  )
}

/**
 * Ends a user's invitations, into namespaces and to sessions: a thief may have made some to come back with.
 * Invitations into namespaces can be sent again.
 */
export async function endInvitations(
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
  /** The hash of the password. */
  readonly password: string
  readonly now: string
  /** The token that sets it, which stays good. */
  readonly kept_token?: string
  /** How it came to be set, for the audit log. */
  readonly method?: string
}

/**
 * Sets the password of a locked user. Other sign-ins, invitations and one-time tokens issued under the old
 * password end.
 */
export async function setPassword(
  inside: StoresInTransaction,
  record: Recorder,
  user: Named,
  { password, now, kept_token, method }: NewPassword,
): Promise<void> {
  const { id } = user
  await inside.users.savePassword(id, password, kept_token)
  await inside.signIns.endOthers(id, kept_token === undefined ? '' : signInOf(kept_token))
  for (const kind of ['recovery', 'mfa-sign-in', 'mfa-reset-main'] as const)
    await inside.tokens.removeOf(id, kind)
  for (const tenant_id of await logsOf(inside, id))
    record({
      action: 'user.password.changed',
      target: userTarget(user),
      ...(method !== undefined && { detail: { method } }),
      tenant_id,
    })
  await endInvitations(inside, record, user, now)
}

const address = new RegExp(patterns.email, 'u')

/**
 * Finds the user that another person named: by user name, or by confirmed e-mail address. An address never
 * matches a user name, and an unconfirmed address matches nobody: otherwise the first to register it would get
 * the rights that are meant for its owner.
 */
export function findOther(stores: Pick<Stores, 'users'>, identifier: string): Promise<UserRow | undefined> {
  const name = identifier.toLowerCase()
  return address.test(name) ? stores.users.findByConfirmedEmail(name) : stores.users.findByUsername(name)
}
