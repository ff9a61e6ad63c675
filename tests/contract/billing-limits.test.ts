// How many devices a namespace has: three without a subscription, any number with one. Places of deleted
// devices, the choice of devices when a subscription has ended, what `acceptable` and evaluate say, and that
// Stripe learns how many devices there are. Much of it is kept by the database itself, so the long tier has
// PostgreSQL in the place of SQLite.
import { describe, expect, test } from 'vitest'
import { ApiError } from '@hawser/contract/client'
import { sample } from '@hawser/contract/examples'
import { day_ms } from '../../server/src/kit/clock.ts'
import type { Enrolled } from '../harness/place.ts'
import { oneDatabase } from '../harness/tier.ts'
import { refused, startBilled, type Billed } from '../harness/billed.ts'
import { startService } from '../harness/service.ts'
import { temporaryFolder } from '../failures/program.ts'

const accept = (place: Billed, { uid }: { uid: string }) => place.operator.devices.accept({ params: { uid } })
const remove = (place: Billed, { uid }: { uid: string }) => place.owner.devices.remove({ params: { uid } })
const again = async (place: Billed, device: Enrolled) =>
  void (await place.nobody.devices.auth({ body: device.body }))
const evaluate = async (place: Billed) => (await place.observer.billing.evaluate()).body
const limited = { status: 402, body: { message: expect.stringContaining('3 devices') as unknown } }

/**
 * Uids of the devices that could be accepted now, by the list, by its filter, and one by one: they say the
 * same.
 */
async function acceptable(place: Billed): Promise<string[]> {
  const list = (await place.observer.devices.list({ query: { per_page: 100 } })).body
  const shown = list.filter((device) => device.acceptable).map(({ uid }) => uid)
  const filter = btoa(
    JSON.stringify([{ type: 'property', params: { name: 'acceptable', operator: 'bool', value: true } }]),
  )
  const filtered = (await place.observer.devices.list({ query: { per_page: 100, filter } })).body.map(
    ({ uid }) => uid,
  )
  expect(filtered.toSorted()).toEqual(shown.toSorted())
  for (const { uid } of list)
    expect((await place.observer.devices.get({ params: { uid } })).body.acceptable).toBe(shown.includes(uid))
  return shown.toSorted()
}

/** A subscription that ended with this many devices accepted. */
async function lapsed(place: Billed, devices: number): Promise<void> {
  const { id, customer } = await place.subscribed()
  for (let number = 1; number < devices; number++) await place.accepted(`tug-${number}`)
  place.stripe.kept.subscription.get(id)!['status'] = 'canceled'
  const sent = await place.stripe.send(
    place.url,
    place.stripe.event('customer.subscription.deleted', { id, object: 'subscription', customer }),
  )
  expect(sent.status).toBe(200)
}

describe.each(oneDatabase)('on %s', (_, options) => {
  test('of many accepts at the same instant three devices in all are accepted, the others need a subscription', async () => {
    await using place = await startBilled(await options())
    const waiting = await Promise.all(Array.from({ length: 6 }, () => place.enrol()))
    expect(await evaluate(place)).toEqual({ can_accept: true, can_connect: true })
    const outcomes = await Promise.allSettled(waiting.map((device) => accept(place, device)))
    const statuses = outcomes.map((one) =>
      one.status === 'fulfilled' ? 200 : one.reason instanceof ApiError ? one.reason.status : 0,
    )
    expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 200, 402, 402, 402, 402])
    expect(await place.namespace()).toMatchObject({ max_devices: 3, device_count: 3 })
    expect(await evaluate(place)).toEqual({ can_accept: false, can_connect: true })
    expect(await acceptable(place)).toEqual([])
    await expect(accept(place, waiting[statuses.indexOf(402)]!)).rejects.toMatchObject(limited)
    expect(place.asked(), 'without a subscription nobody is asked').toEqual([])

    await place.subscribed()
    expect(await evaluate(place)).toEqual({ can_accept: true, can_connect: true })
    expect(await acceptable(place)).toHaveLength(5)
    await accept(place, waiting[statuses.indexOf(402)]!)
    expect(await place.namespace()).toMatchObject({ max_devices: -1, device_count: 4 })
  })

  test('Stripe learns how many devices there are: accepted, turned away, deleted, replaced', async () => {
    await using place = await startBilled(await options())
    await place.accepted('tug-1')
    await place.subscribed()
    expect(place.quantity()).toBe(2)
    const tug = await place.accepted('tug-2')
    await expect.poll(() => place.quantity()).toBe(3)
    await place.owner.devices.setStatus({ params: { uid: tug.uid, status: 'reject' } })
    await expect.poll(() => place.quantity()).toBe(2)
    await accept(place, tug)
    await expect.poll(() => place.quantity()).toBe(3)
    const next = await place.enrol({ hostname: 'fresh', mac: tug.body.identity!.mac! })
    await accept(place, next)
    await remove(place, next)
    await expect.poll(() => place.quantity()).toBe(2)
    for (const { uid } of (await place.owner.devices.list({ query: { status: 'accepted' } })).body)
      await place.owner.devices.setStatus({ params: { uid, status: 'pending' } })
    // One at least.
    await expect.poll(() => place.quantity()).toBe(1)
    const many = await Promise.all(Array.from({ length: 8 }, () => place.enrol()))
    await Promise.all(many.map((device) => accept(place, device)))
    await expect.poll(() => place.quantity()).toBe(8)
    await expect
      .poll(
        async () => (await place.rooms.database.db.selectFrom('usage_reports').selectAll().execute()).length,
      )
      .toBe(0)
  })

  test('a namespace that goes ends its subscription, and nobody else’s', async () => {
    await using place = await startBilled(await options())
    const { id } = await place.subscribed()
    await place.stranger.billing.createCustomer()
    const card = place.stripe.card()
    await place.stranger.billing.attachPaymentMethod({ body: { id: card } })
    await place.stranger.billing.setDefaultPaymentMethod({ body: { id: card } })
    await place.stranger.billing.createSubscription()
    await place.accepted('tug-1')
    await place.owner.namespaces.remove({ params: { tenant: sample.tenant } })
    await expect.poll(() => place.stripe.kept.subscription.get(id)!['status']).toBe('canceled')
    expect(
      [...place.stripe.kept.invoice.values()].at(-1),
      'what was used is on a last invoice',
    ).toMatchObject({ amount_due: 100 })
    expect((await place.stranger.billing.getSubscription()).body.active).toBe(true)
  })

  test('a deleted device keeps its place for thirty days, for itself', async () => {
    await using place = await startBilled(await options())
    const [first, second, third] = [
      await place.accepted('tug-1'),
      await place.accepted('tug-2'),
      await place.enrol({ hostname: 'tug-3' }),
    ]
    await remove(place, first)
    expect((await place.namespace()).device_count).toBe(2)
    await expect(accept(place, third)).rejects.toMatchObject({
      status: 402,
      body: { message: expect.stringContaining('keep their place for 30 days') as unknown },
    })
    expect(await evaluate(place)).toEqual({ can_accept: false, can_connect: true })
    await again(place, first)
    expect(await acceptable(place)).toEqual([first.uid])
    await accept(place, first)
    await remove(place, first)
    await remove(place, second)
    await again(place, second)
    await accept(place, second)
    await expect(accept(place, third)).rejects.toMatchObject(limited)
    // By the key: tokens of people do not last that long.
    const later = () => place.key.devices.accept({ params: { uid: third.uid } })
    place.clock.forward(29 * day_ms)
    await expect(later()).rejects.toMatchObject(limited)
    place.clock.forward(2 * day_ms)
    await later()
  })

  test('a device that waits, or is deleted under a subscription, keeps no place', async () => {
    await using place = await startBilled(await options())
    await remove(place, { uid: sample.pendingDevice })
    for (const name of ['tug-1', 'tug-2']) await place.accepted(name)
    const waiting = await place.enrol()
    await remove(place, waiting)
    expect((await place.namespace()).device_count).toBe(3)

    await place.subscribed()
    await remove(place, { uid: sample.device })
    await place.accepted('tug-3')
    expect((await place.namespace()).device_count).toBe(3)
    expect(await place.rooms.stores.of(sample.tenant).removedDevices.list('')).toEqual([])
  })

  test('after a subscription has ended the owner chooses up to three devices; the others wait', async () => {
    await using place = await startBilled(await options())
    await lapsed(place, 5)
    expect(await place.namespace()).toMatchObject({
      max_devices: 3,
      device_count: 5,
      billing: { active: false },
    })
    expect(await evaluate(place)).toEqual({ can_accept: false, can_connect: false })
    const list = (await place.owner.devices.list({ query: { status: 'accepted' } })).body
    // Deleting makes no more places than there may be.
    await remove(place, list[0]!)
    expect(await place.rooms.stores.of(sample.tenant).removedDevices.list('')).toEqual([])

    const most = (await place.owner.devices.mostUsed()).body
    expect(most.map(({ uid }) => uid)).toEqual([sample.device])
    const kept = list.slice(1, 4).map(({ uid }) => uid)
    for (const client of [place.administrator, place.observer, place.key])
      await expect(client.devices.choose({ body: { choices: kept } })).rejects.toMatchObject({ status: 403 })
    const four = list.slice(1).map(({ uid }) => uid)
    await expect(place.owner.devices.choose({ body: { choices: four } })).rejects.toMatchObject({
      status: 400,
    })
    await expect(
      place.owner.devices.choose({ body: { choices: [...kept.slice(1), 'f'.repeat(64)] } }),
    ).rejects.toMatchObject({
      status: 404,
      body: { message: expect.stringContaining('f'.repeat(64)) as unknown },
    })
    expect((await place.namespace()).device_count).toBe(4)
    await place.owner.devices.choose({ body: { choices: kept } })
    const after = (await place.owner.devices.list({ query: { status: 'accepted' } })).body
    expect(after.map(({ uid }) => uid).toSorted()).toEqual(kept.toSorted())
    expect(await evaluate(place)).toEqual({ can_accept: false, can_connect: true })
  })

  test('nothing is chosen while no device is too many, and nobody has to wait', async () => {
    await using place = await startBilled(await options())
    const nothing = async () =>
      expect(place.owner.devices.choose({ body: { choices: [sample.device] } })).rejects.toMatchObject(
        refused(409, 'within_limit'),
      )
    await place.accepted('tug-1')
    await nothing()
    await place.accepted('tug-2')
    await nothing()
    await place.subscribed()
    for (const name of ['tug-3', 'tug-4']) await place.accepted(name)
    await nothing()
    expect((await place.namespace()).device_count).toBe(5)
  })

  test('without the key everything is unlimited again, and with it limited as before', async () => {
    using home = temporaryFolder()
    const at = { ...(await options()), folder: home.path }
    let env: Record<string, string>
    {
      await using place = await startBilled(at)
      await place.accepted('tug-1')
      env = place.stripe.env
    }
    const tenant = { params: { tenant: sample.tenant } }
    {
      await using unbilled = await startService(at)
      const api = unbilled.api({ token: await tokenIn(unbilled) })
      expect((await api.namespaces.get(tenant)).body).toMatchObject({ max_devices: -1, billing: null })
      await expect(api.billing.getCustomer()).rejects.toMatchObject(refused(424, 'provider_not_configured'))
      expect((await api.namespaces.create({ body: { name: 'free-port' } })).body.max_devices).toBe(-1)
      expect(unbilled.log()).toContain(
        'there is no payment provider: nothing is billed and nothing is limited',
      )
    }
    {
      await using billed = await startService({ ...at, env })
      const api = billed.api({ token: await tokenIn(billed) })
      expect((await api.namespaces.get(tenant)).body).toMatchObject({ max_devices: 3, billing: null })
      const list = (await api.namespaces.list()).body
      expect(
        list.find(({ name }) => name === 'free-port'),
        'made without billing, and so without its limit',
      ).toMatchObject({ max_devices: -1 })
    }
  })
})

async function tokenIn(service: Awaited<ReturnType<typeof startService>>): Promise<string> {
  const { username, password } = sample.owner
  return (await service.api().users.login({ body: { username, password } })).body.token
}

test('report tells Stripe now; before there is a subscription there is nothing to tell', async () => {
  await using place = await startBilled()
  const report = { query: { action: 'device_accept' } } as const
  await expect(place.owner.billing.report(report)).rejects.toMatchObject(refused(404, 'no_customer'))
  await place.owner.billing.createCustomer()
  await expect(place.owner.billing.report(report)).rejects.toMatchObject(refused(404, 'no_subscription'))
  await place.subscribed()
  const [subscription] = place.stripe.kept.subscription.values()
  ;(subscription!['items'] as { data: { quantity: number }[] }).data[0]!.quantity = 77
  await place.owner.billing.report(report)
  expect(place.quantity()).toBe(1)
})

test('a key without a price or a webhook secret stops the start with a sentence', async () => {
  for (const [missing, env] of [
    ['HAWSER_STRIPE_PRICE', { HAWSER_STRIPE_KEY: 'sk_test_x', HAWSER_STRIPE_WEBHOOK_SECRET: 'whsec_x' }],
    ['HAWSER_STRIPE_WEBHOOK_SECRET', { HAWSER_STRIPE_KEY: 'sk_test_x', HAWSER_STRIPE_PRICE: 'price_x' }],
  ] as const)
    await expect(startService({ env })).rejects.toThrow(missing)
})
