// Where tags are used. A filter may only name tags that something in the namespace carries; a tag is renamed
// or removed everywhere at once: on devices, in public keys and in firewall rules.
import type { StoredFilter } from '@hawser/contract/fields'
import { Failure } from '@hawser/contract/failures'
import type { StoresInTransaction } from '../../storage/stores.ts'

export type { StoredFilter }
type Inside = Pick<StoresInTransaction, 'of'>

export interface Deactivated {
  readonly tenant_id: string
  readonly tag: string
  readonly rules: readonly string[]
}

export const noticeOf = (rules: readonly string[]): string =>
  rules.length === 0 ? '' : `These firewall rules had no other tag and are inactive now: ${rules.join(', ')}.`

const most_tags = 3

export function readFilter(text: string): StoredFilter {
  return JSON.parse(text) as StoredFilter
}

export async function tagsInUse(inside: Inside, tenant_id: string): Promise<Set<string>> {
  const { devices, publicKeys, firewall } = inside.of(tenant_id)
  const filters = [...(await publicKeys.all()), ...(await firewall.all())].map((row) =>
    readFilter(row.filter),
  )
  return new Set([
    ...(await devices.tags()),
    ...filters.flatMap((filter) => ('tags' in filter ? filter.tags : [])),
  ])
}

export async function requireTags(inside: Inside, tenant_id: string, tags: readonly string[]): Promise<void> {
  const used = await tagsInUse(inside, tenant_id)
  for (const tag of tags)
    if (!used.has(tag))
      throw new Failure('notFound', { message: `Nothing in the namespace has the tag ${tag}.` })
}

function tagsOf(filter: StoredFilter): string[] {
  if (!('tags' in filter))
    throw new Failure('invalid', { message: 'This filter is by host name; it has no tags.' })
  return filter.tags
}

/** An operation on the tags of a stored filter; public keys and firewall rules share them. */
export type Retag = (
  inside: Inside,
  tenant_id: string,
  filter: StoredFilter,
) => Promise<StoredFilter> | StoredFilter

export const adding =
  (tag: string): Retag =>
  async (inside, tenant_id, filter) => {
    const tags = tagsOf(filter)
    if (tags.includes(tag)) throw new Failure('conflict', { message: 'This tag is there already.' })
    if (tags.length >= most_tags) throw new Failure('tooManyTags')
    await requireTags(inside, tenant_id, [tag])
    return { tags: [...tags, tag] }
  }

export const setting =
  (tags: readonly string[]): Retag =>
  async (inside, tenant_id, filter) => {
    tagsOf(filter)
    await requireTags(inside, tenant_id, tags)
    return { tags: [...tags] }
  }

/**
 * May leave no tag at all. Such a filter matches no device, and a firewall rule with it must not be active.
 */
export function without(filter: StoredFilter, tag: string): StoredFilter {
  const tags = tagsOf(filter)
  if (!tags.includes(tag)) throw new Failure('notFound')
  return { tags: tags.filter((other) => other !== tag) }
}
