// Leaving a namespace, and handing it over. A namespace always has exactly one owner: the owner cannot leave,
// nobody else can make an owner, and handing over changes both members or none.
import { Failure } from '@hawser/contract/failures'
import { newUuid } from '../../kit/ids.ts'
import type { With } from '../audit/parts.ts'
import { callingUser, type UserCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import type { ProofOfUser } from '../people/proof.ts'
import type { NamespaceAdministration } from './administration.ts'
import { requireRoom, type OwnershipLimits } from './room.ts'

export type OwnershipRules = Pick<Rules<'namespaces'>, 'leave' | 'handOver'>

export interface OwnershipParts extends OwnershipLimits, With<'stores' | 'audit' | 'bus'> {
  namespaces: Pick<NamespaceAdministration, 'leave'>
  proof: ProofOfUser
}

export function ownership(parts: OwnershipParts): OwnershipRules {
  const { stores, audit, bus, namespaces, proof } = parts
  const unchanged = () =>
    new Failure('conflict', {
      message: 'The members changed a moment ago, so nothing was handed over; reload and try again.',
    })

  return {
    async leave({ params }, caller) {
      const member = await stores.namespaces.member(params.tenant, caller.id)
      if (!member) throw new Failure('notFound')
      if (member.role === 'owner')
        throw new Failure('forbidden', {
          message: 'The owner cannot leave. Hand the namespace over first, or delete it.',
        })
      await namespaces.leave(params.tenant, caller.id, caller)
    },

    async handOver({ params, body }, caller, end) {
      const { tenant, uid } = params
      const user = caller as UserCaller
      const owner = await callingUser(stores, user)
      const [before, next] = await Promise.all([
        stores.namespaces.member(tenant, uid),
        stores.users.find(uid),
      ])
      if (!before || !next) throw new Failure('notFound', { message: 'There is no such member.' })
      if (uid === owner.id) throw new Failure('conflict', { message: 'You are the owner already.' })
      await proof(owner, body, { ...user, signal: end?.signal })
      await audit.change(caller, async (inside, record) => {
        const recipient = await inside.users.lock(uid)
        if (!recipient) throw unchanged()
        const namespace = await inside.namespaces.hold(tenant)
        if (!namespace) throw new Failure('notFound')
        await requireRoom(inside, recipient, parts, owner)
        const from = { id: owner.id, epoch: newUuid() }
        if (!(await inside.namespaces.handOver(tenant, from, { id: uid, epoch: newUuid() })))
          throw unchanged()
        record({
          action: 'namespace.handed-over',
          target: { kind: 'namespace', id: tenant, name: namespace.name },
          before: { owner: owner.username },
          after: { owner: next.username },
        })
      })
      for (const user_id of [owner.id, uid]) bus.tell('member.changed', { tenant_id: tenant, user_id })
    },
  }
}
