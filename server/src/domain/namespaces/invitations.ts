// Invitations into a namespace, by e-mail. What an invitation is worth is asked anew each time: whether it has
// expired, and whether whoever made it may still grant the role. It is spent in the transaction that adds the member,
// so that it works once. Only an account whose confirmed address is the invited one can accept.
//
// A link that went out by e-mail proves that its holder reads the mailbox, so an account that is made with it is
// confirmed. A token that was shown to whoever invites proves nothing: such an account waits for its confirmation.
import { mayManage, rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import {
  mostMemberInvitations,
  usualInvitation_days,
  type MemberInvitation,
} from '@hawser/contract/invitations'
import { day_ms, hour_ms, iso, type Clock } from '../../kit/clock.ts'
import { newBase32, newUuid } from '../../kit/ids.ts'
import type { Lifetime } from '../../kit/lifetime.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { Emails } from '../../mail/emails.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { MemberInvitationRow, FoundMemberInvitation } from '../../storage/member-invitations.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import type { Audit, Recorder } from '../audit/audit.ts'
import { callingUser, type MemberCaller, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { countingEmail, mailboxOf } from '../people/identity.ts'
import type { SignIn } from '../people/sign-in.ts'
import type { UserAdministration } from '../people/users.ts'
import { mayGrant } from './namespaces.ts'

interface Bound {
  readonly most: number
  readonly lasts_ms: number
}
/** Invitations of one inviter, to whomever. */
const ofInviter: Bound = { most: 30, lasts_ms: hour_ms }
/**
 * E-mails to one mailbox. The bound of all together protects the mailbox; neither a namespace nor a person can use it
 * up, because then the others could not invite the address.
 */
const toAddress = {
  ofNamespace: { most: 3, lasts_ms: day_ms },
  ofInviter: { most: 5, lasts_ms: day_ms },
  ofAll: { most: 12, lasts_ms: day_ms },
} satisfies Record<string, Bound>

export interface InvitationParts {
  stores: Stores
  audit: Audit
  clock: Clock
  mailer: Mailer
  emails: Emails
  background: Lifetime
  users: UserAdministration
  signIn: SignIn
  /** Whether there is a mail server. Without one, whoever invites gets the token. */
  hasMail: boolean
  registration: 'open' | 'invited' | 'closed'
}

export function invitations(parts: InvitationParts): Rules<'invitations'> {
  const { stores, audit, clock, background } = parts

  const present = (row: Omit<MemberInvitationRow, 'tenant_id'>, invited_by: string): MemberInvitation => ({
    id: row.id,
    email: row.email,
    role: row.role,
    invited_by,
    created_at: row.created_at,
    sent_at: row.sent_at,
    expires_at: row.expires_at,
  })
  const targetOf = ({ id, email }: Pick<MemberInvitationRow, 'id' | 'email'>) => ({
    kind: 'invitation',
    id,
    name: email,
  })

  /** Refuses what would flood a mailbox, or make this server a sender of junk. */
  async function countEmail({ id, tenant_id }: Pick<UserCaller, 'id' | 'tenant_id'>, email: string) {
    const now = clock.now()
    const isTooMany = async (subject: string, { most, lasts_ms }: Bound): Promise<boolean> =>
      (await stores.attempts.count(subject, iso(now), iso(now + lasts_ms))) > most
    if (await isTooMany(`invitations of ${id}`, ofInviter))
      throw new Failure('tooMany', {
        message: 'You have invited many people within an hour; wait a little.',
        retryAfter: ofInviter.lasts_ms / 1000,
      })
    if (!parts.hasMail) return
    const retryAfter = day_ms / 1000
    const mailbox = mailboxOf(email)
    // What one namespace or person is refused does not count for the others.
    if (await isTooMany(`invitations in ${tenant_id} to ${mailbox}`, toAddress.ofNamespace))
      throw new Failure('tooMany', {
        message: 'Your namespace has invited this address several times today; wait until tomorrow.',
        retryAfter,
      })
    if (await isTooMany(`invitations of ${id} to ${mailbox}`, toAddress.ofInviter))
      throw new Failure('tooMany', {
        message: 'You have invited this address several times today; wait until tomorrow.',
        retryAfter,
      })
    if (await isTooMany(`invitations to ${mailbox}`, toAddress.ofAll))
      throw new Failure('tooMany', {
        message: 'This address got many invitations today; wait until tomorrow.',
        retryAfter,
      })
  }

  function newToken(days: number) {
    const token = `hwn_${newBase32(32).toLowerCase()}`
    const now = clock.now()
    return {
      token,
      columns: {
        hash: hashOf(token),
        by_mail: parts.hasMail ? (1 as const) : (0 as const),
        sent_at: iso(now),
        expires_at: iso(now + days * day_ms),
      },
    }
  }

  /** Sends the link; gives the token where whoever invites must pass it on. */
  async function send(row: MemberInvitationRow, inviter: string, token: string): Promise<string> {
    if (!parts.hasMail) return token
    const namespace = (await stores.namespaces.find(row.tenant_id))?.name ?? ''
    const { email: to, role, expires_at } = row
    background.later('email.invitation', () =>
      parts.mailer.send(
        parts.emails.invitation({ to, name: '', namespace, inviter, role, expires_at, token }),
      ),
    )
    return ''
  }

  const isGood = (row: FoundMemberInvitation | undefined): row is FoundMemberInvitation =>
    row !== undefined &&
    row.expires_at > iso(clock.now()) &&
    rank(row.inviter_role) >= rank('administrator') &&
    mayManage(row.inviter_role, row.role)

  async function mustBeGood(
    { presentedMemberInvitations }: Pick<Stores, 'presentedMemberInvitations'>,
    token: string,
  ): Promise<FoundMemberInvitation> {
    const row = await presentedMemberInvitations.find(hashOf(token))
    if (!isGood(row)) throw new Failure('wrongToken')
    return row
  }

  /** Spends the invitation and adds the member, or throws. The row is asked for again, because it may be gone. */
  async function join(
    inside: StoresInTransaction,
    record: Recorder,
    token: string,
    user: { id: string; username: string },
  ): Promise<void> {
    const { id, tenant_id, role, hash, inviter } = await mustBeGood(inside, token)
    if (!(await inside.of(tenant_id).memberInvitations.spend(id, hash))) throw new Failure('wrongToken')
    await inside.namespaces.addMember({
      tenant_id,
      user_id: user.id,
      role,
      epoch: newUuid(),
      created_at: iso(clock.now()),
    })
    record({
      action: 'member.added',
      target: { kind: 'user', id: user.id, name: user.username },
      after: { role },
      detail: { invited_by: inviter },
      tenant_id,
    })
  }

  async function mustFind(caller: MemberCaller, id: string): Promise<MemberInvitationRow> {
    const row = await stores.of(caller.tenant_id).memberInvitations.find(id)
    if (!row) throw new Failure('notFound')
    mayGrant(caller.role, row.role)
    return row
  }

  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).memberInvitations.list(query)
      const names = new Map(
        (await stores.namespaces.members(tenant_id)).map(({ id, username }) => [id, username]),
      )
      return { items: items.map((row) => present(row, names.get(row.invited_by) ?? '')), total }
    },

    async create({ body }, caller) {
      const { tenant_id } = caller
      const { id: inviter, username } = caller as UserCaller
      mayGrant(caller.role, body.role)
      const email = body.email.toLowerCase()
      const known = await stores.users.findByConfirmedEmail(email)
      if (known && (await stores.namespaces.member(tenant_id, known.id)))
        throw new Failure('conflict', { message: 'Somebody with this address is a member already.' })
      await countEmail({ id: inviter, tenant_id }, email)
      const valid_days = body.valid_days ?? usualInvitation_days
      const { token, columns } = newToken(valid_days)
      const made = { id: newUuid(), email, role: body.role, invited_by: inviter, valid_days }
      const row = { ...made, ...columns, created_at: columns.sent_at }
      try {
        await audit.change(caller, async (inside, record) => {
          // A new password ends invitations; this one must not be made by a token that ends with them.
          await callingUser(inside, caller as UserCaller, 'lock')
          // Held, so that those who invite at the same time do not count the same rows.
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id).memberInvitations
          const total = async () => (await mine.list({ page: 1, per_page: 1 })).total
          await mine.removeExpired(columns.sent_at, email)
          // Others that have expired can be sent again, until their place is needed.
          if ((await total()) >= mostMemberInvitations) await mine.removeExpired(columns.sent_at)
          if ((await total()) >= mostMemberInvitations) throw new Failure('invitationLimit')
          await mine.insert(row)
          record({
            action: 'invitation.created',
            target: targetOf(row),
            after: { role: row.role, expires_at: row.expires_at },
          })
        })
      } catch (error) {
        if (stores.isDuplicate(error))
          throw new Failure('conflict', {
            message: 'This address is invited already; send the invitation again, or withdraw it.',
          })
        throw error
      }
      return { ...present(row, username), token: await send({ ...row, tenant_id }, username, token) }
    },

    async resend({ params }, caller) {
      const { id: inviter, username } = caller as UserCaller
      const before = await mustFind(caller, params.id)
      await countEmail({ id: inviter, tenant_id: caller.tenant_id }, before.email)
      const { token, columns } = newToken(before.valid_days)
      // From now on it is the right of whoever sent it last that counts.
      const change = { ...columns, invited_by: inviter }
      await audit.change(caller, async (inside, record) => {
        await callingUser(inside, caller as UserCaller, 'lock')
        if (!(await inside.of(caller.tenant_id).memberInvitations.renew(before.id, change)))
          throw new Failure('notFound')
        record({
          action: 'invitation.sent-again',
          target: targetOf(before),
          detail: { role: before.role, expires_at: change.expires_at },
        })
      })
      const row = { ...before, ...change }
      return { ...present(row, username), token: await send(row, username, token) }
    },

    async remove({ params }, caller) {
      const row = await mustFind(caller, params.id)
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.of(caller.tenant_id).memberInvitations.remove(row.id)))
          throw new Failure('notFound')
        record({ action: 'invitation.withdrawn', target: targetOf(row), before: { role: row.role } })
      })
    },

    async open({ body }) {
      const row = await mustBeGood(stores, body.token)
      return {
        namespace: row.namespace,
        role: row.role,
        invited_by: row.inviter,
        email: row.email,
        expires_at: row.expires_at,
        // Without an e-mail the inviter has the token, and must not learn who has an account.
        ...(row.by_mail === 1
          ? { account: (await stores.users.findByConfirmedEmail(row.email)) !== undefined }
          : {}),
        sign_up: parts.registration !== 'closed',
      }
    },

    async accept({ body }, caller) {
      const row = await mustBeGood(stores, body.token)
      const user = await callingUser(stores, caller)
      if (user.confirmed === 0 || countingEmail(user) !== row.email)
        throw new Failure('forbidden', {
          message: 'This invitation is for another e-mail address than that of your account.',
        })
      try {
        await audit.change(caller, (inside, record) => join(inside, record, body.token, user), row.tenant_id)
      } catch (error) {
        if (stores.isDuplicate(error))
          throw new Failure('conflict', { message: 'You are a member of this namespace already.' })
        throw error
      }
      return { tenant_id: row.tenant_id, namespace: row.namespace, role: row.role }
    },

    async signUp({ body: { token, ...account } }, caller, end) {
      if (parts.registration === 'closed') throw new Failure('registrationClosed')
      const row = await mustBeGood(stores, token)
      const fields = { ...account, email: row.email }
      if (row.by_mail === 0) {
        await parts.users.register(fields, caller, end)
        return { token: '' }
      }
      const user = await parts.users.createInvited(fields, caller, end, (inside, record, made) =>
        join(inside, record, token, made),
      )
      return { token: (await parts.signIn.signedIn(user, { method: 'invitation', from: caller })).token }
    },
  }
}
