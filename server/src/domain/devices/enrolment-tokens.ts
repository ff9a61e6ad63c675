// Enrolment tokens as members manage them; joining.ts uses them. Storing only the SHA-256 is enough for a
// random text.
import { Failure } from '@hawser/contract/failures'
import { mostEnrolmentTokens, usualToken, type EnrolmentToken } from '@hawser/contract/enrolment-tokens'
import { day_ms, iso } from '../../kit/clock.ts'
import { newBase32, newUuid } from '../../kit/ids.ts'
import { hashOf } from '../../kit/secrets.ts'
import type { EnrolmentTokenRow } from '../../storage/enrolment-tokens.ts'
import { orConflict } from '../audit/conflicts.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'

function present(row: EnrolmentTokenRow): EnrolmentToken {
  const { hash: _, ...shown } = row
  return { ...shown, accept: row.accept === 1, tags: JSON.parse(row.tags) as string[] }
}

export function enrolmentTokens({
  stores,
  audit,
  clock,
}: With<'stores' | 'audit' | 'clock'>): Rules<'enrolmentTokens'> {
  return {
    async list({ query }, { tenant_id }) {
      const { items, total } = await stores.of(tenant_id).enrolmentTokens.list(query)
      return { items: items.map(present), total }
    },
    async create({ body }, caller) {
      const { tenant_id } = caller
      const { most_devices, valid_days, tags = [], name_pattern = '' } = { ...usualToken, ...body }
      const token = `hwe_${newBase32(32).toLowerCase()}`
      const now = clock.now()
      const row = {
        id: newUuid(),
        hash: hashOf(token),
        hint: token.slice(-4),
        name: body.name,
        accept: body.accept ? (1 as const) : (0 as const),
        tags: JSON.stringify(tags),
        name_pattern,
        most_devices,
        used: 0,
        expires_at: valid_days === 0 ? null : iso(now + valid_days * day_ms),
        last_used_at: null,
        created_by: caller.kind === 'key' ? caller.created_by : caller.id,
        created_at: iso(now),
      }
      await audit
        .change(caller, async (inside, record) => {
          // Locked, so that two requests cannot both find room for the last token.
          await inside.namespaces.hold(tenant_id)
          const mine = inside.of(tenant_id).enrolmentTokens
          if ((await mine.list({ page: 1, per_page: 1 })).total >= mostEnrolmentTokens)
            throw new Failure('enrolmentTokenLimit')
          await mine.insert(row)
          record({
            action: 'enrolment-token.created',
            target: { kind: 'enrolment token', id: row.id, name: row.name },
            after: {
              accept: body.accept === true,
              tags,
              name_pattern,
              most_devices,
              expires_at: row.expires_at,
            },
          })
        })
        .catch(orConflict(stores, { message: 'An enrolment token with this name exists already.' }))
      return { token, ...present({ ...row, tenant_id }) }
    },
    async remove({ params }, caller) {
      await audit.change(caller, async (inside, record) => {
        const mine = inside.of(caller.tenant_id).enrolmentTokens
        const row = (await mine.all()).find(({ id }) => id === params.id)
        if (!row || !(await mine.remove(params.id))) throw new Failure('notFound')
        record({
          action: 'enrolment-token.removed',
          target: { kind: 'enrolment token', id: row.id, name: row.name },
        })
      })
    },
  }
}
