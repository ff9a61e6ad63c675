// Firewall rules as members manage them; how they are applied to a connection is in firewall-rules.ts.
import { Failure } from '@hawser/contract/failures'
import type { FirewallRule } from '@hawser/contract/firewall'
import type { FirewallRow } from '../../storage/firewall.ts'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import { requireRoom } from './firewall-rules.ts'
import { checkPattern } from './patterns.ts'
import type { MemberCaller } from '../callers/callers.ts'
import type { Rules } from '../callers/rules.ts'
import {
  adding,
  noticeOf,
  readFilter,
  requireTags,
  setting,
  without,
  type Deactivated,
  type Retag,
  type StoredFilter,
} from './tag-use.ts'

interface Wanted {
  action: 'allow' | 'deny'
  active: boolean
  filter: StoredFilter
  priority: number
  source_ip: string
  username: string
}

const present = (row: FirewallRow): FirewallRule => ({
  ...row,
  id: String(row.id),
  active: row.active === 1,
  filter: readFilter(row.filter),
})

const targetOf = ({ id }: FirewallRow) => ({ kind: 'firewall rule', id: String(id), name: '' })

function checkPatterns(rule: Wanted): void {
  checkPattern('source_ip', rule.source_ip)
  checkPattern('username', rule.username)
  if ('hostname' in rule.filter) checkPattern('filter.hostname', rule.filter.hostname)
}

async function mustFind(
  inside: Pick<StoresInTransaction, 'of'>,
  tenant_id: string,
  id: string,
): Promise<FirewallRow> {
  const row = await inside.of(tenant_id).firewall.find(Number(id))
  if (!row) throw new Failure('notFound')
  return row
}

export interface FirewallParts extends With<'stores' | 'audit'> {
  onDeactivated: (about: Deactivated) => void
}

export function firewall({ stores, audit, onDeactivated }: FirewallParts): Rules<'firewall'> {
  /** The row of a new rule, checked against the others. `id`: the rule that it replaces. */
  async function stored(inside: StoresInTransaction, tenant_id: string, wanted: Wanted, id?: number) {
    const { filter, active, action, priority, source_ip, username } = wanted
    // Locked, so that two requests cannot both find room for the last rule.
    await inside.namespaces.hold(tenant_id)
    if ('tags' in filter) await requireTags(inside, tenant_id, filter.tags)
    const others = (await inside.of(tenant_id).firewall.all()).filter((row) => row.id !== id)
    requireRoom(
      others.map((row) => ({ ...row, filter: readFilter(row.filter) })),
      wanted,
    )
    return {
      action,
      priority,
      source_ip,
      username,
      active: active ? (1 as const) : (0 as const),
      filter: JSON.stringify(filter),
    }
  }

  function changeFilter(caller: MemberCaller, id: string, next: Retag): Promise<void> {
    const { tenant_id } = caller
    return audit.change(caller, async (inside, record) => {
      const row = await mustFind(inside, tenant_id, id)
      const before = readFilter(row.filter)
      const filter = await next(inside, tenant_id, before)
      await inside.of(tenant_id).firewall.save(row.id, { filter: JSON.stringify(filter) })
      record({
        action: 'firewall.rule.updated',
        target: targetOf(row),
        before: { filter: before },
        after: { filter },
      })
    })
  }

  return {
    create({ body }, caller) {
      const { tenant_id } = caller
      checkPatterns(body)
      return audit.change(caller, async (inside, record) => {
        const id = await inside.of(tenant_id).firewall.insert(await stored(inside, tenant_id, body))
        const row = await mustFind(inside, tenant_id, String(id))
        record({ action: 'firewall.rule.created', target: targetOf(row), after: present(row) })
        return present(row)
      })
    },
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).firewall.list(query)
      return { items: items.map(present), total }
    },
    async get({ params }, { tenant_id }) {
      return present(await mustFind(stores, tenant_id, params.id))
    },
    update({ params, body }, caller) {
      const { tenant_id } = caller
      checkPatterns(body)
      return audit.change(caller, async (inside, record) => {
        const row = await mustFind(inside, tenant_id, params.id)
        await inside.of(tenant_id).firewall.save(row.id, await stored(inside, tenant_id, body, row.id))
        const after = present(await mustFind(inside, tenant_id, params.id))
        record({ action: 'firewall.rule.updated', target: targetOf(row), before: present(row), after })
        return after
      })
    },
    async remove({ params }, caller) {
      await audit.change(caller, async (inside, record) => {
        const row = await mustFind(inside, caller.tenant_id, params.id)
        await inside.of(caller.tenant_id).firewall.remove(row.id)
        record({ action: 'firewall.rule.removed', target: targetOf(row), before: present(row) })
      })
    },
    addTag: ({ params, body }, caller) => changeFilter(caller, params.id, adding(body.tag)),
    setTags: ({ params, body }, caller) => changeFilter(caller, params.id, setting(body.tags)),
    async removeTag({ params, body: { tag } }, caller) {
      const { tenant_id } = caller
      const rules = await audit.change(caller, async (inside, record) => {
        const row = await mustFind(inside, tenant_id, params.id)
        const filter = without(readFilter(row.filter), tag)
        const useless = row.active === 1 && 'tags' in filter && filter.tags.length === 0
        await inside
          .of(tenant_id)
          .firewall.save(row.id, { filter: JSON.stringify(filter), ...(useless ? { active: 0 } : {}) })
        record({
          action: 'firewall.rule.updated',
          target: targetOf(row),
          before: { filter: readFilter(row.filter), active: row.active === 1 },
          after: { filter, active: row.active === 1 && !useless },
        })
        return useless ? [String(row.id)] : []
      })
      if (rules.length > 0) onDeactivated({ tenant_id, tag, rules })
      return { answer: undefined, headers: { 'x-notice': noticeOf(rules) } }
    },
  }
}
