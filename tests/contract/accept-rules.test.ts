// Accept rules: a namespace has none at first; the first that fits accepts a new device and gives it tags;
// what does not fit waits; and whoever writes a rule that strangers could meet is told so.
import { describe, expect, test } from 'vitest'
import type { Client } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { firstFitting } from '../../server/src/domain/devices/accept-rules.ts'
import { sharedPlace, startPlace, type Place } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'

type Wanted = Parameters<Client['acceptRules']['create']>[0]['body']
const create = async (place: Place, body: Wanted) => place.administrator.acceptRules.create({ body })
const statusOf = async (place: Place, uid: string) =>
  (await place.observer.devices.get({ params: { uid } })).body

describe.each(oneDatabase)('on %s', (_, options) => {
  const place = sharedPlace(options)

  test('without a rule that fits a new device waits', async () => {
    const { uid } = await place.enrol({ hostname: 'till-1' })
    expect(await statusOf(place, uid)).toMatchObject({ status: 'pending' })
  })

  test('the first rule that fits accepts the device, and gives it tags', async () => {
    const late = await create(place, { priority: 20, source: '127.0.0.0/8', tags: ['late'] })
    const early = await create(place, {
      priority: 10,
      source: '127.0.0.1',
      hostname: '^till-',
      tags: ['till'],
    })
    expect(early.headers.get('x-notice')).toBe('')
    expect(early.body).toMatchObject({ source: '127.0.0.1/32', hostname: '^till-', tags: ['till'] })
    const { body: listed } = await place.observer.acceptRules.list({ query: {} })
    expect(listed.map(({ id }) => id)).toEqual([sample.acceptRule, early.body.id, late.body.id])
    const till = await place.enrol({ hostname: 'till-2' })
    expect(await statusOf(place, till.uid)).toMatchObject({
      status: 'accepted',
      tags: ['till'],
      enrolled_with: { kind: 'rule', id: early.body.id },
    })
    expect(await statusOf(place, (await place.enrol({ hostname: 'winch' })).uid)).toMatchObject({
      status: 'accepted',
      tags: ['late'],
    })
    // Only new devices are judged: one that a person made pending stays so.
    await place.operator.devices.setStatus({ params: { uid: till.uid, status: 'pending' } })
    await place.nobody.devices.auth({ body: till.body })
    expect(await statusOf(place, till.uid)).toMatchObject({ status: 'pending' })
    for (const { body } of [early, late])
      await place.administrator.acceptRules.remove({ params: { id: body.id } })
    expect(await statusOf(place, (await place.enrol({ hostname: 'till-3' })).uid)).toMatchObject({
      status: 'pending',
    })
  })

  test('a rule replaces no device, and a token that does not accept is stronger than a rule', async () => {
    const { body } = await create(place, { source: '127.0.0.0/8' })
    const mac = '02:99:00:00:00:01'
    await place.enrol({ hostname: 'one', mac })
    const two = await place.enrol({ hostname: 'two', mac })
    expect(await statusOf(place, two.uid)).toMatchObject({ status: 'pending', replaces: { name: 'one' } })
    const auth = {
      ...two.body,
      identity: { mac: '02:99:00:00:00:02' },
      enrolment_token: sample.enrolmentToken,
    }
    const { uid } = (await place.nobody.devices.auth({ body: auth })).body
    expect(await statusOf(place, uid)).toMatchObject({ status: 'pending', enrolled_with: { kind: 'token' } })
    await place.administrator.acceptRules.remove({ params: { id: body.id } })
  })
})

describe('a rule', () => {
  const place = sharedPlace()

  test('without a source network is taken with a warning', async () => {
    const { headers } = await create(place, { mac: 'B8-27-EB' })
    expect(headers.get('x-notice')).toMatch(/everybody who knows the id of the namespace/)
  })

  test.each([
    ['nothing', {}],
    ['tags alone', { tags: ['shop'] }],
    ['a pattern that is none', { hostname: '(' }],
    ['a pattern that is too large', { hostname: '(x{60}){60}' }],
    ['a network that is none', { source: '192.0.2.0/33' }],
    ['an address that is none', { source: '300.1.1.1' }],
    ['a mapped network', { source: '::ffff:192.0.2.0/120' }],
    ['a MAC address that is none', { mac: 'b8:27:e' }],
  ])('of %s is refused', async (_, body) => {
    await expect(create(place, body)).rejects.toMatchObject({ status: 400 })
  })

  test('is one of a hundred at most, and their patterns are limited together', async () => {
    await using full = await startPlace()
    await create(full, { hostname: 'x{900}' })
    await create(full, { hostname: 'y{900}' })
    await expect(create(full, { hostname: 'z{900}' })).rejects.toMatchObject({ kind: 'acceptRuleLimit' })
    for (let n = 3; n < 100; n += 1) await create(full, { mac: '02' })
    await expect(create(full, { mac: '02' })).rejects.toMatchObject({ status: 403, kind: 'acceptRuleLimit' })
  })

  test('of one namespace is not for another', async () => {
    await using two = await startPlace()
    await create(two, { source: '127.0.0.0/8' })
    const { uid } = await two.enrol({ hostname: 'else', tenant_id: sample.otherTenant })
    expect((await two.stranger.devices.get({ params: { uid } })).body.status).toBe('pending')
    await expect(
      two.stranger.acceptRules.remove({ params: { id: sample.acceptRule } }),
    ).rejects.toMatchObject({ status: 404 })
  })
})

test('everything that a rule names must fit', () => {
  const rule = {
    id: 1,
    tenant_id: '',
    priority: 1,
    source: '',
    hostname: '',
    mac: '',
    platform: '',
    tags: '[]',
  }
  const device = { hostname: 'till-1', mac: 'B8:27:EB:01:02:03', platform: 'native', source: '192.0.2.7' }
  const isFit = (change: Partial<typeof rule>, about: Partial<typeof device> = {}): boolean =>
    firstFitting([{ ...rule, ...change }], { ...device, ...about }) !== undefined
  expect(isFit({ source: '192.0.2.0/24' })).toBe(true)
  expect(isFit({ source: '192.0.2.0/24' }, { source: '::ffff:192.0.2.7' })).toBe(true)
  expect(isFit({ source: '192.0.2.0/24' }, { source: '192.0.3.7' })).toBe(false)
  expect(isFit({ source: '2001:db8::/32' }, { source: '2001:db8::1' })).toBe(true)
  expect(isFit({ source: '0.0.0.0/0' }, { source: '2001:db8::1' })).toBe(false)
  expect(isFit({ mac: 'b8:27:eb' })).toBe(true)
  expect(isFit({ mac: 'b8:27:eb' }, { mac: '' })).toBe(false)
  expect(isFit({ platform: 'docker' })).toBe(false)
  expect(isFit({ source: '192.0.2.0/24', hostname: '^shop' })).toBe(false)
  expect(isFit({ hostname: '(' })).toBe(false)
})
