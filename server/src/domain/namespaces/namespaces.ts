// Namespaces and their members. Nobody can grant, edit or remove an owner. A changed or ended membership
// takes effect at once: its epoch changes, which ends every token made for it, and an ended one loses its API
// keys, enrolment tokens and public keys.
import { mayManage, rank, type MemberRole, type Role } from '@hawser/contract/access'
import { neverPasses } from '@hawser/contract/environment'
import { Failure } from '@hawser/contract/failures'
import { defaultRetention_days } from '@hawser/contract/audit'
import type { Namespace } from '@hawser/contract/namespaces'
import { defaultGrace_s } from '@hawser/contract/tunnel'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Limiter } from '../../kit/limiter.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores, StoresInTransaction } from '../../storage/stores.ts'
import { parseFilter } from '../access/filters.ts'
import { actorOf, theAdministrator, type Audit, type AuditActor, type Recorder } from '../audit/audit.ts'
import type { Caller } from '../callers/callers.ts'
import { findOther } from '../people/identity.ts'
import type { Rules } from '../callers/rules.ts'
import { free_devices, readBilling } from '../billing/subscriptions.ts'
import { requireRoom, type OwnershipLimits } from './room.ts'

/**
 * What set-up and the administrator's commands use beside the operations. `by` is who does it, for the audit
 * log; without it, the administrator does.
 */
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

const filterable = {
  name: 'text',
  owner: 'text',
  tenant_id: 'text',
  max_devices: 'number',
  device_count: 'number',
  created_at: 'moment',
  'settings.session_record': 'boolean',
  'settings.connection_announcement': 'text',
  'settings.continue_unrecorded': 'boolean',
} as const

/** How long sessions wait for their person. */
const defaultHold_s = 1_800

const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)

export interface NamespaceParts extends OwnershipLimits {
  stores: Stores
  audit: Audit
  bus: Bus
  clock: Clock
  /** Whether there is a payment provider. */
  billed: boolean
  /** Limits names that nobody has, of a person who adds members, and of all API keys of one maker. */
  wrongNames: Limiter
}

const settingsOf = (row: NamespaceRow): Namespace['settings'] => ({
  session_record: row.session_record === 1,
  connection_announcement: row.connection_announcement,
  continue_unrecorded: row.continue_unrecorded === 1,
  accept_env: JSON.parse(row.accept_env) as string[],
  agent_updates: row.agent_updates,
  reconnect_grace_s: row.reconnect_grace_s,
  audit_retention_days: row.audit_retention_days,
  require_person: row.require_person === 1,
  hold_sessions: row.hold_sessions,
  hold_unknown: row.hold_unknown === 1,
  join_without_consent: row.join_without_consent === 1,
  invite_outsiders: row.invite_outsiders === 1,
  mask_secrets: row.mask_secrets === 1,
  mask_after: JSON.parse(row.mask_after) as string[],
  search: row.search === 1,
})

/** Refuses a variable that never reaches a device, by its name, so that nobody believes that it does. */
function acceptable(names: readonly string[]): string[] {
  const never = names.find(neverPasses)
  if (never !== undefined)
    throw new Failure('invalid', { message: `settings.accept_env: ${never} never reaches a device` })
  return [...new Set(names)]
}

/** Whether entries of the audit log would be removed earlier than now; 0 stands for never. */
const isShorter = (days: number | undefined, now: number): boolean =>
  days !== undefined && days !== 0 && (now === 0 || days < now)

/** Refuses whoever may not grant the role. */
export function mayGrant(own: Role, role: Role): asserts role is MemberRole {
  if (!mayManage(own, role))
    throw new Failure('forbidden', { message: `You may not grant the role ${role}.` })
}

export function namespaces(
  parts: NamespaceParts,
): Omit<Rules<'namespaces'>, 'leave' | 'handOver'> & { admin: NamespaceAdministration } {
  const { stores, audit, bus, clock, billed } = parts
  /** Two statements for a whole page, however many namespaces are on it. */
  async function presentAll(rows: readonly NamespaceRow[]): Promise<Namespace[]> {
    const tenant_ids = rows.map(({ tenant_id }) => tenant_id)
    const [members, counts] = await Promise.all([
      stores.namespaces.membersOf(tenant_ids),
      stores.namespaces.deviceCounts(tenant_ids),
    ])
    return rows.map((row) => {
      const count = counts.get(row.tenant_id) ?? 0
      return {
        name: row.name,
        owner: row.owner,
        tenant_id: row.tenant_id,
        members: members.get(row.tenant_id) ?? [],
        settings: settingsOf(row),
        max_devices: row.max_devices,
        device_count: count,
        devices_count: count,
        created_at: row.created_at,
        billing: billed ? (readBilling(row) as Namespace['billing']) : null,
      }
    })
  }
  const present = async (row: NamespaceRow): Promise<Namespace> => (await presentAll([row]))[0]!

  async function mustFind(tenant_id: string): Promise<NamespaceRow> {
    const row = await stores.namespaces.find(tenant_id)
    if (!row) throw new Failure('notFound')
    return row
  }

  const nameTaken = () => new Failure('conflict', { message: 'A namespace with this name exists already.' })

  async function orNameTaken<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (stores.isDuplicate(error)) throw nameTaken()
      throw error
    }
  }

  const targetOf = ({ tenant_id, name }: NamespaceRow) => ({ kind: 'namespace', id: tenant_id, name })
  /** The settings of a namespace as entries of the audit log show them. */
  const audited = (row: NamespaceRow) => ({ name: row.name, ...settingsOf(row) })

  const admin: NamespaceAdministration = {
    async create(owner, name, tenant_id = newUuid(), by = theAdministrator, isBounded = false) {
      const created_at = iso(clock.now())
      const row: NamespaceRow = {
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
      }
      await orNameTaken(() =>
        audit.change(by, async (inside, record) => {
          if (isBounded) {
            const user = await inside.users.lock(owner)
            if (!user) throw new Failure('unauthenticated')
            await requireRoom(inside, user, parts)
          }
          // In the log of the server and in its own.
          for (const log of ['', tenant_id])
            record({
              action: 'namespace.created',
              target: targetOf(row),
              detail: { owner },
              tenant_id: log,
            })
          await inside.namespaces.insert(row)
          await inside.namespaces.addMember({
            tenant_id,
            user_id: owner,
            role: 'owner',
            epoch: newUuid(),
            created_at,
          })
        }),
      )
      return row
    },
    async removeNamespace(tenant_id, by = theAdministrator) {
      await audit.change(by, async (inside, record) => {
        const row = await inside.namespaces.find(tenant_id)
        await inside.namespaces.remove(tenant_id)
        // Its own log is gone with it.
        if (row) record({ action: 'namespace.removed', target: targetOf(row), tenant_id: '' })
      })
      bus.tell('namespace.changed', { tenant_id })
    },
    async join(tenant_id, user_id, role, by = theAdministrator) {
      try {
        await audit.change(
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
      } catch (error) {
        if (stores.isDuplicate(error))
          throw new Failure('conflict', { message: 'This user is a member already.' })
        throw error
      }
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

  async function memberTarget({ users }: Pick<Stores, 'users'>, user_id: string) {
    return { kind: 'user', id: user_id, name: (await users.find(user_id))?.username ?? '' }
  }

  /** The membership that the caller wants to change, if the caller may. */
  async function managed(tenant_id: string, user_id: string, role: Role) {
    const member = await stores.namespaces.member(tenant_id, user_id)
    if (!member) throw new Failure('notFound')
    const { role: held } = member
    if (held === 'owner' || !mayManage(role, held))
      throw new Failure('forbidden', { message: `You may not change a member with the role ${held}.` })
    return { role: held }
  }

  /** Changes columns, and appends what differs to the log of the namespace. */
  async function save(
    by: Caller,
    tenant_id: string,
    change: Partial<NamespaceRow>,
    more?: (inside: Pick<Stores, 'agentUpdates' | 'searchQueue'>) => Promise<unknown>,
  ): Promise<void> {
    await audit.change(by, async (inside, record) => {
      const before = await inside.namespaces.hold(tenant_id)
      if (!before) throw new Failure('notFound')
      if (Object.keys(change).length > 0) await inside.namespaces.save(tenant_id, change)
      record({
        action: 'namespace.updated',
        target: targetOf(before),
        before: audited(before),
        after: audited({ ...before, ...change }),
      })
      await more?.(inside)
    })
    bus.tell('namespace.changed', { tenant_id })
  }

  return {
    admin,

    async list({ query }, caller) {
      const whose = caller.kind === 'key' ? { tenant_id: caller.tenant_id } : { user_id: caller.id }
      const { items, total } = await stores.namespaces.list(
        whose,
        parseFilter(query.filter, filterable),
        query,
      )
      return { items: await presentAll(items), total }
    },

    async create({ body }, caller) {
      return present(await admin.create(caller.id, body.name, undefined, caller, true))
    },

    async get({ params }) {
      return present(await mustFind(params.tenant))
    },

    async edit({ params, body }, caller) {
      const before = await mustFind(params.tenant)
      const { name, settings } = body
      if (isShorter(settings?.audit_retention_days, before.audit_retention_days) && caller.role !== 'owner')
        throw new Failure('roleTooLow', {
          message: 'Only the owner may shorten how long the audit log is kept.',
        })
      const change = {
        ...(name === undefined ? {} : { name: name.toLowerCase() }),
        ...(settings?.session_record === undefined ? {} : { session_record: flag(settings.session_record) }),
        ...(settings?.continue_unrecorded === undefined
          ? {}
          : { continue_unrecorded: flag(settings.continue_unrecorded) }),
        ...(settings?.search === undefined ? {} : { search: flag(settings.search) }),
        ...(settings?.accept_env === undefined
          ? {}
          : { accept_env: JSON.stringify(acceptable(settings.accept_env)) }),
        ...(settings?.agent_updates === undefined ? {} : { agent_updates: settings.agent_updates }),
        ...(settings?.reconnect_grace_s === undefined
          ? {}
          : { reconnect_grace_s: settings.reconnect_grace_s }),
        ...(settings?.audit_retention_days === undefined
          ? {}
          : { audit_retention_days: settings.audit_retention_days }),
        ...(settings?.mask_secrets === undefined ? {} : { mask_secrets: flag(settings.mask_secrets) }),
        ...(settings?.mask_after === undefined
          ? {}
          : { mask_after: JSON.stringify([...new Set(settings.mask_after)]) }),
        ...(settings?.hold_sessions === undefined ? {} : { hold_sessions: settings.hold_sessions }),
        ...(settings?.hold_unknown === undefined ? {} : { hold_unknown: flag(settings.hold_unknown) }),
        ...(settings?.join_without_consent === undefined
          ? {}
          : { join_without_consent: flag(settings.join_without_consent) }),
        ...(settings?.invite_outsiders === undefined
          ? {}
          : { invite_outsiders: flag(settings.invite_outsiders) }),
        ...(settings?.require_person === undefined ? {} : { require_person: flag(settings.require_person) }),
        ...(settings?.connection_announcement === undefined
          ? {}
          : { connection_announcement: settings.connection_announcement }),
      }
      await orNameTaken(() =>
        save(caller, params.tenant, change, async ({ agentUpdates, searchQueue }) => {
          // What was indexed is removed; it is indexed again when the search is switched on.
          if (settings?.search === false) await searchQueue.markAll(params.tenant)
          if (settings?.agent_updates === 'off') await agentUpdates.cancel(params.tenant)
        }),
      )
      return present(await mustFind(params.tenant))
    },

    async remove({ params }, caller) {
      await admin.removeNamespace(params.tenant, caller)
    },

    async addMember({ params, body }, caller) {
      const identifier = body.identifier ?? body.username ?? body.email
      if (identifier === undefined)
        throw new Failure('invalid', { message: 'identifier: a username or an e-mail address is needed' })
      mayGrant(caller.role, body.role)
      // The answer says who has an account, so names cannot be guessed at will.
      const isKey = caller.kind === 'key'
      const guesser = isKey ? `keys of ${caller.created_by || caller.tenant_id}` : caller.id
      const wait_s = parts.wrongNames.peek(guesser)
      if (wait_s > 0) throw new Failure('tooMany', { retryAfter: wait_s })
      const user = await findOther(stores, identifier)
      if (!user) {
        parts.wrongNames.take(guesser)
        throw new Failure('notFound', { message: 'There is no such user.' })
      }
      await admin.join(params.tenant, user.id, body.role, caller)
      return present(await mustFind(params.tenant))
    },

    async removeMember({ params }, caller) {
      await managed(params.tenant, params.uid, caller.role)
      await admin.leave(params.tenant, params.uid, caller)
      return present(await mustFind(params.tenant))
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
        // Invitations to sessions rest on the role that their maker had.
        await inside.of(params.tenant).sessionInvitations.removeOf(params.uid)
        // Invitations into the namespace end with the right to invite.
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

    setSessionRecord: ({ params, body }, caller) =>
      save(caller, params.tenant, { session_record: flag(body.session_record) }),

    async getSessionRecord(_, caller) {
      return (await mustFind(caller.tenant_id)).session_record === 1
    },
  }
}
