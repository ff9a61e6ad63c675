// Invitations to live sessions. A guest needs no role in the namespace: the invitation contains their rights,
// for one session. It is checked again after each change of the session, of the guest's sign-in, of the
// guest's membership where only members are invited, and of its maker's rights. Only hashes of tokens are
// stored, and nobody can list tokens.
import { rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import {
  mostInvitations,
  usualInvitation_min,
  type SessionInvitation,
} from '@hawser/contract/session-invitations'
import { iso, minute_ms } from '../../kit/clock.ts'
import { newBase32, newUuid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { UserStanding } from '../../storage/callers.ts'
import type { SessionInvitationRow } from '../../storage/session-invitations.ts'
import type { SessionRow } from '../../storage/sessions.ts'
import type { Stores } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import { standingOf, type MemberCaller, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { findOther } from '../people/identity.ts'
import type { InvitationStanding } from './sharing.ts'
import type { WatchTickets } from './watch-tickets.ts'

const ended = (): Failure =>
  new Failure('notFound', {
    message: 'There is no such invitation: it has expired, was revoked, or the link is incomplete.',
  })
const membersOnly = 'This namespace invites only its members.'

type Inviting = { readonly id: string } & Pick<UserStanding, 'role'>

/** The session's person may invite, and those who may watch it. */
const mayInvite = (
  { person_kind, person_id }: Pick<SessionRow, 'person_kind' | 'person_id'>,
  { id, role }: Inviting,
): boolean =>
  role !== null && (rank(role) >= rank('administrator') || (person_kind === 'user' && person_id === id))

/** The session and the maker of an invitation that is good for somebody. */
async function mustStand({ stores, clock }: With<'stores' | 'clock'>, row: SessionInvitationRow) {
  const { tenant_id, created_by, created_epoch: epoch, created_token: token_id } = row
  const session = await stores.of(tenant_id).sessions.find(row.session_uid)
  const maker = await standingOf(stores, { user_id: created_by, tenant_id, epoch, token_id })
  const isGood =
    row.expires_at > iso(clock.now()) &&
    session !== undefined &&
    maker !== undefined &&
    mayInvite(session, { id: created_by, role: maker.role })
  if (!isGood) throw ended()
  if (session.active !== 1) throw new Failure('notFound', { message: 'The session is over.' })
  return { session, maker }
}

/** Refuses guests who are not members, unless the namespace invites them. */
async function mustBeWelcome(
  stores: Stores,
  tenant_id: string,
  { role }: Pick<UserStanding, 'role'>,
): Promise<void> {
  if (role === null && (await stores.namespaces.find(tenant_id))?.invite_outsiders !== 1)
    throw new Failure('forbidden', { message: membersOnly })
}

export function invitationStanding(parts: With<'stores' | 'clock'>): InvitationStanding {
  const { stores } = parts
  return async (tenant_id, id, { user_id, epoch, token_id }) => {
    const row = await stores.of(tenant_id).sessionInvitations.find(id)
    if (row?.user_id !== user_id) throw new Failure('forbidden', { message: ended().message })
    const { maker } = await mustStand(parts, row).catch((cause: unknown) => {
      throw cause instanceof Failure ? new Failure('forbidden', { message: cause.message, cause }) : cause
    })
    const guest = await standingOf(stores, { user_id, tenant_id, epoch, token_id })
    if (!guest) throw new Failure('unauthenticated')
    await mustBeWelcome(stores, tenant_id, guest)
    const { mode, created_by, expires_at } = row
    return {
      username: guest.username,
      invited: { mode, maker_id: created_by, maker: maker.username, ends_at: Date.parse(expires_at) },
    }
  }
}

export interface InvitationParts extends With<'stores' | 'clock' | 'audit' | 'bus'> {
  tickets: Pick<WatchTickets, 'invite'>
  made: Limiter
  /** Wrong tokens of one user. */
  wrong: Limiter
}

type Verbs = 'invite' | 'invitations' | 'uninvite' | 'acceptInvitation'

export function sessionInvitations(parts: InvitationParts): Pick<Rules<'sessions'>, Verbs> {
  const { stores, clock, audit, bus } = parts

  function refuse(caller: UserCaller, failure: Failure): never {
    parts.wrong.take(caller.id)
    throw failure
  }

  return {
    async invite({ params, body }, caller) {
      const session = await invitable(stores, params.uid, caller)
      if (caller.kind !== 'user') throw new Failure('apiKeyRefused')
      if (session.active !== 1) throw new Failure('conflict', { message: 'The session is over.' })
      const retryAfter = parts.made.take(caller.id)
      if (retryAfter > 0) throw beyond(sessionLimits.invitations, retryAfter)
      const { tenant_id } = caller
      const for_name = (body.to ?? '').toLowerCase()
      if (for_name !== '') await mustBeMember(stores, tenant_id, for_name)
      const token = `hwi_${newBase32(32).toLowerCase()}`
      const now = clock.now()
      const row: SessionInvitationRow = {
        id: newUuid(),
        tenant_id,
        session_uid: session.uid,
        hash: hashOf(token),
        mode: body.mode,
        for_name,
        user_id: null,
        used_at: null,
        created_by: caller.id,
        created_epoch: caller.epoch,
        created_token: caller.token_id,
        created_at: iso(now),
        expires_at: iso(now + (body.valid_minutes ?? usualInvitation_min) * minute_ms),
      }
      await audit.change(caller, async (inside, record) => {
        // Locked, so that concurrent invitations are both counted.
        await inside.namespaces.hold(tenant_id)
        const mine = inside.of(tenant_id).sessionInvitations
        if ((await mine.open(session.uid, iso(now))).length >= mostInvitations)
          throw new Failure('conflict', {
            message: `The session has ${mostInvitations} open invitations already; revoke one of them.`,
          })
        const { tenant_id: _, ...fields } = row
        await mine.insert(fields)
        record({
          action: 'session.invitation.created',
          target: targetOf(session),
          detail: { ...detailOf(row), device: session.device_uid },
        })
      })
      return { token, ...(await present(stores, [row]))[0]! }
    },
    async invitations({ params }, caller) {
      const session = await invitable(stores, params.uid, caller)
      if (session.active !== 1) return []
      return present(
        stores,
        await stores.of(caller.tenant_id).sessionInvitations.open(session.uid, iso(clock.now())),
      )
    },
    async uninvite({ params }, caller) {
      const session = await invitable(stores, params.uid, caller)
      const { tenant_id } = caller
      const row = await audit.change(caller, async (inside, record) => {
        const mine = inside.of(tenant_id).sessionInvitations
        const found = await mine.find(params.id)
        if (found?.session_uid !== session.uid || !(await mine.remove(found.id)))
          throw new Failure('notFound')
        record({
          action: 'session.invitation.revoked',
          target: targetOf(session),
          detail: { ...detailOf(found), device: session.device_uid },
        })
        return found
      })
      if (row.user_id !== null) bus.tell('invitation.revoked', { tenant_id, user_id: row.user_id })
    },
    async acceptInvitation({ body }, caller) {
      const retryAfter = parts.wrong.peek(caller.id)
      if (retryAfter > 0) throw beyond(sessionLimits.wrongInvitations, retryAfter)
      const row = (await stores.presentedInvitations.find(hashOf(body.token))) ?? refuse(caller, ended())
      const { id, tenant_id, mode, expires_at } = row
      const { session, maker } = await mustStand(parts, row)
      if (row.user_id === null && !(await isFor(stores, row.for_name, caller)))
        refuse(caller, new Failure('forbidden', { message: 'This invitation is for another user.' }))
      const guest = await stores.callers.user(caller.id, tenant_id)
      if (!guest) throw new Failure('unauthenticated')
      await mustBeWelcome(stores, tenant_id, guest)
      if (row.user_id === null)
        await audit.change(
          caller,
          async (inside, record) => {
            if (!(await inside.of(tenant_id).sessionInvitations.claim(id, caller.id, iso(clock.now()))))
              return
            record({
              action: 'session.invitation.used',
              target: targetOf(session),
              detail: { ...detailOf(row), device: session.device_uid, created_by: maker.username },
            })
          },
          tenant_id,
        )
      // Somebody else may have taken it first.
      if ((await stores.of(tenant_id).sessionInvitations.find(id))?.user_id !== caller.id)
        refuse(caller, new Failure('forbidden', { message: 'Another user has accepted this invitation.' }))
      const device = await stores.of(tenant_id).devices.find(session.device_uid)
      return {
        token: parts.tickets.invite(caller, { tenant_id, session_uid: session.uid, invitation: id }),
        session_uid: session.uid,
        mode,
        username: session.username,
        device_name: device?.name ?? '',
        created_by: maker.username,
        expires_at,
      }
    },
  }
}

async function invitable(stores: Stores, uid: string, caller: MemberCaller): Promise<SessionRow> {
  const session = await stores.of(caller.tenant_id).sessions.find(uid)
  if (!session) throw new Failure('notFound')
  // The contract admits no API keys, but the types do not say so.
  if (caller.kind !== 'user') throw new Failure('apiKeyRefused')
  if (!mayInvite(session, caller))
    throw new Failure('forbidden', {
      message: 'Only the person of the session and administrators can invite to it.',
    })
  return session
}

async function present(stores: Stores, rows: readonly SessionInvitationRow[]): Promise<SessionInvitation[]> {
  const nameOf = async (id: string) => (await stores.users.find(id))?.username ?? ''
  return Promise.all(
    rows.map(async ({ id, session_uid, mode, for_name, user_id, used_at, created_by, ...row }) => ({
      id,
      session_uid,
      mode,
      to: for_name,
      used_by: user_id === null ? null : await nameOf(user_id),
      used_at,
      created_by: await nameOf(created_by),
      created_at: row.created_at,
      expires_at: row.expires_at,
    })),
  )
}

/** Members know each other, so where only they are invited the answer may reveal a wrong name. */
async function mustBeMember(stores: Stores, tenant_id: string, name: string): Promise<void> {
  if ((await stores.namespaces.find(tenant_id))?.invite_outsiders === 1) return
  const user = await findOther(stores, name)
  if (!user || !(await stores.namespaces.member(tenant_id, user.id)))
    throw new Failure('forbidden', { message: `${membersOnly} None of them is ${name}.` })
}

async function isFor(stores: Stores, name: string, caller: UserCaller): Promise<boolean> {
  return name === '' || (await findOther(stores, name))?.id === caller.id
}

const targetOf = ({ uid, username }: SessionRow) => ({ kind: 'session', id: uid, name: username })

const detailOf = (row: Pick<SessionInvitationRow, 'id' | 'mode' | 'for_name' | 'expires_at'>) => ({
  invitation: row.id,
  mode: row.mode,
  to: row.for_name,
  expires_at: row.expires_at,
})
