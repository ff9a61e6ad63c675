// Creates and ends namespaces and memberships, for the operations, set-up and the administrator's commands.
// An ended membership loses its API keys, enrolment tokens, public keys and invitations.
import type { Role } from '@hawser/contract/access'
import { defaultRetention_days } from '@hawser/contract/audit'
import { Failure } from '@hawser/contract/failures'
import { defaultGrace_s } from '@hawser/contract/tunnel'
import { iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { orConflict } from '../audit/conflicts.ts'
import { actorOf, theAdministrator, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import { free_devices } from '../billing/subscriptions.ts'
import type { Caller } from '../callers/callers.ts'
import { requireRoom, type OwnershipLimits } from './room.ts'

/** `by`: the actor for the audit log; by default the administrator. */
export interface NamespaceAdministration {
  /** `isBounded`: the owner may not own more namespaces than the account allows. */
  create(
    owner: string,
    name: string,
    tenant_id?: string,
    by?: Caller | AuditActor,
    isBounded?: boolean,
  ): Promise<NamespaceRow>
  removeNamespace(tenant_id: string, by?: Caller | AuditActor): Promise<void>
  join(tenant_id: string, user_id: string, role: Role, by?: Caller | AuditActor): Promise<void>
  leave(tenant_id: string, user_id: string, by?: Caller | AuditActor): Promise<void>
}

export interface AdministrationParts extends OwnershipLimits, With<'stores' | 'audit' | 'bus' | 'clock'> {
  /** Whether there is a payment provider. */
  billed: boolean
}

const defaultHold_s = 1_800

export const namespaceTarget = ({ tenant_id, name }: NamespaceRow) => ({
  kind: 'namespace',
  id: tenant_id,
  name,
})

export async function memberTarget({ users }: Pick<Stores, 'users'>, user_id: string) {
  return { kind: 'user', id: user_id, name: (await users.find(user_id))?.username ?? '' }
}

export const orNameTaken = (stores: Stores) =>
  orConflict(stores, { message: 'A namespace with this name exists already.' })

const rowOf = (
  tenant_id: string,
  name: string,
  owner: string,
  billed: boolean,
  created_at: string,
): NamespaceRow => ({
  tenant_id,
  name: name.toLowerCase(),
  owner,
  session_record: 1,
  connection_announcement: '',
  max_devices: billed ? free_devices : -1,
  free_devices: billed ? free_devices : null,
  continue_unrecorded: 0,
  billing: null,
  created_at,
  imported: 0,
  accept_env: '[]',
  agent_updates: 'manual',
  reconnect_grace_s: defaultGrace_s,
  audit_retention_days: defaultRetention_days,
  require_person: 0,
  recording_quota: null,
  hold_sessions: defaultHold_s,
  hold_unknown: 0,
  join_without_consent: 0,
  invite_outsiders: 0,
  mask_secrets: 1,
  mask_after: '[]',
  search: 1,
  policy: '{}',
  log_web_requests: 0,
})

export function administration(parts: AdministrationParts): NamespaceAdministration {
  const { stores, audit, bus, clock, billed } = parts

  return {
    async create(owner, name, tenant_id = newUuid(), by = theAdministrator, isBounded = false) {
      const row = rowOf(tenant_id, name, owner, billed, iso(clock.now()))
      await audit
        .change(by, async (inside, record) => {
          if (isBounded) {
            const user = await inside.users.lock(owner)
            if (!user) throw new Failure('unauthenticated')
            await requireRoom(inside, user, parts)
          }
          for (const log of ['', tenant_id])
            record({
              action: 'namespace.created',
              target: namespaceTarget(row),
              detail: { owner },
              tenant_id: log,
            })
          await inside.namespaces.insert(row)
          await inside.namespaces.addMember({
            tenant_id,
            user_id: owner,
            role: 'owner',
            epoch: newUuid(),
            created_at: row.created_at,
          })
        })
        .catch(orNameTaken(stores))
      return row
    },

    async removeNamespace(tenant_id, by = theAdministrator) {
      await audit.change(by, async (inside, record) => {
        const row = await inside.namespaces.find(tenant_id)
        await inside.namespaces.remove(tenant_id)
        // The namespace's own log is gone with it.
        if (row) record({ action: 'namespace.removed', target: namespaceTarget(row), tenant_id: '' })
      })
      bus.tell('namespace.changed', { tenant_id })
    },

    async join(tenant_id, user_id, role, by = theAdministrator) {
      await audit
        .change(
          by,
          async (inside, record) => {
            await inside.namespaces.addMember({
              tenant_id,
              user_id,
              role,
              epoch: newUuid(),
              created_at: iso(clock.now()),
            })
            record({ action: 'member.added', target: await memberTarget(inside, user_id), after: { role } })
          },
          tenant_id,
        )
        .catch(orConflict(stores, { message: 'This user is a member already.' }))
    },

    async leave(tenant_id, user_id, by = theAdministrator) {
      const work = async (inside: StoresInTransaction, record: Recorder): Promise<void> => {
        const member = await inside.namespaces.member(tenant_id, user_id)
        if (!member) return
        if (!(await inside.namespaces.removeMember(tenant_id, user_id)))
          throw new Failure('forbidden', { message: 'The owner of a namespace cannot be removed from it.' })
        const left = actorOf(by).actor === 'user' && actorOf(by).id === user_id
        record({
          action: left ? 'member.left' : 'member.removed',
          target: await memberTarget(inside, user_id),
          before: { role: member.role },
        })
        await inside.of(tenant_id).apiKeys.removeOf(user_id)
        await inside.of(tenant_id).enrolmentTokens.removeOf(user_id)
        await inside.of(tenant_id).publicKeys.removeOf(user_id)
        await inside.of(tenant_id).sessionInvitations.removeOf(user_id)
        await inside.of(tenant_id).memberInvitations.removeOf(user_id)
      }
      await audit.change(by, work, tenant_id)
      bus.tell('member.changed', { tenant_id, user_id })
    },
  }
}
