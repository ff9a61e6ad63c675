// Pages of devices that cost the same at a thousand and at a million. A walk through an index in the wanted order finds
// a page quickly when many rows fit, gathering the fitting rows first and sorting them is quick when few do. Which it is
// shows in the total, so the total is found first:
//   no filter, or one tag   a counter
//   any other filter        counted up to `most_counted`; beyond that the total is reported as that number
// Without a status the index (namespace, status, column) is walked once per status and the walks are merged.
import type { Group } from '@hawser/contract/filters'
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import { sql, type SqlBool } from 'kysely'
import type { Context, Slice } from './context.ts'
import { offsetOf } from './context.ts'
import type { DeviceRow } from './devices.ts'
import { jsonField, likeText, whereGroups, type Columns, type Tagged } from './filter-sql.ts'
import { searched_columns, type sorted_columns } from './migrations/0001-beginning.ts'

export interface DeviceQuery extends Slice {
  readonly status?: DeviceStatus | undefined
  readonly groups: readonly Group[]
  readonly sort: (typeof sorted_columns)[number] | 'status'
  readonly order: 'asc' | 'desc'
}

/** Totals of filtered lists are exact up to here. */
export const most_counted = 10_000

/** Up to this many fitting rows are gathered and sorted; with more, walking the index meets enough of them soon. */
const most_gathered = 1000

export async function listDevices(context: Context, tenant_id: string, query: DeviceQuery): Promise<{ items: DeviceRow[]; total: number }> {
  const statuses = query.status ? [query.status] : deviceStatuses
  const total = (await counted(context, tenant_id, query, statuses)) ?? (await capped(context, tenant_id, query, statuses))
  if (total <= offsetOf(query) && total < most_counted) return { items: [], total }
  const gather = query.groups.length > 0 && total <= most_gathered
  return { items: gather ? await gathered(context, tenant_id, query, statuses) : await walked(context, tenant_id, query, statuses), total }
}

/** From counters: all devices of these statuses, or those with exactly one tag. */
async function counted(
  { reader }: Context,
  tenant_id: string,
  { groups }: DeviceQuery,
  statuses: readonly DeviceStatus[],
): Promise<number | undefined> {
  const only = groups.length === 1 && groups[0]!.conditions.length === 1 ? groups[0]!.conditions[0]! : undefined
  if (groups.length > 0 && !(only?.property === 'tags' && only.operator === 'eq')) return undefined
  const subjects = statuses.map((status) => (only ? `tag.${status}.${String(only.value)}` : `devices.${status}`))
  const rows = await reader.selectFrom('tallies').select('n').where('tenant_id', '=', tenant_id).where('subject', 'in', subjects).execute()
  return rows.reduce((sum, row) => sum + row.n, 0)
}

async function capped(context: Context, tenant_id: string, query: DeviceQuery, statuses: readonly DeviceStatus[]): Promise<number> {
  const { reader, dialect } = context
  let matching = reader
    .selectFrom('devices')
    .select('id')
    .where('tenant_id', '=', tenant_id)
    .where('status', 'in', statuses)
    .limit(most_counted)
  matching = whereGroups(matching, query.groups, columnsOf(tenant_id, dialect), dialect, true)
  const { n } = await reader
    .selectFrom(matching.as('matching'))
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}

async function gathered(context: Context, tenant_id: string, query: DeviceQuery, statuses: readonly DeviceStatus[]): Promise<DeviceRow[]> {
  const { reader, dialect } = context
  const base = reader.selectFrom('devices').selectAll().where('tenant_id', '=', tenant_id).where('status', 'in', statuses)
  return (
    whereGroups(base, query.groups, columnsOf(tenant_id, dialect), dialect, true)
      // A unary plus keeps SQLite from walking the sort index after all; PostgreSQL decides by its own figures.
      .orderBy(dialect === 'sqlite' ? sql`+${sql.ref(query.sort)}` : sql.ref(query.sort), query.order)
      .$if(query.sort === 'status', (sorted) => sorted.orderBy('last_seen', query.order))
      .orderBy('id', query.order)
      .limit(query.per_page)
      .offset(offsetOf(query))
      .execute()
  )
}

async function walked(context: Context, tenant_id: string, query: DeviceQuery, statuses: readonly DeviceStatus[]): Promise<DeviceRow[]> {
  const { reader, dialect } = context
  const depth = offsetOf(query) + query.per_page
  const walk = (status: DeviceStatus, limit: number, offset: number) =>
    whereGroups(
      reader
        .selectFrom('devices')
        .select(['id', sql.ref(query.sort).as('sort')])
        .where('tenant_id', '=', tenant_id)
        .where('status', '=', status),
      query.groups,
      columnsOf(tenant_id, dialect),
      dialect,
    )
      // All rows of one walk have the same status: by status means by what comes next, the time it was last seen.
      .orderBy(query.sort === 'status' ? 'last_seen' : query.sort, query.order)
      .orderBy('id', query.order)
      .limit(limit)
      .offset(offset)
  // Only ids are walked; the wide rows are read for the page alone.
  let ids: number[]
  if (statuses.length === 1) ids = (await walk(statuses[0]!, query.per_page, offsetOf(query)).execute()).map((row) => row.id)
  else {
    const walks = await Promise.all(statuses.map((status) => walk(status, depth, 0).execute()))
    ids = merge(walks, query).slice(offsetOf(query), depth)
  }
  if (ids.length === 0) return []
  const rows = await reader.selectFrom('devices').selectAll().where('tenant_id', '=', tenant_id).where('id', 'in', ids).execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Joins walks that are each in order. */
function merge(walks: { id: number; sort: unknown }[][], { sort, order }: DeviceQuery): number[] {
  const sign = order === 'asc' ? 1 : -1
  type Key = string | number
  return walks
    .flat()
    .toSorted((a, b) => {
      const [x, y] = [a.sort as Key, b.sort as Key]
      // Sorting is stable: rows of one status keep the order of their walk.
      return sign * (x < y ? -1 : x > y ? 1 : sort === 'status' ? 0 : a.id - b.id)
    })
    .map((row) => row.id)
}

/** Three letters make a trigram; shorter texts have none and are looked for row by row. */
function searchSqlite(column: string) {
  return (text: string) =>
    [...text].length < 3
      ? undefined
      : sql<SqlBool>`devices.id in (select rowid from device_search where device_search match ${`${column} : "${text.replaceAll('"', '""')}"`})`
}

function columnsOf(tenant_id: string, dialect: Context['dialect']): Columns {
  const text = (column: string) =>
    ({
      sql: sql.ref(`devices.${column}`),
      kind: 'text',
      ...(dialect === 'sqlite' && (searched_columns as readonly string[]).includes(column) ? { search: searchSqlite(column) } : {}),
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
    acceptable: { sql: sql`(case when devices.status = 'accepted' then 0 else 1 end)`, kind: 'flag' },
    'position.latitude': within('latitude'),
    'position.longitude': within('longitude'),
    tags: {
      sql: sql.ref('devices.tags'),
      kind: 'tags',
      tagged: (wanted: Tagged) => {
        const which = 'is' in wanted ? sql`tag = ${wanted.is}` : sql`lower(tag) like ${likeText(wanted.contains.toLowerCase())} escape '\\'`
        return sql<SqlBool>`devices.id in (select device_id from device_tags where tenant_id = ${tenant_id} and ${which})`
      },
    },
  }
}
