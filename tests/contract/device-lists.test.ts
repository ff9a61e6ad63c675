// Get devices as a list: pages, orders and filters, on both databases, each compared with a plain evaluation
// in JavaScript of the same question over the same devices. What a client sees must not depend on the
// database.
import fc from 'fast-check'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { deviceSorts, deviceStatuses, type Device, type DeviceStatus } from '@hawser/contract/devices'
import { sample } from '@hawser/contract/examples'
import { encodeFilter, type FilterElement } from '@hawser/contract/filters'
import { bothDatabases, sharedPlace, type Place } from '../harness/place.ts'
import { times } from '../harness/tier.ts'

// Hundreds of lists take a while on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

type Property = Extract<FilterElement, { type: 'property' }>['params']
const condition = (name: string, operator: Property['operator'], value: unknown): FilterElement => ({
  type: 'property',
  params: { name, operator, value },
})
const join = (name: 'and' | 'or'): FilterElement => ({ type: 'operator', params: { name } })

// ---- the devices: sixty of them, with everything that a query could stumble over ----

const odd = [
  '100% sure',
  'under_score',
  'back\\slash',
  `"double" 'single'`,
  'star*',
  'Ærøskøbing ÉCLAIR',
  '日本語 港',
  'emoji 🚢',
  'ｆull width',
  'NEAR(a b)',
  '',
  'ab',
]
const pick = <T>(values: readonly T[], number: number): T => values[number % values.length]!

async function fill(place: Place): Promise<void> {
  const devices = place.rooms.stores.of(sample.tenant).devices
  for (const uid of [sample.device, sample.pendingDevice]) await devices.remove(uid)
  const start = place.clock.now() - 40 * 86_400_000
  const iso = (ms: number): string => new Date(ms).toISOString()
  for (let number = 0; number < 60; number++) {
    const online = number % 4 === 0
    await devices.insert({
      uid: (number * 7919).toString(16).padStart(8, '0').repeat(8),
      name: `${pick(['crane', 'winch', 'tug_boat', 'x'], number)}-${(number * 37) % 60}`,
      mac: `00:00:5e:00:${(number % 7).toString(16).padStart(2, '0')}:${((number * 13) % 60).toString(16).padStart(2, '0')}`,
      public_key: `key ${number}`,
      info_id: pick(['debian', 'Ubuntu', 'alpine', ''], number),
      info_pretty_name: pick(odd, number),
      info_version: `v0.${number % 3}.${number % 10}`,
      info_arch: pick(['amd64', 'arm64', 'ARM'], number),
      info_platform: pick(['native', 'docker'], number),
      status: pick(deviceStatuses, number),
      status_update_at: iso(start + ((number * 17) % 60) * 60_000),
      created_at: iso(start + number * 1000),
      remote_addr: `192.0.2.${(number * 11) % 25}`,
      position: JSON.stringify({ latitude: (number % 9) * 10.5 - 40, longitude: -(number % 5) }),
      public_url: number % 3 === 0 ? 1 : 0,
      public_url_address: '',
      tags: JSON.stringify(
        [
          ['pier'],
          ['pier', 'Nördlich'],
          [],
          ['per%cent', 'under_score'],
          ['back\\slash', `"quoted"`, 'PIER-2'],
        ][number % 5],
      ),
      // Those that are online stay so for as long as the tests take.
      last_seen: iso(
        online ? place.clock.now() + 3_600_000 + number : start + ((number * 23) % 60) * 3_600_000,
      ),
      online: online ? 1 : 0,
    })
  }
}

const everything = async (place: Place): Promise<Device[]> =>
  (await place.observer.devices.list({ query: { per_page: 100 } })).body

/** All pages of a list. */
async function pages(
  place: Place,
  query: NonNullable<Parameters<Place['observer']['devices']['list']>[0]>['query'],
  per_page: number,
) {
  const found: Device[] = []
  for (let page = 1; ; page++) {
    const { body, total } = await place.observer.devices.list({ query: { ...query, page, per_page } })
    found.push(...body)
    if (body.length < per_page) return { found, total }
  }
}

// ---- the same questions in JavaScript ----

const valueOf = (device: Device, name: string): unknown =>
  name.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], device)

const fold = (text: unknown): string => String(text).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
const has = (actual: unknown, value: unknown): boolean =>
  Array.isArray(actual) ? actual.includes(value) : actual === value

const operators: Record<Property['operator'], (actual: unknown, value: unknown) => boolean> = {
  contains(actual, value) {
    if (!Array.isArray(actual)) return fold(actual).includes(fold(value))
    return Array.isArray(value)
      ? value.every((tag) => actual.includes(tag))
      : actual.some((tag) => fold(tag).includes(fold(value)))
  },
  bool: (actual, value) => String(actual) === String(value),
  eq: has,
  ne: (actual, value) => !has(actual, value),
  gt: (actual, value) => Number(actual) > Number(value),
  lt: (actual, value) => Number(actual) < Number(value),
}

function holds(device: Device, { name, operator, value }: Property): boolean {
  const [actual, asked] = [valueOf(device, name), value]
  const moment = /_at$|_seen$/.test(name)
  return moment
    ? operators[operator](Date.parse(String(actual)), Date.parse(String(asked)))
    : operators[operator](actual, asked)
}

function passes(device: Device, elements: readonly FilterElement[]): boolean {
  let open: boolean[] = []
  let all = true
  const close = (and: boolean): void => {
    if (open.length > 0) all &&= and ? open.every(Boolean) : open.some(Boolean)
    open = []
  }
  for (const element of elements) {
    if (element.type === 'property') open.push(holds(device, element.params))
    else close(element.params.name === 'and')
  }
  close(false)
  return all
}

const uids = (devices: readonly Device[]): string[] => devices.map((device) => device.uid)
const bytes = (a: unknown, b: unknown): number =>
  Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))

describe.each(bothDatabases)('on %s', (_, options) => {
  const place = sharedPlace(options)
  let devices: Device[]

  beforeAll(async () => {
    await fill(place)
    devices = await everything(place)
  })

  test('without a status the list has the devices of every status', () => {
    expect(devices).toHaveLength(60)
    expect(new Set(devices.map(({ status }) => status))).toEqual(new Set(deviceStatuses))
  })

  describe('pages', () => {
    test.each([1, 7, 10, 60, 100])(
      'of %i cut the list without gaps or repeats, and the total is the same on each',
      async (per_page) => {
        const { found, total } = await pages(place, {}, per_page)
        expect(uids(found)).toEqual(uids(devices))
        expect(total).toBe(60)
      },
    )

    test('without being asked for they are the first ten, last seen first', async () => {
      const { body, headers } = await place.observer.devices.list()
      expect(uids(body)).toEqual(
        uids(devices.toSorted((a, b) => bytes(b.last_seen, a.last_seen)).slice(0, 10)),
      )
      expect(headers.get('x-total-count')).toBe('60')
    })

    test('past the end are empty and still say how many there are', async () => {
      for (const page of [7, 8, 1000, 2_000_000_000]) {
        const { body, total } = await place.observer.devices.list({ query: { page } })
        expect([body, total]).toEqual([[], 60])
      }
    })
  })

  describe.each(deviceSorts)('sorted by %s', (sort_by) => {
    const key = (device: Device): string => {
      const value = valueOf(device, sort_by)
      return typeof value === 'boolean' ? String(Number(value)) : String(value)
    }
    test.each(['asc', 'desc'] as const)('%s', async (order_by) => {
      for (const status of [undefined, ...deviceStatuses]) {
        const wanted = devices.filter((device) => status === undefined || device.status === status)
        const { found, total } = await pages(place, { sort_by, order_by, status }, 9)
        const keys = wanted.map(key).toSorted(order_by === 'asc' ? bytes : (a, b) => bytes(b, a))
        expect(found.map(key)).toEqual(keys)
        expect(uids(found).toSorted()).toEqual(uids(wanted).toSorted())
        expect(total).toBe(wanted.length)
      }
    })
  })

  async function compare(
    elements: readonly FilterElement[],
    status?: DeviceStatus,
    per_page = 100,
  ): Promise<number> {
    const wanted = devices.filter(
      (device) => passes(device, elements) && (status === undefined || device.status === status),
    )
    const { found, total } = await pages(place, { filter: encodeFilter(elements), status }, per_page)
    expect(uids(found).toSorted(), JSON.stringify(elements)).toEqual(uids(wanted).toSorted())
    expect(total).toBe(wanted.length)
    return total
  }

  describe('filtered', () => {
    test.each<[string, Property['operator'], unknown, number]>([
      ['name', 'eq', 'crane-0', 1],
      ['name', 'eq', 'CRANE-0', 0],
      ['name', 'ne', 'crane-0', 59],
      ['name', 'contains', 'CRANE', 15],
      ['name', 'contains', 'x', 15],
      ['name', 'contains', '', 60],
      ['name', 'contains', 'tug_b', 15],
      ['name', 'contains', 'tug%', 0],
      ['name', 'contains', '_', 15],
      ['info.id', 'eq', 'Ubuntu', 15],
      ['info.id', 'contains', 'UBU', 15],
      ['info.pretty_name', 'contains', '100%', 5],
      ['info.pretty_name', 'contains', '0% s', 5],
      ['info.pretty_name', 'contains', '%', 5],
      ['info.pretty_name', 'contains', 'r_sc', 5],
      ['info.pretty_name', 'contains', 'rxsc', 0],
      ['info.pretty_name', 'contains', 'k\\s', 5],
      ['info.pretty_name', 'contains', '\\', 5],
      ['info.pretty_name', 'contains', '"double"', 5],
      ['info.pretty_name', 'contains', `'`, 5],
      ['info.pretty_name', 'contains', 'star*', 5],
      ['info.pretty_name', 'contains', '*', 5],
      ['info.pretty_name', 'contains', 'NEAR(', 5],
      ['info.pretty_name', 'contains', '日本', 5],
      ['info.pretty_name', 'contains', '日本語 港', 5],
      ['info.pretty_name', 'contains', '🚢', 5],
      ['info.pretty_name', 'contains', 'ji 🚢', 5],
      ['info.pretty_name', 'contains', 'ÉCLAIR', 5],
      ['info.pretty_name', 'contains', 'Ær', 5],
      ['info.version', 'eq', 'v0.1.1', 2],
      ['info.arch', 'contains', 'arm', 40],
      ['info.platform', 'eq', 'docker', 30],
      ['identity.mac', 'contains', '00:5E:00:03', 9],
      ['remote_addr', 'contains', '192.0.2.1', 26],
      ['public_key', 'eq', 'key 7', 1],
      ['uid', 'eq', '00001eef'.repeat(8), 1],
      ['tenant_id', 'eq', sample.tenant, 60],
      ['tenant_id', 'eq', sample.otherTenant, 0],
      ['namespace', 'eq', sample.namespace, 60],
      ['namespace', 'contains', 'HARB', 60],
      ['status', 'eq', 'pending', 12],
      ['status', 'ne', 'pending', 48],
      ['online', 'eq', true, 15],
      ['online', 'bool', 'false', 45],
      ['online', 'ne', true, 45],
      ['public_url', 'eq', true, 20],
      ['acceptable', 'eq', false, 12],
      ['position.latitude', 'gt', 0, 32],
      ['position.latitude', 'eq', -29.5, 7],
      ['position.longitude', 'lt', '-3', 12],
      ['tags', 'eq', 'pier', 24],
      ['tags', 'eq', 'PIER', 0],
      ['tags', 'ne', 'pier', 36],
      ['tags', 'contains', 'PIER', 36],
      ['tags', 'contains', 'pi', 36],
      ['tags', 'contains', '%', 12],
      ['tags', 'contains', 'r_s', 12],
      ['tags', 'contains', 'rxs', 0],
      ['tags', 'contains', '\\', 12],
      ['tags', 'contains', '"', 12],
      ['tags', 'contains', 'Nördlich', 12],
      ['tags', 'contains', 'nöRD', 12],
      ['tags', 'contains', ['pier', 'Nördlich'], 12],
      ['tags', 'contains', ['Nördlich', 'under_score'], 0],
      ['tags', 'contains', ['pier'], 24],
    ])('%s %s %j: %i devices', async (name, operator, value, count) => {
      expect(await compare([condition(name, operator, value)])).toBe(count)
    })

    test('by moments, before, after and at', async () => {
      for (const name of ['created_at', 'last_seen', 'status_update_at', 'status_updated_at']) {
        const moments = devices.map((device) => String(valueOf(device, name))).toSorted()
        const middle = moments[30]!
        const above = await compare([condition(name, 'gt', middle)])
        const below = await compare([condition(name, 'lt', middle)])
        const at = await compare([condition(name, 'eq', middle)])
        expect(above + below + at).toBe(60)
        expect(at).toBeGreaterThan(0)
        expect(await compare([condition(name, 'ne', middle)])).toBe(60 - at)
        // Seconds since 1970 are the same moment, when it is a whole second.
        const seconds = Math.floor(Date.parse(middle) / 1000)
        const bySeconds = await place.observer.devices.list({
          query: { filter: encodeFilter([condition(name, 'gt', seconds)]) },
        })
        expect(bySeconds.total).toBe(
          devices.filter((device) => Date.parse(String(valueOf(device, name))) > seconds * 1000).length,
        )
      }
    })

    test('by groups: conditions up to an operator, joined by it; the rest by or; groups by and', async () => {
      const [crane, winch] = [condition('name', 'contains', 'crane'), condition('name', 'contains', 'winch')]
      const [online, debian] = [condition('online', 'eq', true), condition('info.id', 'eq', 'debian')]
      expect(await compare([crane, winch])).toBe(30)
      expect(await compare([crane, winch, join('or')])).toBe(30)
      expect(await compare([crane, winch, join('and')])).toBe(0)
      expect(await compare([crane, debian, join('and')])).toBe(15)
      expect(await compare([crane, winch, join('or'), online, join('and')])).toBe(15)
      expect(await compare([crane, winch, join('or'), online, debian])).toBe(15)
      expect(await compare([crane, join('or'), winch, join('or')])).toBe(0)
      expect(await compare([join('and'), crane, join('and'), join('or')])).toBe(15)
      expect(await compare([])).toBe(60)
    })

    test('by acceptable as it is shown, with and without room', async () => {
      const accepted = devices.filter(({ status }) => status === 'accepted').length
      const shown = async (value: boolean) =>
        (
          await place.observer.devices.list({
            query: { per_page: 100, filter: encodeFilter([condition('acceptable', 'eq', value)]) },
          })
        ).body
      for (const [max_devices, count] of [
        [accepted + 1, 60 - accepted],
        [accepted, 0],
        [-1, 60 - accepted],
      ] as const) {
        await place.rooms.stores.namespaces.save(sample.tenant, { max_devices })
        const [can, cannot] = [await shown(true), await shown(false)]
        expect([can.length, cannot.length]).toEqual([count, 60 - count])
        expect([
          ...can.map(({ acceptable }) => acceptable),
          ...cannot.map(({ acceptable }) => !acceptable),
        ]).not.toContain(false)
      }
    })

    test('together with a status and pages', async () => {
      for (const status of deviceStatuses)
        for (const elements of [
          [condition('tags', 'eq', 'pier')],
          [condition('name', 'contains', 'cra')],
          [condition('online', 'eq', true)],
        ])
          await compare(elements, status, 2)
    })

    test('in every order', async () => {
      const elements = [condition('info.pretty_name', 'contains', 'e')]
      const wanted = devices.filter((device) => passes(device, elements))
      for (const sort_by of deviceSorts) {
        const { found } = await pages(place, { filter: encodeFilter(elements), sort_by, order_by: 'asc' }, 8)
        const key = (device: Device) =>
          sort_by === 'online' ? String(Number(device.online)) : String(valueOf(device, sort_by))
        expect(found.map(key)).toEqual(wanted.map(key).toSorted(bytes))
      }
    })

    test('any filter gives what JavaScript gives', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(element(devices), { maxLength: 6 }),
          fc.option(fc.constantFrom(...deviceStatuses)),
          async (elements, status) => {
            await compare(elements, status ?? undefined)
          },
        ),
        { numRuns: times(25, 250) },
      )
    })
  })
})

/**
 * Any element of a filter that is well formed, with values that some device has, has in part, or does not
 * have.
 */
function element(devices: readonly Device[]): fc.Arbitrary<FilterElement> {
  const some = fc.constantFrom(...devices)
  const special = fc.string({
    unit: fc.constantFrom('%', '_', '\\', '"', "'", '*', '-', ':', ' ', 'a', 'É', '語', '🚢', '(', '^', '{'),
    maxLength: 4,
  })
  const part = (text: string) =>
    fc
      .tuple(
        fc.nat({ max: text.length }),
        fc.nat({ max: text.length }),
        fc.constantFrom('same', 'upper', 'lower'),
      )
      .map(([a, b, letters]) => {
        const cut = text.slice(Math.min(a, b), Math.max(a, b)).toWellFormed().replaceAll('\ufffd', '')
        return letters === 'upper' ? cut.toUpperCase() : letters === 'lower' ? cut.toLowerCase() : cut
      })
  const texts = [
    'name',
    'identity.mac',
    'info.id',
    'info.pretty_name',
    'info.version',
    'info.arch',
    'info.platform',
    'remote_addr',
    'status',
    'uid',
    'public_key',
  ]
  const textual = fc.tuple(fc.constantFrom(...texts), some).chain(([name, device]) => {
    const actual = String(valueOf(device, name))
    return fc.oneof(
      fc
        .tuple(fc.constantFrom('eq' as const, 'ne' as const), fc.oneof(fc.constant(actual), special))
        .map(([operator, value]) => condition(name, operator, value)),
      fc.oneof(part(actual), special).map((value) => condition(name, 'contains', value)),
    )
  })
  const tags = [...new Set(devices.flatMap((device) => device.tags)), 'nowhere']
  const tagged = fc.oneof(
    fc
      .tuple(fc.constantFrom('eq' as const, 'ne' as const), fc.constantFrom(...tags))
      .map(([operator, value]) => condition('tags', operator, value)),
    fc
      .constantFrom(...tags)
      .chain(part)
      .map((value) => condition('tags', 'contains', value)),
    fc
      .array(fc.constantFrom(...tags), { minLength: 1, maxLength: 3 })
      .map((value) => condition('tags', 'contains', value)),
  )
  const flags = fc
    .tuple(
      fc.constantFrom('online', 'public_url', 'acceptable'),
      fc.constantFrom('eq' as const, 'ne' as const, 'bool' as const),
      fc.boolean(),
    )
    .map(([name, operator, value]) => condition(name, operator, value))
  const compared = fc.constantFrom('eq' as const, 'ne' as const, 'gt' as const, 'lt' as const)
  const moments = fc
    .tuple(fc.constantFrom('last_seen', 'created_at', 'status_update_at'), compared, some)
    .map(([name, operator, device]) => condition(name, operator, valueOf(device, name)))
  const numbers = fc
    .tuple(fc.constantFrom('position.latitude', 'position.longitude'), compared, some)
    .map(([name, operator, device]) => condition(name, operator, valueOf(device, name)))
  const joined = fc.constantFrom('and' as const, 'or' as const).map(join)
  return fc.oneof(textual, tagged, flags, moments, numbers, joined)
}

describe('refused with 400', () => {
  const place = sharedPlace()
  const list = (query: Record<string, string>) =>
    fetch(`${place.url}/api/devices?${new URLSearchParams(query).toString()}`, authorized())
  const authorized = () => ({ headers: { 'x-api-key': sample.apiKey } })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')

  test.each([
    [{ page: '0' }, 'page'],
    [{ page: '-1' }, 'page'],
    [{ page: '1.5' }, 'page'],
    [{ page: 'two' }, 'page'],
    [{ page: '' }, 'page'],
    [{ page: '2000000001' }, 'page'],
    [{ per_page: '0' }, 'per_page'],
    [{ per_page: '101' }, 'per_page'],
    [{ per_page: '1e1' }, 'per_page'],
    [{ sort_by: 'constructor' }, 'sort_by'],
    [{ sort_by: 'tags' }, 'sort_by'],
    [{ sort_by: 'last_seen; drop table devices' }, 'sort_by'],
    [{ order_by: 'up' }, 'order_by'],
    [{ order_by: 'ASC' }, 'order_by'],
    [{ status: 'online' }, 'status'],
    [{ status: 'accept' }, 'status'],
    [{ filter: '!' }, 'filter'],
    [{ filter: base64('nonsense') }, 'filter'],
    [{ filter: base64('{}') }, 'filter'],
    [{ filter: base64('[{"type":"group","params":{}}]') }, 'filter'],
    [
      { filter: base64('[{"type":"property","params":{"name":"password","operator":"eq","value":"x"}}]') },
      'filter',
    ],
    [
      { filter: base64('[{"type":"property","params":{"name":"name","operator":"like","value":"x"}}]') },
      'filter',
    ],
    [
      { filter: base64('[{"type":"property","params":{"name":"name","operator":"eq","value":1}}]') },
      'filter',
    ],
    [
      { filter: base64('[{"type":"property","params":{"name":"online","operator":"eq","value":"maybe"}}]') },
      'filter',
    ],
    [
      {
        filter: base64(
          '[{"type":"property","params":{"name":"last_seen","operator":"gt","value":"yesterday"}}]',
        ),
      },
      'filter',
    ],
    [
      { filter: base64('[{"type":"property","params":{"name":"name","operator":"gt","value":"a"}}]') },
      'filter',
    ],
    [{ filter: base64('[{"type":"operator","params":{"name":"xor"}}]') }, 'filter'],
  ])('%j, with a message that names %s', async (query, field) => {
    const response = await list(query)
    expect(response.status).toBe(400)
    expect(((await response.json()) as { message: string }).message).toMatch(new RegExp(`^${field}: `))
  })

  test('the limits themselves are not refused', async () => {
    for (const query of [
      { page: '1', per_page: '1' },
      { per_page: '100' },
      { page: '2000000000' },
      { filter: '' },
    ])
      expect((await list(query as Record<string, string>)).status).toBe(200)
  })

  test('a url-safe filter, and one without padding, are read like a standard one', async () => {
    const standard = encodeFilter([
      condition('name', 'contains', 'crane-1'),
      condition('name', 'contains', '>>>???'),
    ])
    for (const filter of [
      standard,
      standard.replaceAll('+', '-').replaceAll('/', '_'),
      standard.replace(/=+$/, ''),
    ]) {
      const response = await list({ filter })
      expect(((await response.json()) as Device[]).map(({ uid }) => uid)).toEqual([sample.device])
    }
  })
})
