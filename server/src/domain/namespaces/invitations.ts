// Invitations into a namespace, as members make and send them. presented-invitations.ts accepts them.
import { Failure } from '@hawser/contract/failures'
import {
  mostMemberInvitations,
  usualInvitation_days,
  type MemberInvitation,
} from '@hawser/contract/invitations'
import { beyond, peopleLimits as limits, type Limit } from '@hawser/contract/limits'
import { day_ms, iso } from '../../kit/clock.ts'
import { newBase32, newUuid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { MemberInvitationRow } from '../../storage/member-invitations.ts'
import type { Stores } from '../../storage/stores.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { With } from '../audit/parts.ts'
import { callingUser, type MemberCaller, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { counted, mailboxOf } from '../people/email-bounds.ts'
import { mayGrant } from './members.ts'

export interface InvitationParts extends With<
  'stores' | 'audit' | 'clock' | 'mailer' | 'emails' | 'background'
> {
  /** Whether there is a mail server. Without one, the inviter gets the token. */
  hasMail: boolean
}

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
async function countEmail(
  parts: Pick<InvitationParts, 'stores' | 'clock' | 'hasMail'>,
  { id, tenant_id }: Pick<UserCaller, 'id' | 'tenant_id'>,
  email: string,
): Promise<void> {
  const count = async (subject: string, limit: Limit & { max: number; window_ms: number }): Promise<void> => {
    const { max, window_ms } = limit
    if ((await counted(parts, subject, window_ms)) > max) throw beyond(limit, window_ms / 1000)
  }
  await count(`invitations of ${id}`, limits.invitations)
  if (!parts.hasMail) return
  const mailbox = mailboxOf(email)
  // The bound on all together protects the mailbox. Neither a namespace nor a person can use it up, which
  // would prevent others from inviting the address.
  await count(`invitations in ${tenant_id} to ${mailbox}`, limits.invitationsOfNamespace)
  await count(`invitations of ${id} to ${mailbox}`, limits.invitationsOfInviter)
  await count(`invitations to ${mailbox}`, limits.invitationsOfAddress)
}

/** Removes expired invitations of the same address, and all expired ones where their place is needed. */
async function makeRoom(
  inside: Pick<Stores, 'of'>,
  tenant_id: string,
  { sent_at, email }: Pick<MemberInvitationRow, 'sent_at' | 'email'>,
): Promise<void> {
  const mine = inside.of(tenant_id).memberInvitations
  const total = async () => (await mine.list({ page: 1, per_page: 1 })).total
  await mine.removeExpired(sent_at, email)
  // Expired ones can be sent again until then.
  if ((await total()) >= mostMemberInvitations) await mine.removeExpired(sent_at)
  if ((await total()) >= mostMemberInvitations) throw new Failure('invitationLimit')
}

function newToken({ clock, hasMail }: Pick<InvitationParts, 'clock' | 'hasMail'>, valid_days: number) {
  const token = `hwn_${newBase32(32).toLowerCase()}`
  const now = clock.now()
  return {
    token,
    columns: {
      hash: hashOf(token),
      by_mail: hasMail ? (1 as const) : (0 as const),
      sent_at: iso(now),
      expires_at: iso(now + valid_days * day_ms),
    },
  }
}

export function invitations(
  parts: InvitationParts,
): Pick<Rules<'invitations'>, 'list' | 'create' | 'resend' | 'remove'> {
  const { stores, audit, hasMail, background } = parts

  /** Sends the link; returns the token where the inviter must pass it on. */
  async function send(row: MemberInvitationRow, inviter: string, token: string): Promise<string> {
    if (!hasMail) return token
    const namespace = (await stores.namespaces.find(row.tenant_id))?.name ?? ''
    const { email: to, role, expires_at } = row
    background.later('email.invitation', () =>
      parts.mailer.send(
        parts.emails.invitation({ to, name: '', namespace, inviter, role, expires_at, token }),
      ),
    )
    return ''
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
        throw new Failure('conflict', { message: 'A member already has this address.' })
      await countEmail(parts, { id: inviter, tenant_id }, email)
      const valid_days = body.valid_days ?? usualInvitation_days
      const { token, columns } = newToken(parts, valid_days)
      const made = { id: newUuid(), email, role: body.role, invited_by: inviter, valid_days }
      const row = { ...made, ...columns, created_at: columns.sent_at }
      await audit
        .change(caller, async (inside, record) => {
          // A new password ends invitations; this one must not be made by a token that ends with them.
          await callingUser(inside, caller as UserCaller, 'lock')
          // Locked, so that two inviters at the same time do not count the same rows.
          await inside.namespaces.hold(tenant_id)
          await makeRoom(inside, tenant_id, row)
          await inside.of(tenant_id).memberInvitations.insert(row)
          record({
            action: 'invitation.created',
            target: targetOf(row),
            after: { role: row.role, expires_at: row.expires_at },
          })
        })
        .catch(
          orConflict(stores, {
            message: 'This address is invited already; send the invitation again, or withdraw it.',
          }),
        )
      return { ...present(row, username), token: await send({ ...row, tenant_id }, username, token) }
    },

    async resend({ params }, caller) {
      const { id: inviter, username } = caller as UserCaller
      const before = await mustFind(caller, params.id)
      await countEmail(parts, { id: inviter, tenant_id: caller.tenant_id }, before.email)
      const { token, columns } = newToken(parts, before.valid_days)
      // The role of the last sender counts.
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
  }
}
