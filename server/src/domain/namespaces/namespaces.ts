// Namespaces and their settings.
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import { parseFilter } from '../access/filters.ts'
import type { With } from '../audit/parts.ts'
import type { Caller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import { namespaceTarget, orNameTaken, type NamespaceAdministration } from './administration.ts'
import { columnsOf, flag, settingsOf, type NamespaceView } from './view.ts'

export interface NamespaceParts extends With<'stores' | 'audit' | 'bus'> {
  administration: Pick<NamespaceAdministration, 'create' | 'removeNamespace'>
  view: NamespaceView
}

type NamespaceRules = Pick<
  Rules<'namespaces'>,
  'list' | 'create' | 'get' | 'edit' | 'remove' | 'setSessionRecord' | 'getSessionRecord'
>

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

/** 0 stands for never. */
const isShorter = (days: number | undefined, now: number): boolean =>
  days !== undefined && days !== 0 && (now === 0 || days < now)

const audited = (row: NamespaceRow) => ({ name: row.name, ...settingsOf(row) })

export function namespaces({ stores, audit, bus, administration, view }: NamespaceParts): NamespaceRules {
  async function mustFind(tenant_id: string): Promise<NamespaceRow> {
    const row = await stores.namespaces.find(tenant_id)
    if (!row) throw new Failure('notFound')
    return row
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
        target: namespaceTarget(before),
        before: audited(before),
        after: audited({ ...before, ...change }),
      })
      await more?.(inside)
    })
    bus.tell('namespace.changed', { tenant_id })
  }

  return {
    async list({ query }, caller) {
      const whose = caller.kind === 'key' ? { tenant_id: caller.tenant_id } : { user_id: caller.id }
      const { items, total } = await stores.namespaces.list(
        whose,
        parseFilter(query.filter, filterable),
        query,
      )
      return { items: await view.presentAll(items), total }
    },

    async create({ body }, caller) {
      return view.present(await administration.create(caller.id, body.name, undefined, caller, true))
    },

    async get({ params }) {
      return view.present(await mustFind(params.tenant))
    },

    async edit({ params, body }, caller) {
      const before = await mustFind(params.tenant)
      const { name, settings } = body
      if (isShorter(settings?.audit_retention_days, before.audit_retention_days) && caller.role !== 'owner')
        throw new Failure('roleTooLow', {
          message: 'Only the owner may shorten how long the audit log is kept.',
        })
      const change = { ...defined({ name: name?.toLowerCase() }), ...(settings && columnsOf(settings)) }
      await save(caller, params.tenant, change, async ({ agentUpdates, searchQueue }) => {
        // Removes the index; switching the search on fills it again.
        if (settings?.search === false) await searchQueue.markAll(params.tenant)
        if (settings?.agent_updates === 'off') await agentUpdates.cancel(params.tenant)
      }).catch(orNameTaken(stores))
      return view.present(await mustFind(params.tenant))
    },

    async remove({ params }, caller) {
      await administration.removeNamespace(params.tenant, caller)
    },

    setSessionRecord: ({ params, body }, caller) =>
      save(caller, params.tenant, { session_record: flag(body.session_record) }),

    async getSessionRecord(_, caller) {
      return (await mustFind(caller.tenant_id)).session_record === 1
    },
  }
}
