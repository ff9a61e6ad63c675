// Lists of devices against an oracle in plain JavaScript, on both databases: whatever is asked for (status,
// filters, order, page), the rows, their order and the total are those of looking at every device. It covers
// both ways in which a page is found (see device-list.ts): gathering few fitting rows, and walking an index
// when many fit.
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { deviceStatuses, type DeviceStatus } from '@hawser/contract/devices'
import type { Condition, Group } from '@hawser/contract/filters'
import {
  listDevices,
  sorted_columns,
  usualLimits,
  type DeviceQuery,
} from '../../server/src/storage/device-list.ts'
import type { DeviceRow } from '../../server/src/storage/devices.ts'
import { databases, device, namespace, openFresh, page, unique, type Storage } from './databases.ts'
import { times } from '../harness/tier.ts'

// Real databases and processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

// Letters of both cases within and beyond ASCII, the wildcards and quotes of SQL, JSON and FTS, and two
// characters that sort one way by bytes and the other way by UTF-16 units (an emoji and a full-width tilde).
const texts = [
  'abc',
  'ABC',
  'aBcd',
  'été',
  'ÉTÉ',
  '100%',
  '100x',
  'a_c',
  'a\\c',
  `"q"`,
  `it's`,
  '😀😀😀',
  '～～～',
  'straße',
  'K-temp',
  'k-temp',
  'hawser-1',
  '',
]
const text = fc.constantFrom(...texts)
const tags = ['pier', 'Pier', 'l’Été', 'a.b', '50%', 'Öl-tank']
const moments = ['2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z']

const facts = fc.record({
  status: fc.constantFrom(...deviceStatuses),
  tags: fc.uniqueArray(fc.constantFrom(...tags), { maxLength: 3 }).map((list) => JSON.stringify(list)),
  online: fc.constantFrom<0 | 1>(0, 1),
  public_url: fc.constantFrom<0 | 1>(0, 1),
  info_id: text,
  info_pretty_name: text,
  info_version: text,
  info_arch: text,
  info_platform: text,
  remote_addr: text,
  mac: text,
  last_seen: fc.constantFrom(...moments),
  created_at: fc.constantFrom(...moments),
  status_update_at: fc.constantFrom(...moments),
  agent_build: fc.constantFrom('', 'older', 'present', 'newer', 'zzz'),
  agent_ability: fc.constantFrom('', 'self', 'package'),
  position: fc.constantFrom(
    '{"latitude":1.5,"longitude":-2}',
    '{"latitude":0,"longitude":0}',
    '{"latitude":-33.25,"longitude":151}',
  ),
})
type Facts = typeof facts extends fc.Arbitrary<infer F> ? F : never

/** Every time another device: names of accepted ones and uids are unique. */
const rowOf = (change: Facts) => device({ ...change, name: `${change.info_id}${unique('-')}` })

const offer = { build: 'present', arches: ['abc', 'ABC', 'aBcd', '100%', ''], version: '1', newer: ['newer'] }

/** What a filterable property is in a row; the fixed ones are the same for all rows. */
const properties: Record<string, (row: DeviceRow) => string | number | boolean> = {
  uid: (row) => row.uid,
  name: (row) => row.name,
  'identity.mac': (row) => row.mac,
  'info.id': (row) => row.info_id,
  'info.pretty_name': (row) => row.info_pretty_name,
  'info.version': (row) => row.info_version,
  'info.arch': (row) => row.info_arch,
  'info.platform': (row) => row.info_platform,
  public_key: (row) => row.public_key,
  tenant_id: (row) => row.tenant_id,
  status: (row) => row.status,
  remote_addr: (row) => row.remote_addr,
  last_seen: (row) => row.last_seen,
  status_update_at: (row) => row.status_update_at,
  status_updated_at: (row) => row.status_update_at,
  created_at: (row) => row.created_at,
  online: (row) => row.online === 1,
  public_url: (row) => row.public_url === 1,
  acceptable: (row) => row.status !== 'accepted',
  'agent.outdated': (row) =>
    row.agent_ability !== '' &&
    offer.arches.includes(row.info_arch) &&
    !['present', 'newer'].includes(row.agent_build) &&
    !(row.agent_build === '' && row.info_version === 'hawser-1'),
  'position.latitude': (row) => (JSON.parse(row.position) as { latitude: number }).latitude,
  'position.longitude': (row) => (JSON.parse(row.position) as { longitude: number }).longitude,
}

const equality = fc.constantFrom('eq', 'ne')
const order = fc.constantFrom('eq', 'ne', 'gt', 'lt')
const textProperty = fc.constantFrom(
  'name',
  'identity.mac',
  'info.id',
  'info.pretty_name',
  'info.arch',
  'remote_addr',
  'public_key',
)
const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.record({ property: textProperty, operator: fc.constantFrom('contains', 'eq', 'ne'), value: text }),
  fc.record({
    property: fc.constantFrom('status'),
    operator: equality,
    value: fc.constantFrom<string>(...deviceStatuses, 'none'),
  }),
  fc.record({
    property: fc.constantFrom('last_seen', 'created_at', 'status_updated_at'),
    operator: order,
    value: fc.constantFrom(...moments),
  }),
  fc.record({
    property: fc.constantFrom('online', 'public_url', 'acceptable', 'agent.outdated'),
    operator: equality,
    value: fc.boolean(),
  }),
  fc.record({
    property: fc.constantFrom('position.latitude', 'position.longitude'),
    operator: order,
    value: fc.constantFrom(0, 1, 1.5, -2, 151, 1e12),
  }),
  fc.record({
    property: fc.constant('tags'),
    operator: fc.constantFrom('contains', 'eq', 'ne'),
    value: fc.constantFrom(...tags, 'PIER', '%', 'öl', 'tank', ''),
  }),
  fc.record({
    property: fc.constant('tags'),
    operator: fc.constant('contains' as const),
    value: fc.uniqueArray(fc.constantFrom(...tags), { minLength: 1, maxLength: 3 }),
  }),
)
const group: fc.Arbitrary<Group> = fc.record({
  join: fc.constantFrom('and', 'or'),
  conditions: fc.oneof(
    { weight: 9, arbitrary: fc.array(condition, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(condition, { minLength: 9, maxLength: 12 }) },
  ),
})
const query: fc.Arbitrary<DeviceQuery> = fc.record({
  status: fc.option(fc.constantFrom<DeviceStatus>(...deviceStatuses), { nil: undefined }),
  groups: fc.array(group, { maxLength: 2 }),
  offer: fc.constant(offer),
  sort: fc.constantFrom(...sorted_columns, 'status' as const),
  order: fc.constantFrom('asc', 'desc'),
  page: fc.integer({ min: 1, max: 4 }),
  per_page: fc.constantFrom(1, 7, 100),
})

/** Letter case counts for nothing, as far as ASCII goes. */
const folded = (value: string): string => value.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())

function fits(row: DeviceRow, { property, operator, value }: Condition): boolean {
  if (property === 'tags') {
    const own = JSON.parse(row.tags) as string[]
    if (operator === 'eq') return own.includes(String(value))
    if (operator === 'ne') return !own.includes(String(value))
    return Array.isArray(value)
      ? value.every((tag: string) => own.includes(tag))
      : own.some((tag) => folded(tag).includes(folded(String(value))))
  }
  const found = properties[property]!(row)
  if (operator === 'contains') return folded(String(found)).includes(folded(String(value)))
  if (operator === 'eq') return found === value
  if (operator === 'ne') return found !== value
  return operator === 'gt' ? found > value : found < value
}

function expected(rows: readonly DeviceRow[], { status, groups, sort, order, page, per_page }: DeviceQuery) {
  const fitting = rows.filter(
    (row) =>
      (status === undefined || row.status === status) &&
      groups.every(({ join, conditions }) =>
        join === 'and' ? conditions.every((one) => fits(row, one)) : conditions.some((one) => fits(row, one)),
      ),
  )
  const keys = (row: DeviceRow) => (sort === 'status' ? [row.status, row.last_seen] : [row[sort]])
  const sorted = fitting.toSorted((a, b) => {
    const [x, y] = [keys(a), keys(b)]
    for (const [index, key] of x.entries()) {
      const other = y[index]!
      const difference =
        typeof key === 'number'
          ? key - Number(other)
          : Buffer.compare(Buffer.from(key), Buffer.from(String(other)))
      if (difference !== 0) return difference
    }
    return a.id - b.id
  })
  const ordered = order === 'asc' ? sorted : sorted.toReversed()
  return {
    total: fitting.length,
    uids: ordered.slice((page - 1) * per_page, page * per_page).map((row) => row.uid),
  }
}

async function everyDevice({ opened }: Storage, tenant_id: string): Promise<DeviceRow[]> {
  return opened.db.selectFrom('devices').selectAll().where('tenant_id', '=', tenant_id).execute()
}

describe.each(databases)('$name', (database) => {
  let storage: Storage
  beforeAll(async () => {
    storage = await openFresh(database)
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  async function check(tenant_id: string, rows: readonly DeviceRow[], query: DeviceQuery): Promise<void> {
    const found = await storage.stores.of(tenant_id).devices.list(query)
    expect({ total: found.total, uids: found.items.map((row) => row.uid) }).toEqual(expected(rows, query))
  }

  /**
   * The same as if these few were very many: totals stop early, walks end early, and the page is the same all
   * the same.
   */
  async function checkAsLarge(
    tenant_id: string,
    rows: readonly DeviceRow[],
    query: DeviceQuery,
  ): Promise<void> {
    const { db, reader, name } = storage.opened
    const limits = { large: 0, counted_in_large: 3, most_gathered: 1, walked_rows: 4, named_tags: 1 }
    const found = await listDevices({ db, reader, dialect: name, locks: false }, tenant_id, query, limits)
    const whole = expected(rows, query)
    expect(found.items.map((row) => row.uid)).toEqual(whole.uids)
    expect([whole.total, Math.min(whole.total, limits.counted_in_large)]).toContain(found.total)
  }

  test('any question about a few devices is answered as by looking at each', async () => {
    const property = fc.asyncProperty(
      fc.array(facts, { maxLength: 25 }),
      fc.array(query, { minLength: 10, maxLength: 30 }),
      async (made, asked) => {
        const [{ tenant_id }, other] = [await namespace(storage), await namespace(storage)]
        await storage.stores.transaction(async (inside) => {
          for (const one of made) {
            await inside.of(tenant_id).devices.insert(rowOf(one))
            // The same in another namespace, which must not show.
            await inside.of(other.tenant_id).devices.insert(rowOf(one))
          }
        })
        const rows = await everyDevice(storage, tenant_id)
        for (const one of asked) {
          await check(tenant_id, rows, one)
          await checkAsLarge(tenant_id, rows, one)
        }
      },
    )
    await fc.assert(property, { numRuns: times(8, 25) })
  }, 120_000)

  test('a text that is in a tag of each device is asked in a few statements, however often', async () => {
    const { tenant_id, here } = await namespace(storage)
    await storage.stores.transaction(async (inside) => {
      for (let serial = 1000; serial < 1300; serial++)
        await inside
          .of(tenant_id)
          .devices.insert(
            device({ uid: unique('serial'), name: `d${serial}`, tags: JSON.stringify([`SN-${serial}`]) }),
          )
    })
    const statements = () => storage.opened.figures.list.durations.counts.reduce((sum, n) => sum + n, 0)
    const before = statements()
    const serial = { property: 'tags', operator: 'contains', value: 'sn-1' } as const
    const asked = { sort: 'name', order: 'asc', ...page(10) } as const
    for (const [times, value, total] of [
      [1, 'sn-1', 300],
      [32, 'sn-1', 300],
      [1, 'sn-12', 100],
      [1, '', 300],
      [1, 'sn-2', 0],
    ] as const)
      for (const join of ['and', 'or'] as const) {
        const conditions = Array.from({ length: times }, () => ({ ...serial, value }))
        expect((await here.devices.list({ groups: [{ join, conditions }], ...asked })).total).toBe(total)
      }
    expect(statements() - before).toBeLessThan(100)
  })

  test('pages of many fitting devices are those of the whole list', async () => {
    const { tenant_id } = await namespace(storage)
    const made = fc
      .sample(facts, { numRuns: 1300, seed: 7 })
      .map((one, index) => rowOf({ ...one, info_id: `common ${index % 13}` }))
    await storage.stores.transaction(async (inside) => {
      for (const row of made) await inside.of(tenant_id).devices.insert(row)
    })
    const rows = await everyDevice(storage, tenant_id)
    const many: Group[] = [
      { join: 'and', conditions: [{ property: 'info.id', operator: 'contains', value: 'COMMON' }] },
    ]
    for (const groups of [[], many])
      for (const sort of [...sorted_columns, 'status'] as const)
        for (const [order, slice] of [
          ['asc', page(100, 14)],
          ['desc', page(50, 2)],
        ] as const) {
          await check(tenant_id, rows, { groups, sort, order, ...slice })
          await check(tenant_id, rows, { groups, sort, order, ...slice, status: 'accepted' })
        }
  }, 120_000)

  test('beyond what is counted, the total of a filtered list is that number, and its pages go on', async () => {
    const { tenant_id, here } = await namespace(storage)
    await here.devices.insert(device({ uid: unique('many'), name: 'many' }))
    // Doubled, then copied: one by one would take a minute, and so would the counters of very many at once.
    const { db } = storage.opened
    const columns = Object.keys(device()) as Exclude<keyof DeviceRow, 'id'>[]
    for (let count = 1, copies = 0; count <= usualLimits.large; count += Math.min(count, 512), copies++)
      await db
        .insertInto('devices')
        .columns([...columns, 'tenant_id'])
        .expression((eb) =>
          eb
            .selectFrom('devices')
            .select([
              ...columns.map((column) =>
                column === 'uid' ? sql<string>`uid || ${`+${copies}`}`.as('uid') : column,
              ),
              'tenant_id',
            ])
            .where('tenant_id', '=', tenant_id)
            .orderBy('id')
            .limit(512),
        )
        .execute()
    const groups: Group[] = [
      { join: 'and', conditions: [{ property: 'name', operator: 'contains', value: 'many' }] },
    ]
    const last = await here.devices.list({ groups, sort: 'uid', order: 'asc', ...page(100, 101) })
    expect([last.total, last.items.length]).toEqual([usualLimits.counted_in_large, 100])
    const all = await here.devices.list({ groups: [], sort: 'uid', order: 'asc', ...page(1) })
    expect(all.total).toBeGreaterThan(usualLimits.large)
  }, 120_000)
})
