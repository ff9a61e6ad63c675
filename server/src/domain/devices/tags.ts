// Tags of a namespace: listed, and renamed or removed everywhere in one transaction. An active firewall rule
// that lost its last tag would silently stop denying. So it becomes inactive, the answer says so, and only
// callers who may write the rule may delete the tag. A rule with a tag that no device has matches the next
// device that gets it.
import { rank } from '@hawser/contract/access'
import { Failure } from '@hawser/contract/failures'
import type { StoresInTransaction } from '../../storage/stores.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import { noticeOf, readFilter, tagsInUse, type Deactivated } from '../access/tag-use.ts'

export interface TagParts extends With<'stores' | 'audit'> {
  onDeactivated: (about: Deactivated) => void
}

export function tags({ stores, audit, onDeactivated }: TagParts): Rules<'tags'> {
  /**
   * Applies a change to every list that has the tag; returns the ids of firewall rules that became inactive.
   */
  async function everywhere(
    inside: StoresInTransaction,
    tenant_id: string,
    tag: string,
    next: (tags: string[]) => string[],
  ): Promise<string[]> {
    const { devices, publicKeys, firewall } = inside.of(tenant_id)
    for (const device of await devices.withTag(tag))
      await devices.save(device.uid, { tags: JSON.stringify(next(JSON.parse(device.tags) as string[])) })
    const changed = (filter: string): string[] | undefined => {
      const parsed = readFilter(filter)
      return 'tags' in parsed && parsed.tags.includes(tag) ? next(parsed.tags) : undefined
    }
    for (const key of await publicKeys.all()) {
      const tags = changed(key.filter)
      if (tags) await publicKeys.save(key.fingerprint, { filter: JSON.stringify({ tags }) })
    }
    const { enrolmentTokens, acceptRules } = inside.of(tenant_id)
    const given = (text: string): string | undefined => {
      const tags = JSON.parse(text) as string[]
      return tags.includes(tag) ? JSON.stringify(next(tags)) : undefined
    }
    for (const token of await enrolmentTokens.all()) {
      const tags = given(token.tags)
      if (tags) await enrolmentTokens.saveTags(token.id, tags)
    }
    for (const rule of await acceptRules.all()) {
      const tags = given(rule.tags)
      if (tags) await acceptRules.saveTags(rule.id, tags)
    }
    const deactivated: string[] = []
    for (const rule of await firewall.all()) {
      const tags = changed(rule.filter)
      if (!tags) continue
      const useless = rule.active === 1 && tags.length === 0
      await firewall.save(rule.id, { filter: JSON.stringify({ tags }), ...(useless ? { active: 0 } : {}) })
      if (useless) deactivated.push(String(rule.id))
    }
    return deactivated
  }

  return {
    async list(_, { tenant_id }) {
      const items = [...(await tagsInUse(stores, tenant_id))].toSorted()
      return { items, total: items.length }
    },
    rename: ({ params, body }, caller) =>
      audit.change(caller, async (inside, record) => {
        const { tenant_id } = caller
        const used = await tagsInUse(inside, tenant_id)
        if (!used.has(params.tag)) throw new Failure('notFound')
        if (body.tag === params.tag) return
        if (used.has(body.tag))
          throw new Failure('conflict', { message: 'A tag with this name exists already.' })
        await everywhere(inside, tenant_id, params.tag, (tags) =>
          tags.map((tag) => (tag === params.tag ? body.tag : tag)),
        )
        await inside.of(tenant_id).budgets.renameTag(params.tag, body.tag)
        record({
          action: 'tag.renamed',
          target: { kind: 'tag', id: params.tag, name: params.tag },
          before: { tag: params.tag },
          after: { tag: body.tag },
        })
      }),
    async remove({ params: { tag } }, caller) {
      const { tenant_id, role } = caller
      const rules = await audit.change(caller, async (inside, record) => {
        if (!(await tagsInUse(inside, tenant_id)).has(tag)) throw new Failure('notFound')
        const deactivated = await everywhere(inside, tenant_id, tag, (tags) =>
          tags.filter((other) => other !== tag),
        )
        if (deactivated.length > 0 && rank(role) < rank('administrator'))
          throw new Failure('roleTooLow', {
            message: `These firewall rules have no other tag and would become inactive, which takes an administrator: ${deactivated.join(', ')}.`,
          })
        record({
          action: 'tag.removed',
          target: { kind: 'tag', id: tag, name: tag },
          detail: { deactivated_rules: deactivated },
        })
        return deactivated
      })
      if (rules.length > 0) onDeactivated({ tenant_id, tag, rules })
      return { answer: undefined, headers: { 'x-notice': noticeOf(rules) } }
    },
  }
}
