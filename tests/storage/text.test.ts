// Texts and numbers mean the same on both databases: they come back as they went in, sort by their bytes, and
// are compared in filters without either database knowing better.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Condition } from '@hawser/contract/filters'
import type { Stores } from '../../server/src/storage/stores.ts'
import {
  apiKey,
  databases,
  device,
  firewallRule,
  namespace,
  now,
  openFresh,
  page,
  publicKey,
  session,
  unique,
  user,
  type Storage,
} from './databases.ts'
import { times } from '../harness/tier.ts'

// Real databases and processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

const awkward = [
  `it's "quoted" \`thrice\``,
  `'; drop table users; --`,
  '%_\\ and ? and $1 and :name and {"json": true}',
  'line\nbreak\r\n\ttab',
  'Ünïcödé, 日本語, العربية, 🚢⚓️, e\u0301 is not é',
  ' blanks at both ends ',
  '\u0001\u001f\u007f\u0080\ufeff\uffff',
]

/** From the first to the last by the bytes of UTF-8; most other orders would put them otherwise. */
const byBytes = ['', ' ', '-', '10', '9', 'A', 'B', 'Z', '_', 'a', 'aa', 'b', 'z', 'É', 'é', '～', '😀']

describe.each(databases)('$name', (database) => {
  let storage: Storage
  let stores: Stores
  beforeAll(async () => {
    storage = await openFresh(database)
    stores = storage.stores
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test.each(awkward)('%j comes back as it went in, in every store', async (text) => {
    const { tenant_id, here } = await namespace(storage)
    const row = user({ name: text, recovery_email: text })
    await stores.users.insert(row)
    expect(await stores.users.find(row.id)).toEqual(row)
    await stores.namespaces.save(tenant_id, { connection_announcement: text })
    expect((await stores.namespaces.find(tenant_id))?.connection_announcement).toBe(text)
    const one = device({ info_pretty_name: text, public_key: text, tags: JSON.stringify([text]) })
    await here.devices.insert(one)
    expect(await here.devices.find(one.uid)).toMatchObject(one)
    expect(await here.devices.tags()).toEqual([text])
    const live = session(one.uid, { username: text })
    await here.sessions.insert(live)
    expect((await here.sessions.find(live.uid))?.username).toBe(text)
    await here.publicKeys.insert(publicKey(text, { filter: JSON.stringify({ hostname: text }) }))
    const filter = [
      { join: 'and', conditions: [{ property: 'filter.hostname', operator: 'eq', value: text }] },
    ] as const
    expect((await here.publicKeys.list(filter, page())).items.map((key) => key.fingerprint)).toEqual([text])
    const id = await here.firewall.insert(firewallRule({ username: text }))
    expect((await here.firewall.find(id))?.username).toBe(text)
    await here.apiKeys.insert(apiKey(row.id, { name: text }))
    expect((await here.apiKeys.find(text))?.name).toBe(text)
  })

  test('any text comes back as it went in, in rows and in filters', async () => {
    const property = fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1 }), async (drawn) => {
      const text = drawn.replaceAll('\0', '0')
      const { here } = await namespace(storage)
      await here.publicKeys.insert(publicKey('1', { name: text }))
      await here.publicKeys.insert(publicKey('2', { name: `${text}x` }))
      const found = async (operator: Condition['operator'], value: string) =>
        (
          await here.publicKeys.list(
            [{ join: 'and', conditions: [{ property: 'name', operator, value }] }],
            page(),
          )
        ).items.map((row) => row.name)
      expect(await found('eq', text)).toEqual([text])
      expect(await found('ne', text)).toEqual([`${text}x`])
      expect(await found('contains', text)).toEqual([text, `${text}x`])
    })
    await fc.assert(property, { numRuns: times(20, 60) })
  }, 60_000)

  test('the character that one of the databases cannot keep does no harm', async () => {
    const { here } = await namespace(storage)
    const one = device({ info_pretty_name: 'a\0b' })
    await here.devices.insert(one)
    expect((await here.devices.find(one.uid))?.info_pretty_name).toMatch(/^a[\0\ufffd]b$/)
    expect(await here.devices.find('a\0b')).toBeUndefined()
    expect(await stores.users.findByIdentifier('a\0b')).toBeUndefined()
    for (const property of ['name', 'info.pretty_name', 'tags']) {
      const groups = [
        { join: 'and', conditions: [{ property, operator: 'contains', value: 'no\0thing' }] },
      ] as const
      expect((await here.devices.list({ groups, sort: 'name', order: 'asc', ...page() })).total).toBe(0)
    }
  })

  test('API keys, users, namespaces and devices sort by bytes', async () => {
    const { here, owner } = await namespace(storage)
    for (const name of byBytes.toReversed()) await here.apiKeys.insert(apiKey(owner.id, { name }))
    const ascending = (await here.apiKeys.list(page(), 'name', 'asc')).items.map((row) => row.name)
    const descending = (await here.apiKeys.list(page(), 'name', 'desc')).items.map((row) => row.name)
    expect(ascending).toEqual(byBytes)
    expect(descending).toEqual(byBytes.toReversed())

    const mark = unique('sorted')
    for (const name of byBytes.toReversed()) {
      await stores.users.insert(user({ username: `${mark}${name}` }))
      await namespace(storage, `${mark}${name}`)
    }
    const expected = byBytes.map((name) => `${mark}${name}`)
    expect(
      (await stores.users.list()).map((row) => row.username).filter((name) => name.startsWith(mark)),
    ).toEqual(expected)
    expect(
      (await stores.namespaces.all()).map((row) => row.name).filter((name) => name.startsWith(mark)),
    ).toEqual(expected)

    for (const name of byBytes.toReversed()) await here.devices.insert(device({ name, status: 'accepted' }))
    const list = await here.devices.list({ groups: [], sort: 'name', order: 'asc', ...page() })
    expect(list.items.map((row) => row.name)).toEqual(byBytes)
    // Moments and versions are compared as texts too.
    const groups = [
      { join: 'and', conditions: [{ property: 'info.version', operator: 'gt', value: 'Z' }] },
    ] as const
    expect((await here.devices.list({ groups, sort: 'name', order: 'asc', ...page() })).total).toBe(
      byBytes.length,
    )
  })

  test.each([
    ['eq', 5, ['five']],
    ['ne', 5, ['none']],
    ['gt', 4.5, ['five']],
    ['lt', 4.5, ['none']],
    ['eq', 4.5, []],
    ['lt', 1e15, ['five', 'none']],
    ['gt', -1e15, ['five', 'none']],
  ] as const)(
    'a number of a filter need not be one that the column can hold: %s %d',
    async (operator, value, expected) => {
      const five = await namespace(storage)
      await stores.namespaces.save(five.tenant_id, { max_devices: 5 })
      const none = await namespace(storage)
      await stores.namespaces.addMember({
        tenant_id: none.tenant_id,
        user_id: five.owner.id,
        role: 'observer',
        epoch: 'e',
        created_at: now,
      })
      const groups = [{ join: 'and', conditions: [{ property: 'max_devices', operator, value }] }] as const
      const { items } = await stores.namespaces.list({ user_id: five.owner.id }, groups, page())
      const names = { [five.name]: 'five', [none.name]: 'none' }
      expect(items.map((row) => String(names[row.name])).toSorted()).toEqual(expected)
    },
  )

  test('numbers that no row can have find nothing', async () => {
    const { here } = await namespace(storage)
    for (const id of [0, -1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      expect(await here.firewall.find(id)).toBeUndefined()
      expect(await here.firewall.remove(id)).toBe(false)
    }
  })

  test('a page far beyond the end is empty', async () => {
    const { here, owner } = await namespace(storage)
    await here.apiKeys.insert(apiKey(owner.id))
    const far = page(100, 2_000_000_000)
    expect(await here.apiKeys.list(far, 'name', 'asc')).toMatchObject({ items: [], total: 1 })
    expect(await here.sessions.list(far)).toEqual({ items: [], total: 0 })
    expect((await here.devices.list({ groups: [], sort: 'name', order: 'asc', ...far })).items).toEqual([])
  })
})
