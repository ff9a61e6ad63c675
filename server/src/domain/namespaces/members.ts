// The members of a namespace. Nobody can grant, edit or remove an owner. A changed or ended membership takes
// effect at once: its epoch changes, which ends every token made for it.
import { mayManage, rank, type MemberRole, type Role } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import { beyond, peopleLimits } from '@hawser/contract/limits'
import type { Namespace } from '@hawser/contract/namespaces'
import { newUuid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import { findOther } from '../people/identity.ts'
import { memberTarget, type NamespaceAdministration } from './administration.ts'
import type { NamespaceView } from './view.ts'

export interface MemberParts extends With<'stores' | 'audit' | 'bus'> {
  administration: Pick<NamespaceAdministration, 'join' | 'leave'>
  view: NamespaceView
  /** Limits unknown names, of a person who adds members, and of all API keys of one maker. */
  wrongNames: Limiter
}

export function mayGrant(own: Role, role: Role): asserts role is MemberRole {
  if (!mayManage(own, role))
    throw new Failure('forbidden', { message: `You may not grant the role ${role}.` })
}

export function members({
  stores,
  audit,
  bus,
  administration,
  view,
  wrongNames,
}: MemberParts): Pick<Rules<'namespaces'>, 'addMember' | 'removeMember' | 'updateMember'> {
  /** The membership to change. Refuses a caller who may not. */
  async function managed(tenant_id: string, user_id: string, role: Role) {
    const member = await stores.namespaces.member(tenant_id, user_id)
    if (!member) throw new Failure('notFound')
    const { role: held } = member
    if (held === 'owner' || !mayManage(role, held))
      throw new Failure('forbidden', { message: `You may not change a member with the role ${held}.` })
    return { role: held }
  }

  async function present(tenant_id: string): Promise<Namespace> {
    const row = await stores.namespaces.find(tenant_id)
    if (!row) throw new Failure('notFound')
    return view.present(row)
  }

  return {
    async addMember({ params, body }, caller) {
      const identifier = body.identifier ?? body.username ?? body.email
      if (identifier === undefined)
        throw new Failure('invalid', { message: 'identifier: a username or an e-mail address is needed' })
      mayGrant(caller.role, body.role)
      // The answer reveals who has an account, so guesses are limited.
      const isKey = caller.kind === 'key'
      const guesser = isKey ? `keys of ${caller.created_by || caller.tenant_id}` : caller.id
      const wait_s = wrongNames.peek(guesser)
      if (wait_s > 0) throw beyond(peopleLimits.wrongNames, wait_s)
      const user = await findOther(stores, identifier)
      if (!user) {
        wrongNames.take(guesser)
        throw new Failure('notFound', { message: 'There is no such user.' })
      }
      await administration.join(params.tenant, user.id, body.role, caller)
      return present(params.tenant)
    },

    async removeMember({ params }, caller) {
      await managed(params.tenant, params.uid, caller.role)
      await administration.leave(params.tenant, params.uid, caller)
      return present(params.tenant)
    },

    async updateMember({ params, body }, caller) {
      const member = await managed(params.tenant, params.uid, caller.role)
      if (body.role === undefined || body.role === member.role) return
      const { role } = body
      mayGrant(caller.role, role)
      await audit.change(caller, async (inside, record) => {
        const columns = { role, epoch: newUuid() }
        if (!(await inside.namespaces.saveMember(params.tenant, params.uid, member.role, columns)))
          throw new Failure('conflict', {
            message: 'The membership was changed a moment ago; reload and try again.',
          })
        // Invitations to sessions rest on their maker's former role.
        await inside.of(params.tenant).sessionInvitations.removeOf(params.uid)
        if (rank(role) < rank('administrator'))
          await inside.of(params.tenant).memberInvitations.removeOf(params.uid)
        record({
          action: 'member.updated',
          target: await memberTarget(inside, params.uid),
          before: { role: member.role },
          after: { role },
        })
      })
      bus.tell('member.changed', { tenant_id: params.tenant, user_id: params.uid })
    },
  }
}
