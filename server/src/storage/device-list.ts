// Pages of devices that cost the same at a thousand and at a million. Walking an index in the wanted order is
// quick when many rows match; gathering and sorting the matches is quick when few do. The total decides, so
// it is found first: a counter (no filter, or one tag), or a count, which large namespaces cap at
// `counted_in_large`.
// Without a status the index (namespace, status, column) is walked once per status and the walks are merged.
// All matches may be at the far end of the order, so a walk stops after `walked_rows` and gathers instead.
import type { Condition, Group } from '@hawser/contract/filters'
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import { sql } from 'kysely'
import { offsetOf, type AllNamespaces, type Slice } from './context.ts'
import { columnsOf, type Known } from './device-columns.ts'
import { commonest, counted, withWholeTags } from './device-counts.ts'
import { leadingConditions, mostIndexed, whereGroups, type Columns } from './filter-sql.ts'
import type { DeviceRow } from './tables.ts'

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
  /** From this many devices on, counting them all would take longer than the page. */
  readonly large: number
  readonly counted_in_large: number
  /** Above this many matches, walking the index finds enough of them soon. */
  readonly most_gathered: number
  readonly walked_rows: number
  /** The most tags that a query names: a namespace may have one per device, such as a serial number. */
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
  if (total <= offsetOf(query) && total < most) return { items: [], total }
  // A capped total stands for many rows, however low the cap.
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

function fitting(
  { reader, dialect }: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
) {
  const { groups } = query
  const columns = columnsOf(tenant_id, dialect, query)
  // A unary plus keeps SQLite from an index: it cannot see that a filter's own index names fewer rows than
  // the namespace has. PostgreSQL decides by its statistics.
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
  // One index names the rows and the other conditions check those: another index would first gather
  // everything it finds, a hundred thousand rows for a frequent word.
  const isIndexed = (condition: Condition, { join, conditions }: Group) =>
    match === undefined &&
    (dialect === 'postgres' ||
      (leading?.includes(condition) ?? (join === 'and' || conditions.length <= mostIndexed)))
  return whereGroups(base, groups, columns, dialect, isIndexed)
}

/** The search index's question, when a group is nothing else. */
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
      // Keeps SQLite from walking the index of the order after all.
      .orderBy(context.dialect === 'sqlite' ? sql`+${sql.ref(query.sort)}` : sql.ref(query.sort), query.order)
      .$if(query.sort === 'status', (sorted) => sorted.orderBy('last_seen', query.order))
      .orderBy('id', query.order)
      .limit(query.per_page)
      .offset(offsetOf(query))
      .execute()
  )
}

/** The page, or undefined when too many rows were examined and gathering is quicker. */
async function walked(
  context: AllNamespaces,
  tenant_id: string,
  query: DeviceQuery,
  statuses: readonly DeviceStatus[],
  walked_rows: number,
): Promise<DeviceRow[] | undefined> {
  const { reader, dialect } = context
  // All rows of one walk have the same status, so it sorts by the next column, `last_seen`.
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
  // SQLite merges walks as it goes. PostgreSQL would gather and sort them unless each has a limit.
  const depth = offsetOf(query) + query.per_page
  const walk = (status: DeviceStatus): ReturnType<typeof base> =>
    dialect === 'sqlite' || statuses.length === 1
      ? base(status)
      : (reader
          .selectFrom(sorted(base(status)).limit(depth).as('walk'))
          .select(['id', ...keys]) as unknown as ReturnType<typeof base>)
  const walks = statuses.slice(1).reduce((all, status) => all.unionAll(walk(status)), walk(statuses[0]!))
  // Walks ids only; the wide rows are read for the page alone.
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

/** Where in the order a walk has examined enough rows of some status; undefined when none has that many. */
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
  // Beyond the first of these ends, unknown rows of that status might precede those of others.
  const known = ends.flatMap((row) => (row ? [row.end] : [])).toSorted(bytewise)
  return order === 'asc' ? known[0] : known.at(-1)
}

function bytewise(a: string | number, b: string | number): number {
  return typeof a === 'number' ? a - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(String(b)))
}
