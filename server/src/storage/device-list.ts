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
import { sql } from 'kysely'
import { offsetOf, type AllNamespaces, type Slice } from './context.ts'
import { columnsOf, type Known } from './device-columns.ts'
import { commonest, counted, withWholeTags } from './device-counts.ts'
import { leadingConditions, mostIndexed, whereGroups, type Columns } from './filter-sql.ts'
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

export interface DeviceQuery extends Slice, Known {
  readonly status?: DeviceStatus | undefined
  readonly groups: readonly Group[]
  readonly sort: (typeof sorted_columns)[number] | 'status'
  readonly order: 'asc' | 'desc'
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
