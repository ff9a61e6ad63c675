// API keys as members manage them. Storing only the SHA-256 of a key is enough for a random text.
import { rank, type Role } from '@hawser/contract/access'
import { defined } from '@hawser/contract/defined'
import { Failure } from '@hawser/contract/failures'
import { day_ms, iso } from '../../kit/clock.ts'
import { newUuid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

const targetOf = (name: string) => ({ kind: 'API key', id: name, name })

export function apiKeys({
  stores,
  audit,
  bus,
  clock,
}: With<'stores' | 'audit' | 'bus' | 'clock'>): Rules<'apiKeys'> {
  const mayGive = (own: Role, role: Role): void => {
    if (rank(role) > rank(own))
      throw new Failure('roleTooLow', { message: `A key may not have more than your own role, ${own}.` })
  }
  const orTaken = orConflict(stores, {
    message: 'An API key with this name, or this very key, exists already.',
  })

  /** Days from now as unix seconds; a year is a calendar year. */
  function expiry(days: number): number {
    if (days === -1) return -1
    const at = new Date(clock.now())
    if (days === 365) at.setUTCFullYear(at.getUTCFullYear() + 1)
    else at.setTime(at.getTime() + days * day_ms)
    return Math.floor(at.getTime() / 1000)
  }

  return {
    async create({ body }, caller) {
      if (caller.kind === 'key') throw new Failure('apiKeyRefused')
      const role = body.role ?? caller.role
      mayGive(caller.role, role)
      const key = body.key ?? newUuid()
      const now = iso(clock.now())
      const row = {
        name: body.name,
        role,
        created_by: caller.id,
        expires_in: expiry(body.expires_at),
        created_at: now,
        updated_at: now,
      }
      await audit
        .change(caller, async (inside, record) => {
          await inside.of(caller.tenant_id).apiKeys.insert({ ...row, hash: hashOf(key) })
          record({ action: 'api-key.created', target: targetOf(row.name), after: row })
        })
        .catch(orTaken)
      return { ...row, id: key, tenant_id: caller.tenant_id, user_id: caller.id }
    },
    async list({ query }, { tenant_id }) {
      return stores.of(tenant_id).apiKeys.list(query, query.sort_by, query.order_by)
    },
    async update({ params, body }, caller) {
      const { tenant_id, role } = caller
      if (body.role !== undefined) mayGive(role, body.role)
      const found = await stores.of(tenant_id).apiKeys.find(params.key)
      if (!found) throw new Failure('notFound')
      const change = defined({ name: body.name, role: body.role })
      if (Object.keys(change).length > 0)
        await audit
          .change(caller, async (inside, record) => {
            const mine = inside.of(tenant_id).apiKeys
            await mine.save(params.key, { ...change, updated_at: iso(clock.now()) })
            const before = { name: found.name, role: found.role }
            record({
              action: 'api-key.updated',
              target: targetOf(params.key),
              before,
              after: { ...before, ...change },
            })
          })
          .catch(orTaken)
      // Sessions know a key by its name, which another key may get next.
      if (change.role !== undefined || (change.name ?? found.name) !== found.name)
        bus.tell('apiKey.changed', { tenant_id, name: params.key })
    },
    async remove({ params }, caller) {
      const { tenant_id } = caller
      await audit.change(caller, async (inside, record) => {
        if (!(await inside.of(tenant_id).apiKeys.remove(params.key))) throw new Failure('notFound')
        record({ action: 'api-key.removed', target: targetOf(params.key) })
      })
      bus.tell('apiKey.changed', { tenant_id, name: params.key })
    },
  }
}
