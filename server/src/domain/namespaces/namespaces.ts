// Namespaces and their members. Nobody can grant, edit or remove an owner. A changed or ended membership
// takes effect at once: its epoch changes, which ends every token made for it, and an ended one loses its API
// keys and enrolment tokens.
import { mayManage, type Role } from '@hawser/contract/access'
import { neverPasses } from '@hawser/contract/environment'
import { Failure } from '@hawser/contract/failures'
import type { Namespace } from '@hawser/contract/namespaces'
import type { Bus } from '../../bus/bus.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import { parseFilter } from '../access/filters.ts'
import { findOther } from '../people/identity.ts'
import type { Rules } from '../callers/rules.ts'
import { free_devices, readBilling } from '../billing/subscriptions.ts'

/** What set-up and the administrator's commands use beside the operations. */
export interface NamespaceAdministration {
  create(owner: string, name: string, tenant_id?: string): Promise<NamespaceRow>
  removeNamespace(tenant_id: string): Promise<void>
  join(tenant_id: string, user_id: string, role: Role): Promise<void>
  leave(tenant_id: string, user_id: string): Promise<void>
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

const flag = (on: boolean): 0 | 1 => (on ? 1 : 0)

export interface NamespaceParts {
  stores: Stores
  bus: Bus
  clock: Clock
  /** Whether there is a payment provider. */
  billed: boolean
}

/** Refuses a variable that never reaches a device, by its name, so that nobody believes that it does. */
function acceptable(names: readonly string[]): string[] {
  const never = names.find(neverPasses)
  if (never !== undefined)
    throw new Failure('invalid', { message: `settings.accept_env: ${never} never reaches a device` })
  return [...new Set(names)]
}

export function namespaces({
  stores,
  bus,
  clock,
  billed,
}: NamespaceParts): Rules<'namespaces'> & { admin: NamespaceAdministration } {
  async function present(row: NamespaceRow): Promise<Namespace> {
    const [members, count] = await Promise.all([
      stores.namespaces.members(row.tenant_id),
      stores.namespaces.deviceCount(row.tenant_id),
    ])
    return {
      name: row.name,
      owner: row.owner,
      tenant_id: row.tenant_id,
      members,
      settings: {
        session_record: row.session_record === 1,
        connection_announcement: row.connection_announcement,
        continue_unrecorded: row.continue_unrecorded === 1,
        accept_env: JSON.parse(row.accept_env) as string[],
        agent_updates: row.agent_updates,
      },
      max_devices: row.max_devices,
      device_count: count,
      devices_count: count,
      created_at: row.created_at,
      billing: billed ? (readBilling(row) as Namespace['billing']) : null,
    }
  }

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

  const admin: NamespaceAdministration = {
    async create(owner, name, tenant_id = newUuid()) {
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
      }
      await orNameTaken(() =>
        stores.transaction(async (inside) => {
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
    async removeNamespace(tenant_id) {
      await stores.transaction((inside) => inside.namespaces.remove(tenant_id))
      bus.tell('namespace.changed', { tenant_id })
    },
    async join(tenant_id, user_id, role) {
      try {
        await stores.namespaces.addMember({
          tenant_id,
          user_id,
          role,
          epoch: newUuid(),
          created_at: iso(clock.now()),
        })
      } catch (error) {
        if (stores.isDuplicate(error))
          throw new Failure('conflict', { message: 'This user is a member already.' })
        throw error
      }
    },
    async leave(tenant_id, user_id) {
      await stores.transaction(async (inside) => {
        await inside.namespaces.removeMember(tenant_id, user_id)
        await inside.of(tenant_id).apiKeys.removeOf(user_id)
        await inside.of(tenant_id).enrolmentTokens.removeOf(user_id)
      })
      bus.tell('member.changed', { tenant_id, user_id })
    },
  }

  /** The membership that the caller wants to change, if the caller may. */
  async function managed(tenant_id: string, user_id: string, role: Role) {
    const member = await stores.namespaces.member(tenant_id, user_id)
    if (!member) throw new Failure('notFound')
    if (!mayManage(role, member.role))
      throw new Failure('forbidden', { message: `You may not change a member with the role ${member.role}.` })
    return member
  }

  const mayGrant = (own: Role, role: Role): void => {
    if (!mayManage(own, role))
      throw new Failure('forbidden', { message: `You may not grant the role ${role}.` })
  }

  async function setRecording(tenant_id: string, on: boolean): Promise<void> {
    await mustFind(tenant_id)
    await stores.namespaces.save(tenant_id, { session_record: flag(on) })
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
      return { items: await Promise.all(items.map(present)), total }
    },

    async create({ body }, caller) {
      const user = await stores.users.find(caller.id)
      if (!user) throw new Failure('unauthenticated')
      if (user.max_namespaces > 0 && (await stores.namespaces.ownedBy(user.id)).length >= user.max_namespaces)
        throw new Failure('namespaceLimit')
      return present(await admin.create(user.id, body.name))
    },

    async get({ params }) {
      return present(await mustFind(params.tenant))
    },

    async edit({ params, body }) {
      await mustFind(params.tenant)
      const { name, settings } = body
      const change = {
        ...(name === undefined ? {} : { name: name.toLowerCase() }),
        ...(settings?.session_record === undefined ? {} : { session_record: flag(settings.session_record) }),
        ...(settings?.continue_unrecorded === undefined
          ? {}
          : { continue_unrecorded: flag(settings.continue_unrecorded) }),
        ...(settings?.accept_env === undefined
          ? {}
          : { accept_env: JSON.stringify(acceptable(settings.accept_env)) }),
        ...(settings?.agent_updates === undefined ? {} : { agent_updates: settings.agent_updates }),
        ...(settings?.connection_announcement === undefined
          ? {}
          : { connection_announcement: settings.connection_announcement }),
      }
      if (Object.keys(change).length > 0)
        await orNameTaken(() => stores.namespaces.save(params.tenant, change))
      if (settings?.agent_updates === 'off') await stores.agentUpdates.cancel(params.tenant)
      bus.tell('namespace.changed', { tenant_id: params.tenant })
      return present(await mustFind(params.tenant))
    },

    async remove({ params }) {
      await admin.removeNamespace(params.tenant)
    },

    async addMember({ params, body }, caller) {
      const identifier = body.identifier ?? body.username ?? body.email
      if (identifier === undefined)
        throw new Failure('invalid', { message: 'identifier: a username or an e-mail address is needed' })
      mayGrant(caller.role, body.role)
      const user = await findOther(stores, identifier)
      if (!user) throw new Failure('notFound', { message: 'There is no such user.' })
      await admin.join(params.tenant, user.id, body.role)
      return present(await mustFind(params.tenant))
    },

    async removeMember({ params }, caller) {
      await managed(params.tenant, params.uid, caller.role)
      await admin.leave(params.tenant, params.uid)
      return present(await mustFind(params.tenant))
    },

    async updateMember({ params, body }, caller) {
      const member = await managed(params.tenant, params.uid, caller.role)
      if (body.role === undefined || body.role === member.role) return
      mayGrant(caller.role, body.role)
      await stores.namespaces.saveMember(params.tenant, params.uid, { role: body.role, epoch: newUuid() })
      bus.tell('member.changed', { tenant_id: params.tenant, user_id: params.uid })
    },

    setSessionRecord: ({ params, body }) => setRecording(params.tenant, body.session_record),

    async getSessionRecord(_, caller) {
      return (await mustFind(caller.tenant_id)).session_record === 1
    },
  }
}
