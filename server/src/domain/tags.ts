// Tags of the whole namespace: what there is, and renaming or removing one everywhere in one transaction.
import { Failure } from '@hawser/contract/failures'
import type { Stores, StoresInTransaction } from '../storage/stores.ts'
import type { Rules } from './rules.ts'
import { readFilter, tagsInUse } from './tag-use.ts'

export function tags({ stores }: { stores: Stores }): Rules<'tags'> {
  /** Applies a change to every list that has the tag. */
  async function everywhere(
    inside: StoresInTransaction,
    tenant_id: string,
    tag: string,
    next: (tags: string[]) => string[],
  ): Promise<void> {
    const { devices, publicKeys, firewall } = inside.of(tenant_id)
    for (const device of await devices.withTag(tag))
      await devices.save(device.uid, { tags: JSON.stringify(next(JSON.parse(device.tags) as string[])) })
    const changed = (filter: string): string | undefined => {
      const parsed = readFilter(filter)
      return 'tags' in parsed && parsed.tags.includes(tag) ? JSON.stringify({ tags: next(parsed.tags) }) : undefined
    }
    for (const key of await publicKeys.all()) {
      const filter = changed(key.filter)
      if (filter) await publicKeys.save(key.fingerprint, { filter })
    }
    for (const rule of await firewall.all()) {
      const filter = changed(rule.filter)
      if (filter) await firewall.save(rule.id, { filter })
    }
  }

  return {
    async list(_, { tenant_id }) {
      const items = [...(await tagsInUse(stores, tenant_id))].toSorted()
      return { items, total: items.length }
    },
    rename: ({ params, body }, { tenant_id }) =>
      stores.transaction(async (inside) => {
        const used = await tagsInUse(inside, tenant_id)
        if (!used.has(params.tag)) throw new Failure('notFound')
        if (body.tag === params.tag) return
        if (used.has(body.tag)) throw new Failure('conflict', { message: 'A tag with this name exists already.' })
        await everywhere(inside, tenant_id, params.tag, (tags) => tags.map((tag) => (tag === params.tag ? body.tag : tag)))
      }),
    remove: ({ params }, { tenant_id }) =>
      stores.transaction(async (inside) => {
        if (!(await tagsInUse(inside, tenant_id)).has(params.tag)) throw new Failure('notFound')
        await everywhere(inside, tenant_id, params.tag, (tags) => tags.filter((tag) => tag !== params.tag))
      }),
  }
}
