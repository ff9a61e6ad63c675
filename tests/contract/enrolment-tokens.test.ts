// Enrolment tokens: what administrators create and see, and what becomes of devices that come with one. A
// token is good for a number of devices, exactly, however many come at once; what a person has decided about
// a device counts more than a token; and accepting by a token replaces no other device.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { tokenPattern } from '@hawser/contract/enrolment-tokens'
import { sample } from '@hawser/contract/examples'
import { patternName } from '../../server/src/domain/devices/presented-tokens.ts'
import { day_ms } from '../../server/src/kit/clock.ts'
import { bothDatabases, sharedPlace, startPlace, type Place } from '../harness/place.ts'

type Wanted = Parameters<Client['enrolmentTokens']['create']>[0]['body']
let made = 0

/** A token with these properties, made by the administrator. */
async function newToken(place: Place, wanted: Partial<Wanted> = {}) {
  made += 1
  const body = { name: `token-${made}`, accept: true, ...wanted }
  return (await place.administrator.enrolmentTokens.create({ body })).body
}

/** What an agent sends that has a token and no tenant id; every call is about another device. */
function agentOf(
  enrolment_token: string,
  change: { hostname?: string; mac?: string; tenant_id?: string } = {},
) {
  made += 1
  return {
    info: { id: 'debian', platform: 'native' },
    hostname: change.hostname ?? `till-${made}`,
    identity: { mac: change.mac ?? `02:00:00:00:${Math.floor(made / 256)}:${(made % 256).toString(16)}` },
    public_key: `-----BEGIN RSA PUBLIC KEY-----\ntoken ${made}\n-----END RSA PUBLIC KEY-----\n`,
    enrolment_token,
    ...(change.tenant_id === undefined ? {} : { tenant_id: change.tenant_id }),
  }
}
const enrol = async (place: Place, body: ReturnType<typeof agentOf>) =>
  (await place.nobody.devices.auth({ body })).body
const deviceOf = async (place: Place, uid: string) =>
  (await place.observer.devices.get({ params: { uid } })).body
const usedOf = async (place: Place, id: string) =>
  (await place.observer.enrolmentTokens.list({ query: { per_page: 100 } })).body.find(
    (token) => token.id === id,
  )?.used

describe.each(bothDatabases)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('a token is shown once, and listed by its last characters', async () => {
    const created = await newToken(place, { name: 'shops', most_devices: 3, tags: ['shop'] })
    expect(created.token).toMatch(new RegExp(tokenPattern))
    const { body: listed } = await place.observer.enrolmentTokens.list({ query: { per_page: 100 } })
    const { token, ...others } = created
    expect(listed.find(({ name }) => name === 'shops')).toEqual(others)
    expect(others).toMatchObject({
      hint: token.slice(-4),
      used: 0,
      tags: ['shop'],
      created_by: sample.administrator.id,
    })
    expect(JSON.stringify(listed)).not.toContain(token)
    await expect(newToken(place, { name: 'shops' })).rejects.toMatchObject({ status: 409 })
  })

  test('a device that comes with one needs no tenant id, is named, tagged and accepted, and counts once', async () => {
    const { token, id } = await newToken(place, {
      most_devices: 2,
      tags: ['shop', 'north'],
      name_pattern: 'Shop-{nnn}',
    })
    const agent = agentOf(token)
    const answer = await enrol(place, agent)
    expect(answer).toMatchObject({ name: 'shop-001', namespace: sample.namespace, tenant_id: sample.tenant })
    expect(await deviceOf(place, answer.uid)).toMatchObject({
      status: 'accepted',
      name: 'shop-001',
      tags: ['shop', 'north'],
      enrolled_with: { kind: 'token', id },
    })
    // Its agent goes on with the token, or with the tenant id as every agent does.
    expect(await enrol(place, agent)).toMatchObject({ uid: answer.uid, name: 'shop-001' })
    const { enrolment_token: _token, ...plain } = agent
    const again = await place.nobody.devices.auth({ body: { ...plain, tenant_id: sample.tenant } })
    expect(again.body).toMatchObject({ uid: answer.uid, name: 'shop-001' })
    expect(again.body).not.toHaveProperty('tenant_id')
    expect(await usedOf(place, id)).toBe(1)
    expect((await enrol(place, agentOf(token))).name).toBe('shop-002')
    await expect(enrol(place, agentOf(token))).rejects.toMatchObject({
      status: 401,
      kind: 'wrongToken',
      message: 'The enrolment token has been used for as many devices as it may be.',
    })
    // Whoever is in is not shut out by that.
    expect(await enrol(place, agent)).toMatchObject({ uid: answer.uid })
    expect(place.log()).toMatch(/"event":"enrolment.refused".*"why":"has been used/)
  })

  test('of twenty devices that come at once with a token for three, three come in', async () => {
    const { token, id } = await newToken(place, { most_devices: 3, name_pattern: 'crowd-{n}' })
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => enrol(place, agentOf(token))))
    const names = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.name] : []))
    expect(names.toSorted()).toEqual(['crowd-1', 'crowd-2', 'crowd-3'])
    expect(await usedOf(place, id)).toBe(3)
  })

  test('one device that calls ten times at once counts once', async () => {
    const { token, id } = await newToken(place, { most_devices: 5 })
    const agent = agentOf(token)
    const answers = await Promise.all(Array.from({ length: 10 }, () => enrol(place, agent)))
    expect(new Set(answers.map(({ uid, name }) => `${uid} ${name}`)).size).toBe(1)
    expect(await usedOf(place, id)).toBe(1)
  })

  test('the tags of a token follow a tag that is renamed, and lose one that is deleted', async () => {
    const { id, token } = await newToken(place, { most_devices: 0, tags: ['river', 'delta'] })
    await enrol(place, agentOf(token))
    await place.operator.tags.rename({ params: { tag: 'river' }, body: { tag: 'stream' } })
    await place.operator.tags.remove({ params: { tag: 'delta' } })
    const { body: listed } = await place.observer.enrolmentTokens.list({ query: { per_page: 100 } })
    expect(listed.find((one) => one.id === id)?.tags).toEqual(['stream'])
  })
})

describe('devices', () => {
  const place = sharedPlace()

  test('of a token that does not accept are pending, named and tagged, and count once', async () => {
    const { token, id } = await newToken(place, { accept: false, most_devices: 1, tags: ['dock'] })
    const agent = agentOf(token)
    const { uid } = await enrol(place, agent)
    expect(await deviceOf(place, uid)).toMatchObject({ status: 'pending', tags: ['dock'] })
    await enrol(place, agent)
    expect(await usedOf(place, id)).toBe(1)
  })

  test('that were pending are accepted once they come with a token, and it counts', async () => {
    const { token, id } = await newToken(place)
    const { enrolment_token, ...plain } = agentOf(token)
    const { uid } = (await place.nobody.devices.auth({ body: { ...plain, tenant_id: sample.tenant } })).body
    expect(await deviceOf(place, uid)).toMatchObject({ status: 'pending' })
    await enrol(place, { ...plain, enrolment_token })
    expect(await deviceOf(place, uid)).toMatchObject({ status: 'accepted' })
    expect(await usedOf(place, id)).toBe(1)
  })

  test('stay what a person has made of them: rejected, or pending again', async () => {
    const { token, id } = await newToken(place, { most_devices: 0 })
    const agent = agentOf(token)
    const { uid } = await enrol(place, agent)
    for (const [word, status] of [
      ['pending', 'pending'],
      ['reject', 'rejected'],
    ] as const) {
      await place.operator.devices.setStatus({ params: { uid, status: word } })
      await enrol(place, agent)
      expect(await deviceOf(place, uid)).toMatchObject({ status })
    }
    expect(await usedOf(place, id)).toBe(1)
  })

  test('that were deleted and come again count again, as new ones', async () => {
    const { token, id } = await newToken(place, { most_devices: 2, name_pattern: 'again-{n}' })
    const agent = agentOf(token)
    const { uid } = await enrol(place, agent)
    await place.administrator.devices.remove({ params: { uid } })
    expect(await enrol(place, agent)).toMatchObject({ uid, name: 'again-2' })
    expect(await usedOf(place, id)).toBe(2)
    await place.administrator.devices.remove({ params: { uid } })
    await expect(enrol(place, agent)).rejects.toMatchObject({ status: 401 })
    // By the id of the namespace they wait, as every device does.
    const { enrolment_token: _, ...plain } = agent
    await place.nobody.devices.auth({ body: { ...plain, tenant_id: sample.tenant } })
    expect(await deviceOf(place, uid)).toMatchObject({ status: 'pending' })
  })

  test('never replace an accepted device by its MAC address: they wait for a person', async () => {
    const { token } = await newToken(place, { most_devices: 0 })
    const mac = '02:11:22:33:44:55'
    const first = await enrol(place, agentOf(token, { mac, hostname: 'derrick' }))
    const second = await enrol(place, agentOf(token, { mac, hostname: 'derrick' }))
    expect(await deviceOf(place, first.uid)).toMatchObject({ status: 'accepted', name: 'derrick' })
    expect(await deviceOf(place, second.uid)).toMatchObject({
      status: 'pending',
      replaces: { uid: first.uid, name: 'derrick' },
    })
    expect(place.log()).toMatch(/"event":"device.joined".*"why":"It has the MAC address of derrick/)
  })

  test('whose name is taken get one that is free', async () => {
    const { token } = await newToken(place, { most_devices: 0, name_pattern: 'twin' })
    const first = await enrol(place, agentOf(token))
    const second = await enrol(place, agentOf(token))
    expect(first.name).toBe('twin')
    expect(second.name).toBe(`twin-${second.uid.slice(0, 6)}`)
    expect(await deviceOf(place, second.uid)).toMatchObject({ status: 'accepted' })
  })

  test('wait when the namespace has as many devices as it may have', async () => {
    await using small = await startPlace()
    const { token } = await newToken(small, { most_devices: 0 })
    await small.rooms.stores.namespaces.save(sample.tenant, { max_devices: 2 })
    const [first, second] = [await enrol(small, agentOf(token)), await enrol(small, agentOf(token))]
    expect(await deviceOf(small, first.uid)).toMatchObject({ status: 'accepted' })
    expect(await deviceOf(small, second.uid)).toMatchObject({ status: 'pending' })
  })
})

describe('a token', () => {
  const place = sharedPlace()
  const notValid = { status: 401, kind: 'wrongToken', message: 'The enrolment token is not valid.' }

  test('that expired lets nobody in, and says so to whoever has it', async () => {
    await using later = await startPlace()
    const { token, expires_at } = await newToken(later, { valid_days: 1, most_devices: 0 })
    expect(Date.parse(expires_at ?? '') - later.clock.now()).toBeGreaterThan(day_ms - 60_000)
    await enrol(later, agentOf(token))
    later.clock.forward(day_ms)
    await expect(enrol(later, agentOf(token))).rejects.toMatchObject({
      status: 401,
      message: 'The enrolment token has expired.',
    })
  })

  test('never expires only if that is said', async () => {
    expect((await newToken(place)).expires_at).not.toBeNull()
    expect((await newToken(place, { valid_days: 0 })).expires_at).toBeNull()
  })

  test('that was revoked is unknown, and the devices that came with it stay', async () => {
    const { token, id } = await newToken(place, { most_devices: 0 })
    const agent = agentOf(token)
    const { uid } = await enrol(place, agent)
    await expect(place.stranger.enrolmentTokens.remove({ params: { id } })).rejects.toMatchObject({
      status: 404,
    })
    await place.administrator.enrolmentTokens.remove({ params: { id } })
    await expect(enrol(place, agentOf(token))).rejects.toMatchObject(notValid)
    expect(await deviceOf(place, uid)).toMatchObject({ status: 'accepted' })
    const { enrolment_token: _, ...plain } = agent
    const beat = await place.nobody.devices.auth({ body: { ...plain, tenant_id: sample.tenant } })
    expect(beat.body.uid).toBe(uid)
  })

  test('leads to its own namespace and to no other', async () => {
    const { token } = await newToken(place, { most_devices: 0 })
    await expect(enrol(place, agentOf(token, { tenant_id: sample.otherTenant }))).rejects.toMatchObject({
      status: 401,
      message: 'The enrolment token is for another namespace.',
    })
    expect(await enrol(place, agentOf(token, { tenant_id: sample.tenant }))).toMatchObject({
      namespace: sample.namespace,
    })
  })

  test('ends with the role of whoever created it', async () => {
    await using own = await startPlace()
    const { token } = await newToken(own, { most_devices: 0 })
    const params = { tenant: sample.tenant, uid: sample.administrator.id }
    await own.owner.namespaces.updateMember({ params, body: { role: 'operator' } })
    await expect(enrol(own, agentOf(token))).rejects.toMatchObject(notValid)
    await own.owner.namespaces.removeMember({ params })
    expect((await own.owner.enrolmentTokens.list({ query: {} })).body).toEqual([])
  })

  test('without one, and without a tenant id, the answer is 400', async () => {
    const { enrolment_token: _, ...plain } = agentOf('')
    await expect(place.nobody.devices.auth({ body: plain })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('tenant_id') as string,
    })
  })

  test('there are a hundred at most', async () => {
    await using full = await startPlace()
    for (let n = 1; n < 100; n += 1) await newToken(full)
    await expect(newToken(full)).rejects.toMatchObject({ status: 403, kind: 'enrolmentTokenLimit' })
  })

  test.each(['shop-{}', '{N}', 'shop {n}', 'shop-{n', '{uid}', 'ä', 'x'.repeat(65)])(
    'with the name pattern %s is refused',
    async (name_pattern) => {
      await expect(newToken(place, { name_pattern })).rejects.toMatchObject({ status: 400 })
    },
  )
})

test('name patterns give names of the characters that a name may have', () => {
  const device = { n: 7, hostname: 'Till.Shop', mac: '02:AB:cd:00:12:F3' }
  expect(patternName('shop-{nnn}', device)).toBe('shop-007')
  expect(patternName('{hostname}-{mac4}', device)).toBe('till-shop-12f3')
  expect(patternName('{mac}', device)).toBe('02-ab-cd-00-12-f3')
  expect(patternName('{hostname}', { ...device, hostname: 'x'.repeat(255) })).toHaveLength(64)
  expect(patternName('{mac4}', { ...device, mac: '' })).toBe('device')
})
