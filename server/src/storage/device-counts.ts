// How many devices there are, and which tags they have, from counters: no device is read.
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import type { Condition, Group } from '@hawser/contract/filters'
import { sql, type SqlBool } from 'kysely'
import { inNamespace, type AllNamespaces, type Select } from './context.ts'
import { containsSql } from './filter-sql.ts'

/** A lower bound for the devices that have any of these tags: the count of the commonest. */
export async function commonest(
  context: AllNamespaces,
  tenant_id: string,
  groups: readonly Group[],
  statuses: readonly DeviceStatus[],
): Promise<number> {
  const [group, another] = groups
  const [only, other] = group?.conditions ?? []
  if (
    another ||
    other ||
    only?.property !== 'tags' ||
    only.operator !== 'eq' ||
    typeof only.value !== 'object'
  )
    return 0
  const tags = only.value
  const subjects = tags.flatMap((tag) => statuses.map((status) => `tag.${status}.${tag}`))
  if (subjects.length === 0) return 0
  const rows = await inNamespace(context, tenant_id)
    .read('tallies')
    .select(['subject', 'n'])
    .where('subject', 'in', subjects)
    .execute()
  const counts = new Map(rows.map(({ subject, n }) => [subject, n]))
  const countOf = (tag: string) =>
    statuses.reduce((sum, status) => sum + (counts.get(`tag.${status}.${tag}`) ?? 0), 0)
  return Math.max(...tags.map(countOf))
}

export async function counted(
  context: AllNamespaces,
  tenant_id: string,
  groups: readonly Group[],
  statuses: readonly DeviceStatus[],
): Promise<number | undefined> {
  const only =
    groups.length === 1 && groups[0]!.conditions.length === 1 ? groups[0]!.conditions[0]! : undefined
  const tags = only?.property === 'tags' && only.operator === 'eq' ? [only.value].flat() : undefined
  if (groups.length > 0 && tags === undefined) return undefined
  if (tags?.length === 0) return 0
  // A device with several of the tags would be counted for each.
  if (tags && tags.length > 1) return undefined
  const subjects = statuses.map((status) => (tags ? `tag.${status}.${String(tags[0])}` : `devices.${status}`))
  const rows = await inNamespace(context, tenant_id)
    .read('tallies')
    .select('n')
    .where('subject', 'in', subjects)
    .execute()
  return rows.reduce((sum, row) => sum + row.n, 0)
}

/** Looks up tags that contain a text first: most namespaces have few tags and many devices. */
export async function withWholeTags(
  context: AllNamespaces,
  tenant_id: string,
  groups: readonly Group[],
  most: number,
): Promise<readonly Group[]> {
  const partial = ({ property, operator, value }: Condition) =>
    property === 'tags' && operator === 'contains' && typeof value === 'string'
  const texts = new Set(groups.flatMap(({ conditions }) => conditions.filter(partial).map(valueText)))
  if (texts.size === 0) return groups
  const found = new Map(
    await Promise.all(
      [...texts].map(async (text) => [text, await tagsWith(context, tenant_id, text, most)] as const),
    ),
  )
  const whole = (condition: Condition): Condition => {
    const value = partial(condition) ? found.get(valueText(condition)) : undefined
    return value ? { ...condition, operator: 'eq', value } : condition
  }
  return groups.map((group) => ({ ...group, conditions: group.conditions.map(whole) }))
}

const valueText = ({ value }: Condition): string => String(value)

/** Undefined: too many tags match. */
async function tagsWith(
  context: AllNamespaces,
  tenant_id: string,
  text: string,
  most: number,
): Promise<string[] | undefined> {
  const ofStatus = (status: DeviceStatus) => {
    const subject = `tag.${status}.`
    const tag = sql`substr(subject, ${sql.lit(subject.length + 1)})`
    return sql<SqlBool>`(subject > ${subject} and subject < ${`tag.${status}/`} and ${containsSql(context.dialect, tag, text)})`
  }
  const rows = await inNamespace(context, tenant_id)
    .read('tallies')
    .select('subject')
    .where(sql<SqlBool>`(${sql.join(deviceStatuses.map(ofStatus), sql` or `)})`)
    .where('n', '>', 0)
    .limit(most * deviceStatuses.length + 1)
    .execute()
  const tags = [...new Set(rows.map(tagIn))]
  return tags.length > most ? undefined : tags
}

const tagIn = ({ subject }: { subject: string }): string => subject.slice(subject.indexOf('.', 4) + 1)

export async function tagsInTallies(tallies: Select<'tallies'>): Promise<string[]> {
  const rows = await tallies
    .select('subject')
    .where('subject', '>', 'tag.')
    .where('subject', '<', 'tag/')
    .where('n', '>', 0)
    .execute()
  return [...new Set(rows.map(tagIn))]
}
