// API keys as members manage them: what is made and shown, how long it lasts, whose role it may have. What a
// key can do once it is there is in api-key-standing.test.ts.
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { roles, type Role } from '@hawser/contract/access'
import { apiKeySorts, type ApiKey } from '@hawser/contract/api-keys'
import { sample } from '@hawser/contract/examples'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

const refused = (status: number) => ({ status })
const day_s = 86_400
let made = 0
const newName = (): string => `key-${++made}`
const listed = async (place: Place, name: string): Promise<ApiKey | undefined> =>
  (await place.observer.apiKeys.list({ query: { per_page: 100 } })).body.find((key) => key.name === name)

describe('a key', () => {
  const place = sharedPlace()
  const create = (body: object) =>
    place.administrator.apiKeys.create({ body: body as { name: string; expires_at: -1 } })

  test('is shown once, when it is made, and opens the door', async () => {
    const name = newName()
    const { body } = await create({ name, expires_at: 30, role: 'observer' })
    const { id, user_id, ...rest } = body
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(user_id).toBe(sample.administrator.id)
    expect(rest).toEqual({
      name,
      role: 'observer',
      tenant_id: sample.tenant,
      created_by: sample.administrator.id,
      expires_in: expect.any(Number) as unknown,
      created_at: expect.any(String) as unknown,
      updated_at: rest.created_at,
    })
    expect((await place.api({ apiKey: id }).devices.list()).status).toBe(200)
    const shown = await place.observer.apiKeys.list({ query: { per_page: 100 } })
    expect(shown.body).toContainEqual(rest)
    expect(JSON.stringify(shown.body)).not.toContain(id)
  })

  test('may be chosen by its maker', async () => {
    const key = randomUUID()
    expect((await create({ name: newName(), expires_at: -1, key })).body.id).toBe(key)
    expect((await place.api({ apiKey: key }).devices.list()).status).toBe(200)
    await expect(create({ name: newName(), expires_at: -1, key })).rejects.toMatchObject(refused(409))
    // Another namespace must not learn more than that, and must not get this namespace's key.
    await expect(
      place.stranger.apiKeys.create({ body: { name: newName(), expires_at: -1, key } }),
    ).rejects.toMatchObject(refused(409))
    expect(
      (await place.api({ apiKey: key }).namespaces.list()).body.map(({ tenant_id }) => tenant_id),
    ).toEqual([sample.tenant])
  })

  test.each([
    [30, 30 * day_s],
    [60, 60 * day_s],
    [90, 90 * day_s],
  ] as const)('for %i days ends after them', async (expires_at, seconds) => {
    const { expires_in } = (await create({ name: newName(), expires_at })).body
    expect(Math.abs(expires_in - (Math.floor(place.clock.now() / 1000) + seconds))).toBeLessThanOrEqual(5)
  })

  test('for 365 days ends on the same day of the next year, and -1 never', async () => {
    const { expires_in } = (await create({ name: newName(), expires_at: 365 })).body
    const end = new Date(place.clock.now())
    end.setUTCFullYear(end.getUTCFullYear() + 1)
    expect(Math.abs(expires_in - end.getTime() / 1000)).toBeLessThanOrEqual(5)
    expect((await create({ name: newName(), expires_at: -1 })).body.expires_in).toBe(-1)
  })

  test('stops working when its time is over', async () => {
    await using own = await startPlace()
    const { id } = (await own.administrator.apiKeys.create({ body: { name: 'monthly', expires_at: 30 } }))
      .body
    const forever = (await own.administrator.apiKeys.create({ body: { name: 'forever', expires_at: -1 } }))
      .body.id
    own.clock.forward((30 * day_s - 60) * 1000)
    expect((await own.api({ apiKey: id }).devices.list()).status).toBe(200)
    own.clock.forward(60_000)
    await expect(own.api({ apiKey: id }).devices.list()).rejects.toMatchObject(refused(401))
    expect((await own.api({ apiKey: forever }).devices.list()).status).toBe(200)
  })

  test.each<[string, object]>([
    ['no name', { name: undefined }],
    ['a name of two letters', { name: 'ab' }],
    ['a name of 21 letters', { name: 'x'.repeat(21) }],
    ['a name with a space', { name: 'my key' }],
    ['a name with a line end', { name: 'key\n' }],
    ['no expiry', { expires_at: undefined }],
    ['an expiry of 31 days', { expires_at: 31 }],
    ['an expiry of 0 days', { expires_at: 0 }],
    ['an expiry as text', { expires_at: '30' }],
    ['an unknown role', { role: 'root' }],
    ['a role that is none', { role: null }],
    ['a key that is no uuid', { key: 'secret' }],
    ['a key that is a uuid of another version', { key: '00000000-0000-1000-8000-000000000001' }],
    ['a key in capitals', { key: randomUUID().toUpperCase().replace(/^./, 'A') }],
  ])('is not made with %s', async (_, more) => {
    await expect(create({ name: newName(), expires_at: 30, ...more })).rejects.toMatchObject(refused(400))
  })

  test.each(['abc', 'x'.repeat(20), 'a/b', 'ключ', '...', '50%_\\'])(
    'may be called %j, and changed and removed by that name',
    async (name) => {
      await create({ name, expires_at: -1 })
      await place.administrator.apiKeys.update({ params: { key: name }, body: { role: 'observer' } })
      expect(await listed(place, name)).toMatchObject({ role: 'observer' })
      await place.administrator.apiKeys.remove({ params: { key: name } })
      expect(await listed(place, name)).toBeUndefined()
    },
  )

  test('has a name of its own in its namespace', async () => {
    const name = newName()
    await create({ name, expires_at: -1 })
    await expect(create({ name, expires_at: -1 })).rejects.toMatchObject(refused(409))
    expect((await place.stranger.apiKeys.create({ body: { name, expires_at: -1 } })).status).toBe(200)
    const parallel = await Promise.allSettled(
      Array.from({ length: 4 }, () => create({ name: 'at-once', expires_at: -1 })),
    )
    expect(parallel.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})

describe('the role of a key', () => {
  const place = sharedPlace()
  const makers = ['administrator', 'owner'] as const

  test.each(makers.flatMap((maker) => roles.map((role) => [maker, role] as const)))(
    '%s makes a key for %s',
    async (maker, role) => {
      const call = place[maker].apiKeys.create({ body: { name: newName(), expires_at: -1, role } })
      if (roles.indexOf(role) > roles.indexOf(maker)) await expect(call).rejects.toMatchObject(refused(403))
      else expect((await call).body.role).toBe(role)
    },
  )

  test.each(makers)('is that of its maker, %s, unless another is asked for', async (maker) => {
    expect((await place[maker].apiKeys.create({ body: { name: newName(), expires_at: -1 } })).body.role).toBe(
      maker,
    )
  })

  test('can be changed up to the role of whoever changes it', async () => {
    const name = newName()
    await place.administrator.apiKeys.create({ body: { name, expires_at: -1, role: 'observer' } })
    const set = (person: 'administrator' | 'owner', role: Role) =>
      place[person].apiKeys.update({ params: { key: name }, body: { role } })
    await set('administrator', 'administrator')
    await expect(set('administrator', 'owner')).rejects.toMatchObject(refused(403))
    expect(await listed(place, name)).toMatchObject({ role: 'administrator' })
    await set('owner', 'owner')
    expect(await listed(place, name)).toMatchObject({ role: 'owner', created_by: sample.administrator.id })
    // Whatever it says, it does not outrank its maker.
    const key = randomUUID()
    await place.administrator.apiKeys.create({ body: { name: newName(), expires_at: -1, key } })
    await place.owner.apiKeys.update({ params: { key: `key-${made}` }, body: { role: 'owner' } })
    await expect(place.api({ apiKey: key }).devices.mostUsed()).rejects.toMatchObject(refused(403))
  })

  test.each(['operator', 'observer'] as const)('%s may not make, change or remove keys', async (person) => {
    const params = { key: sample.apiKeyName }
    await expect(
      place[person].apiKeys.create({ body: { name: newName(), expires_at: 30 } }),
    ).rejects.toMatchObject(refused(403))
    await expect(place[person].apiKeys.update({ params, body: { name: 'taken' } })).rejects.toMatchObject(
      refused(403),
    )
    await expect(place[person].apiKeys.remove({ params })).rejects.toMatchObject(refused(403))
  })

  test('a key lists keys and may not make, change or remove any', async () => {
    expect((await place.key.apiKeys.list()).total).toBeGreaterThan(0)
    const params = { key: sample.apiKeyName }
    await expect(
      place.key.apiKeys.create({ body: { name: newName(), expires_at: 30 } }),
    ).rejects.toMatchObject(refused(403))
    await expect(place.key.apiKeys.update({ params, body: { name: 'renamed' } })).rejects.toMatchObject(
      refused(403),
    )
    await expect(place.key.apiKeys.remove({ params })).rejects.toMatchObject(refused(403))
  })
})

describe('changing and removing', () => {
  const place = sharedPlace()

  test('a new name, its own name and nothing at all are 200; a taken one is 409', async () => {
    const [one, two] = [newName(), newName()]
    const { id } = (await place.administrator.apiKeys.create({ body: { name: one, expires_at: 30 } })).body
    await place.administrator.apiKeys.create({ body: { name: two, expires_at: 30 } })
    const before = await listed(place, one)
    const update = (key: string, body: object) =>
      place.administrator.apiKeys.update({ params: { key }, body })
    place.clock.forward(1000)
    await update(one, {})
    expect(await listed(place, one)).toEqual(before)
    await update(one, { name: one })
    await expect(update(one, { name: two })).rejects.toMatchObject(refused(409))
    const renamed = newName()
    await update(one, { name: renamed, expires_at: -1, id: 'x' })
    const after = (await listed(place, renamed))!
    expect(after).toEqual({ ...before, name: renamed, updated_at: after.updated_at })
    expect(after.updated_at > before!.updated_at).toBe(true)
    expect(await listed(place, one)).toBeUndefined()
    await expect(update(one, { name: 'gone' })).rejects.toMatchObject(refused(404))
    expect((await place.api({ apiKey: id }).devices.list()).status).toBe(200)
    for (const body of [{ name: 'ab' }, { name: 'a b c' }, { role: 'root' }])
      await expect(update(two, body)).rejects.toMatchObject(refused(400))
  })

  test('a removed key stops working at once', async () => {
    const name = newName()
    const { id } = (await place.administrator.apiKeys.create({ body: { name, expires_at: 30 } })).body
    const call = () => place.api({ apiKey: id }).devices.list()
    for (let time = 0; time < 3; time++) await call()
    await place.administrator.apiKeys.remove({ params: { key: name } })
    await expect(call()).rejects.toMatchObject(refused(401))
    await expect(place.administrator.apiKeys.remove({ params: { key: name } })).rejects.toMatchObject(
      refused(404),
    )
  })

  test('keys of another namespace are 404', async () => {
    const params = { key: sample.apiKeyName }
    await expect(place.stranger.apiKeys.update({ params, body: { name: 'stolen' } })).rejects.toMatchObject(
      refused(404),
    )
    await expect(place.stranger.apiKeys.remove({ params })).rejects.toMatchObject(refused(404))
    expect(await listed(place, sample.apiKeyName)).toBeDefined()
  })
})

describe.each(oneDatabase)('the list, on %s', (_, options) => {
  const place = sharedPlace(options)

  test('is sorted by what is asked for, by expiry from the last one on unless asked, in pages', async () => {
    const bytes = (a: unknown, b: unknown) => Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))
    for (const [index, expires_at] of ([90, -1, 30, 365, 60] as const).entries()) {
      place.clock.forward(1000)
      const person = index % 2 === 0 ? place.owner : place.administrator
      await person.apiKeys.create({
        body: { name: `${'qwert'[index]}-Key`, expires_at, role: roles[index % 3]! },
      })
    }
    await place.owner.apiKeys.update({ params: { key: 'w-Key' }, body: { role: 'observer' } })
    const all = (await place.observer.apiKeys.list()).body
    expect(all.map(({ expires_in }) => expires_in)).toEqual(
      all.map(({ expires_in }) => expires_in).toSorted((a, b) => b - a),
    )
    for (const sort_by of apiKeySorts)
      for (const order_by of ['asc', 'desc'] as const) {
        const paged: ApiKey[] = []
        for (const page of [1, 2, 3]) {
          const { body, total } = await place.observer.apiKeys.list({
            query: { sort_by, order_by, page, per_page: 2 },
          })
          expect(total).toBe(6)
          paged.push(...body)
        }
        const keys = all.map((key) => key[sort_by])
        const sorted =
          sort_by === 'expires_in' ? keys.toSorted((a, b) => Number(a) - Number(b)) : keys.toSorted(bytes)
        expect(paged.map((key) => key[sort_by])).toEqual(order_by === 'asc' ? sorted : sorted.toReversed())
        expect(new Set(paged.map(({ name }) => name)).size).toBe(6)
      }
    expect((await place.stranger.apiKeys.list()).total).toBe(0)
  })

  test.each([{ sort_by: 'hash' }, { sort_by: 'id' }, { order_by: 'up' }, { page: 0 }, { per_page: 101 }])(
    'refuses %j',
    async (query) => {
      await expect(place.observer.apiKeys.list({ query: query as never })).rejects.toMatchObject(refused(400))
    },
  )
})
