// The filterable properties of devices, and how each is read in both databases.
import { sql, type SqlBool } from 'kysely'
import type { Offer } from './agent-updates.ts'
import type { AllNamespaces } from './context.ts'
import { containsSql, jsonField, type Column, type Columns, type Tagged } from './filter-sql.ts'

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

/** Facts that a filter needs and no row has. */
export interface Known {
  /** Devices that may be accepted, for filters by `acceptable`: all of them unless listed. */
  readonly room?: 'all' | readonly string[] | undefined
  readonly offer?: OfferedBuild | undefined
}

export interface OfferedBuild extends Offer {
  readonly version: string
  /** Builds newer than the offered one. */
  readonly newer: readonly string[]
}

/**
 * Trigrams need three letters; shorter texts are searched row by row. They also ignore the case of letters
 * beyond ASCII, unlike every other search, so what they find is checked again.
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

/** Not accepted yet, and the namespace has room for the device. */
function acceptable(room: Known['room'] = 'all') {
  if (room.length === 0) return sql`0`
  const hasRoom = room === 'all' ? sql`1 = 1` : sql`devices.uid in (${sql.join([...room])})`
  return sql`(case when devices.status <> 'accepted' and ${hasRoom} then 1 else 0 end)`
}

/** The agent is ours and older than the offered build for its processor. */
function outdated(tenant_id: string, offer: OfferedBuild | undefined): Pick<Column, 'sql' | 'among'> {
  if (!offer || offer.arches.length === 0) return { sql: sql`0` }
  const { build, arches, version, newer } = offer
  const isOld = sql`devices.agent_ability <> '' and devices.info_arch in (${sql.join([...arches])})
    and devices.agent_build not in (${sql.join([build, ...newer])})
    and not (devices.agent_build = '' and devices.info_version = ${`hawser-${version}`})`
  // Two steps in the index of builds suffice where all are up to date.
  const onSide = (side: '<' | '>') =>
    sql`(devices.tenant_id = ${tenant_id} and devices.agent_ability <> '' and devices.agent_build ${sql.raw(side)} ${build})`
  return {
    sql: sql`(case when ${isOld} then 1 else 0 end)`,
    among: (value) =>
      value === true ? sql<SqlBool>`((${onSide('<')} or ${onSide('>')}) and ${isOld})` : undefined,
  }
}

export function columnsOf(
  tenant_id: string,
  dialect: AllNamespaces['dialect'],
  { room, offer }: Known,
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
        // A device has few tags: without the plus SQLite would look up each wanted one instead.
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
