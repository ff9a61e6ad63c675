// Invitations into a namespace, as the invited person opens and accepts them. Each time they are judged anew:
// expiry, and whether the inviter may still grant the role. An invitation is spent in the transaction that
// adds the member, so it works once. Only an account whose confirmed address is the invited one can accept.
// An e-mailed link proves that its holder reads the mailbox, so an account made with it is confirmed. A token
// that was shown to the inviter proves nothing: such an account waits for its confirmation.
import { mayManage, rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { FoundMemberInvitation } from '../../storage/member-invitations.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { callingUser } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import type { UserAdministration } from '../people/accounts.ts'
import { countingEmail, userTarget } from '../people/identity.ts'
import type { SignIn } from '../people/sign-in.ts'

interface PresentedInvitationParts extends With<'stores' | 'audit' | 'clock'> {
  users: UserAdministration
  signIn: SignIn
  registration: 'open' | 'invited' | 'closed'
}

export function presentedInvitations({
  stores,
  audit,
  clock,
  users,
  signIn,
  registration,
}: PresentedInvitationParts): Pick<Rules<'invitations'>, 'open' | 'accept' | 'signUp'> {
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

  /** The row is read again, because it may be gone. */
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
      target: userTarget(user),
      after: { role },
      detail: { invited_by: inviter },
      tenant_id,
    })
  }

  return {
    async open({ body }) {
      const row = await mustBeGood(stores, body.token)
      return {
        namespace: row.namespace,
        role: row.role,
        invited_by: row.inviter,
        email: row.email,
        expires_at: row.expires_at,
        // Without an e-mail the inviter has the token, and must not learn who has an account.
        ...(row.by_mail === 1 && {
          account: (await stores.users.findByConfirmedEmail(row.email)) !== undefined,
        }),
        sign_up: registration !== 'closed',
      }
    },

    async accept({ body }, caller) {
      const row = await mustBeGood(stores, body.token)
      const user = await callingUser(stores, caller)
      if (user.confirmed === 0 || countingEmail(user) !== row.email)
        throw new Failure('forbidden', {
          message: 'This invitation is for another e-mail address than that of your account.',
        })
      await audit
        .change(caller, (inside, record) => join(inside, record, body.token, user), row.tenant_id)
        .catch(orConflict(stores, { message: 'You are a member of this namespace already.' }))
      return { tenant_id: row.tenant_id, namespace: row.namespace, role: row.role }
    },

    async signUp({ body: { token, ...account } }, caller, end) {
      if (registration === 'closed') throw new Failure('registrationClosed')
      const row = await mustBeGood(stores, token)
      const fields = { ...account, email: row.email }
      if (row.by_mail === 0) {
        await users.register(fields, caller, end)
        return { token: '' }
      }
      const user = await users.createInvited(fields, caller, end, (inside, record, made) =>
        join(inside, record, token, made),
      )
      return { token: (await signIn.signedIn(user, { method: 'invitation', from: caller })).token }
    },
  }
}
