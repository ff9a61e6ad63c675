// Pages of devices that cost the same at a thousand and at a million. A walk through an index in the wanted
// order finds a page quickly when many rows fit, gathering the fitting rows first and sorting them is quick
// when few do. Which it is shows in the total, so the total is found first:
//   no filter, or one tag   a counter
//   any other filter        counted, in a large namespace only up to `counted_in_large`, which is then the total reported
// Without a status the index (namespace, status, column) is walked once per status and the walks are merged.
// Rows that fit may all be at the far end of the order, so a walk ends after `walked_rows`, and gathers after
// all.
import type { Condition, Group } from '@hawser/contract/filters'
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import { sql, type SqlBool } from 'kysely'
import type { Offer } from './agent-updates.ts'
import { inNamespace, offsetOf, type AllNamespaces, type Select, type Slice } from './context.ts'
import {
  containsSql,
  jsonField,
  leadingConditions,
  mostIndexed,
  whereGroups,
  type Column,
  type Columns,
  type Tagged,
} from './filter-sql.ts'
import type { DeviceRow } from './tables.ts'

/** Columns a device list can be sorted by: one index each, led by namespace and status. */
export const sorted_columns = [
  'last_seen',
  'name',
  'created_at',
  'status_update_at',
  'online',
  'uid',
  'remote_addr',
  'mac',
  'info_id',
  'info_pretty_name',
  'info_version',
  'info_arch',
  'info_platform',
] as const

/** Columns that `contains` can search by substring. */
export const searched_columns = [
  'name',
  'mac',
  'remote_addr',
  'info_id',
  'info_pretty_name',
  'info_version',
  'info_arch',
  'info_platform',
] as const

export interface DeviceQuery extends Slice {
  readonly status?: DeviceStatus | undefined
  readonly groups: readonly Group[]
  /** Devices that may be accepted, for filters by `acceptable`: all of them unless it says which. */
  readonly room?: 'all' | readonly string[] | undefined
  /** The agent that is offered, for filters by `agent.outdated`: without it none is outdated. */
  readonly offer?: OfferedBuild | undefined
  readonly sort: (typeof sorted_columns)[number] | 'status'
  readonly order: 'asc' | 'desc'
}

/** What the server offers to agents, and so which of them are outdated. */
export interface OfferedBuild extends Offer {
  readonly version: string
  /** Builds that are newer than the one that is offered. */
  readonly newer: readonly string[]
}

export interface Limits {
  /**
   * From this many devices on a namespace is large: counting them all for one page would take longer than the
   * page.
   */
  readonly large: number
  /** Totals of filtered lists are exact up to here in a large namespace. */
  readonly counted_in_large: number
  /**
   * Up to this many fitting rows are gathered and sorted; with more, walking the index meets enough of them
   * soon.
   */
  readonly most_gathered: number
  /** How many rows a walk with a filter looks at. */
  readonly walked_rows: number
  /** So many tags are named in a query. A namespace may have one for each device, such as a serial number. */
  readonly named_tags: number
}

export const usualLimits: Limits = {
  large: 10_000,
  counted_in_large: 1000,
  most_gathered: 1000,
  walked_rows: 20_000,
  named_tags: 100,
}

export async function listDevices(
  context: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  limits = usualLimits,
): Promise<{ items: DeviceRow[]; total: number }> {
  const statuses = query.status ? [query.status] : deviceStatuses
  query = { ...query, groups: await withWholeTags(context, tenant_id, query.groups, limits.named_tags) }
  let total = await counted(context, tenant_id, query.groups, statuses)
  let most = Infinity
  if (total === undefined) {
    const all = (await counted(context, tenant_id, [], statuses)) ?? 0
    most = all <= limits.large ? all + 1 : limits.counted_in_large
    total =
      (await commonest(context, tenant_id, query.groups, statuses)) >= most
        ? most
        : await capped(context, tenant_id, query, statuses, most)
  }
  // Beyond the end there is nothing to look for, however far beyond.
  if (total <= offsetOf(query) && total < most) return { items: [], total }
  // A total that stopped at its limit is that of many rows, however low the limit.
  const gather = query.groups.length > 0 && total <= limits.most_gathered && total < most
  const walk = gather ? undefined : await walked(context, tenant_id, query, statuses, limits.walked_rows)
  return { items: walk ?? (await gathered(context, tenant_id, query, statuses)), total }
}

/** How many devices have the commonest of some tags: at least so many have any of them. */
async function commonest(
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

/** From counters: all devices of these statuses, or those with exactly one tag. */
async function counted(
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
  // A device may have several of several tags, and would be counted for each.
  if (tags && tags.length > 1) return undefined
  const subjects = statuses.map((status) => (tags ? `tag.${status}.${String(tags[0])}` : `devices.${status}`))
  const rows = await inNamespace(context, tenant_id)
    .read('tallies')
    .select('n')
    .where('subject', 'in', subjects)
    .execute()
  return rows.reduce((sum, row) => sum + row.n, 0)
}

async function capped(
  context: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
  most: number,
): Promise<number> {
  const { n } = await context.reader
    .selectFrom(fitting(context, tenant_id, query, statuses).select('id').limit(most).as('fitting'))
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}

/** The rows that fit, in no order. */
function fitting(
  { reader, dialect }: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
) {
  const { groups } = query
  const columns = columnsOf(tenant_id, dialect, query)
  // A unary plus keeps SQLite from an index. It knows too little to see that a filter by an index of its own
  // names fewer rows than the namespace has, and would look at all of those. PostgreSQL decides by its own
  // figures.
  const leading = dialect === 'sqlite' ? leadingConditions(groups, columns) : undefined
  const byFilter = leading !== undefined
  const of = (column: 'tenant_id' | 'status') =>
    byFilter ? sql<string>`+${sql.ref(column)}` : sql.ref<string>(column)
  const match = matchOf(groups, columns)
  const source =
    match === undefined
      ? reader.selectFrom('devices')
      : // Row by row from the search, so that it ends at a limit; `id in (…)` would gather all that the search finds first.
        (reader.selectFrom(
          sql<DeviceRow>`(select devices.* from device_search cross join devices on devices.id = device_search.rowid
            where device_search match ${match})`.as('devices'),
        ) as ReturnType<typeof reader.selectFrom<'devices'>>)
  const base = source.where(of('tenant_id'), '=', tenant_id).where(of('status'), 'in', statuses)
  // One index names the rows, and the other conditions look at those: each index asked besides would gather all that
  // it finds first, and a frequent word is found a hundred thousand times.
  const isIndexed = (condition: Condition, { join, conditions }: Group) =>
    match === undefined &&
    (dialect === 'postgres' ||
      (leading?.includes(condition) ?? (join === 'and' || conditions.length <= mostIndexed)))
  return whereGroups(base, groups, columns, dialect, isIndexed)
}

/** The question to the search index, when a group is nothing but one such question. */
function matchOf(groups: readonly Group[], columns: Columns): string | undefined {
  for (const { conditions } of groups) {
    const [condition, another] = conditions
    if (!condition || another || condition.operator !== 'contains') continue
    const match = columns[condition.property]?.match?.(String(condition.value))
    if (match !== undefined) return match
  }
  return undefined
}

/** Tags that contain a text are looked up first: most namespaces have few tags and many devices. */
async function withWholeTags(
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

/** The tags that contain a text; undefined: they are too many to name. */
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
    // A tag has a row for each status.
    .limit(most * deviceStatuses.length + 1)
    .execute()
  const tags = [...new Set(rows.map(tagIn))]
  return tags.length > most ? undefined : tags
}

const tagIn = ({ subject }: { subject: string }): string => subject.slice(subject.indexOf('.', 4) + 1)

/** Every tag that some device of the namespace carries. */
export async function tagsInTallies(tallies: Select<'tallies'>): Promise<string[]> {
  const rows = await tallies
    .select('subject')
    .where('subject', '>', 'tag.')
    .where('subject', '<', 'tag/')
    .where('n', '>', 0)
    .execute()
  return [...new Set(rows.map(tagIn))]
}

async function gathered(
  context: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
): Promise<DeviceRow[]> {
  return (
    fitting(context, tenant_id, query, statuses)
      .selectAll()
      // Likewise: it is not to walk the index of the order after all.
      .orderBy(context.dialect === 'sqlite' ? sql`+${sql.ref(query.sort)}` : sql.ref(query.sort), query.order)
      .$if(query.sort === 'status', (sorted) => sorted.orderBy('last_seen', query.order))
      .orderBy('id', query.order)
      .limit(query.per_page)
      .offset(offsetOf(query))
      .execute()
  )
}

/** The page, or nothing when so many rows were looked at that gathering is the better way. */
async function walked(
  context: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
  walked_rows: number,
): Promise<DeviceRow[] | undefined> {
  const { reader, dialect } = context
  // All rows of one walk have the same status: by status means by what comes next, the time it was last seen.
  const keys = query.sort === 'status' ? (['status', 'last_seen'] as const) : ([query.sort] as const)
  const end =
    query.groups.length > 0 && query.sort !== 'status'
      ? await endOfWalk(context, tenant_id, query, statuses, walked_rows)
      : undefined
  const base = (status: DeviceStatus) =>
    whereGroups(
      reader
        .selectFrom('devices')
        .select(['id', ...keys])
        .where('tenant_id', '=', tenant_id)
        .where('status', '=', status)
        .$if(end !== undefined, (some) =>
          some.where(query.sort, query.order === 'asc' ? '<=' : '>=', end as string),
        ),
      query.groups,
      columnsOf(tenant_id, dialect, query),
      dialect,
      () => false,
    )
  const sorted = (rows: ReturnType<typeof base>) =>
    keys.reduce((some, key) => some.orderBy(key, query.order), rows).orderBy('id', query.order)
  // SQLite merges walks as it goes. PostgreSQL would gather and sort them; told how far to go it walks each
  // of them, too.
  const depth = offsetOf(query) + query.per_page
  const walk = (status: DeviceStatus): ReturnType<typeof base> =>
    dialect === 'sqlite' || statuses.length === 1
      ? base(status)
      : (reader
          .selectFrom(sorted(base(status)).limit(depth).as('walk'))
          .select(['id', ...keys]) as unknown as ReturnType<typeof base>)
  const walks = statuses.slice(1).reduce((all, status) => all.unionAll(walk(status)), walk(statuses[0]!))
  // Only ids are walked; the wide rows are read for the page alone.
  const found = await sorted(walks).limit(query.per_page).offset(offsetOf(query)).execute()
  if (end !== undefined && found.length < query.per_page) return undefined
  if (found.length === 0) return []
  const ids = found.map((row) => row.id)
  const rows = await reader
    .selectFrom('devices')
    .selectAll()
    .where('tenant_id', '=', tenant_id)
    .where('id', 'in', ids)
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Where in the order a walk has looked at enough rows of some status; nothing when none has so many. */
async function endOfWalk(
  { reader }: AllNamespaces,
  tenant_id: string,
  { sort, order }: DeviceQuery,
  statuses: readonly DeviceStatus[],
  walked_rows: number,
): Promise<string | number | undefined> {
  const ends = await Promise.all(
    statuses.map((status) =>
      reader
        .selectFrom('devices')
        .select(sql.ref<string | number>(sort).as('end'))
        .where('tenant_id', '=', tenant_id)
        .where('status', '=', status)
        .orderBy(sort, order)
        .orderBy('id', order)
        .limit(1)
        .offset(walked_rows)
        .executeTakeFirst(),
    ),
  )
  // The first of them in the order: beyond it, rows of that status are not known, and might come before those
  // of others.
  const known = ends.flatMap((row) => (row ? [row.end] : [])).toSorted(bytewise)
  return order === 'asc' ? known[0] : known.at(-1)
}

/** As both databases sort. */
function bytewise(a: string | number, b: string | number): number {
  return typeof a === 'number' ? a - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(String(b)))
}

/**
 * Three letters make a trigram; shorter texts have none and are looked for row by row. The trigrams also
 * ignore the case of letters beyond ASCII, which no other way of searching does: what they find is looked at
 * once more.
 */
function searchSqlite(column: string) {
  const match = (text: string) =>
    [...text].length < 3 ? undefined : `${column} : "${text.replaceAll('"', '""')}"`
  const search = (text: string) =>
    match(text) === undefined
      ? undefined
      : sql<SqlBool>`(devices.id in (select rowid from device_search where device_search match ${match(text)})
          and ${containsSql('sqlite', sql.ref(`devices.${column}`), text)})`
  return { match, search }
}

/** As an answer shows it: not accepted yet, and the namespace has room for the device. */
function acceptable(room: DeviceQuery['room'] = 'all') {
  if (room.length === 0) return sql`0`
  const hasRoom = room === 'all' ? sql`1 = 1` : sql`devices.uid in (${sql.join([...room])})`
  return sql`(case when devices.status <> 'accepted' and ${hasRoom} then 1 else 0 end)`
}

/** As an answer shows it: the agent is one of ours and older than the one that the server offers for its processor. */
function outdated(tenant_id: string, offer: OfferedBuild | undefined): Pick<Column, 'sql' | 'among'> {
  if (!offer || offer.arches.length === 0) return { sql: sql`0` }
  const { build, arches, version, newer } = offer
  const isOld = sql`devices.agent_ability <> '' and devices.info_arch in (${sql.join([...arches])})
    and devices.agent_build not in (${sql.join([build, ...newer])})
    and not (devices.agent_build = '' and devices.info_version = ${`hawser-${version}`})`
  // Where all are up to date, two steps in the index of builds find that out.
  const beside = (side: '<' | '>') =>
    sql`(devices.tenant_id = ${tenant_id} and devices.agent_ability <> '' and devices.agent_build ${sql.raw(side)} ${build})`
  return {
    sql: sql`(case when ${isOld} then 1 else 0 end)`,
    among: (value) =>
      value === true ? sql<SqlBool>`((${beside('<')} or ${beside('>')}) and ${isOld})` : undefined,
  }
}

function columnsOf(
  tenant_id: string,
  dialect: AllNamespaces['dialect'],
  { room, offer }: Pick<DeviceQuery, 'room' | 'offer'>,
): Columns {
  const text = (column: string) =>
    ({
      sql: sql.ref(`devices.${column}`),
      kind: 'text',
      ...(dialect === 'sqlite' && (searched_columns as readonly string[]).includes(column)
        ? searchSqlite(column)
        : {}),
    }) as const
  const within = (part: 'latitude' | 'longitude') =>
    ({ sql: jsonField(dialect, 'devices.position', part, 'number'), kind: 'number' }) as const
  return {
    uid: text('uid'),
    name: text('name'),
    'identity.mac': text('mac'),
    'info.id': text('info_id'),
    'info.pretty_name': text('info_pretty_name'),
    'info.version': text('info_version'),
    'info.arch': text('info_arch'),
    'info.platform': text('info_platform'),
    public_key: text('public_key'),
    tenant_id: text('tenant_id'),
    namespace: { sql: sql`(select name from namespaces where tenant_id = ${tenant_id})`, kind: 'text' },
    status: text('status'),
    remote_addr: text('remote_addr'),
    last_seen: text('last_seen'),
    status_update_at: text('status_update_at'),
    status_updated_at: text('status_update_at'),
    created_at: text('created_at'),
    online: { sql: sql.ref('devices.online'), kind: 'flag' },
    public_url: { sql: sql.ref('devices.public_url'), kind: 'flag' },
    acceptable: { sql: acceptable(room), kind: 'flag' },
    'agent.outdated': { ...outdated(tenant_id, offer), kind: 'flag' },
    'position.latitude': within('latitude'),
    'position.longitude': within('longitude'),
    tags: {
      sql: sql.ref('devices.tags'),
      kind: 'tags',
      tagged: (wanted: Tagged, indexed: boolean) => {
        if (typeof wanted === 'object' && wanted.length === 0) return sql<SqlBool>`1 = 0`
        // A device has few tags: without the plus SQLite would look for each of the wanted ones instead.
        const plus = dialect === 'sqlite' && !indexed ? sql`+` : sql``
        const which =
          typeof wanted === 'string'
            ? containsSql(dialect, sql`tag`, wanted)
            : sql`${plus}tag in (${sql.join(wanted)})`
        return indexed
          ? sql<SqlBool>`devices.id in (select device_id from device_tags where tenant_id = ${tenant_id} and ${which})`
          : sql<SqlBool>`exists (select 1 from device_tags where ${plus}tenant_id = ${tenant_id} and device_id = devices.id and ${which})`
      },
    },
  }
}
