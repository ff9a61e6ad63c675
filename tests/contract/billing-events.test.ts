// Events of the payment provider: only what it signed, and signed a moment ago, is believed; an event that
// comes twice, late or out of order leads to the same end, because it is asked what is true now.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { subscriptions } from '../../server/src/domain/billing/subscriptions.ts'
import { oneDatabase } from '../harness/tier.ts'
import { startBilled, type Billed } from '../harness/billed.ts'
import { webhookSecret } from '../harness/stripe.ts'

const wrong = {
  status: 400,
  body: { message: 'The signature of the event is wrong or too old.', code: 'wrong_signature' },
}

/** The subscription as it is now, in an event about it. */
function about(place: Billed, type: string, id?: string): string {
  const [subscription] = place.stripe.kept.subscription.values()
  return place.stripe.event(`customer.subscription.${type}`, structuredClone(subscription!), id)
}

const become = (place: Billed, status: string) => {
  const [subscription] = place.stripe.kept.subscription.values()
  subscription!['status'] = status
}
const status = async (place: Billed) => (await place.namespace()).billing!['status']

describe.each(oneDatabase)('on %s', (_, options) => {
  test('what happens at Stripe reaches the namespace, once, whatever comes twice and in whatever order', async () => {
    await using place = await startBilled(await options())
    const { stripe } = place
    await place.subscribed()
    const early = about(place, 'created')
    become(place, 'past_due')
    const failed = stripe.event('invoice.payment_failed', {
      id: 'in_1',
      object: 'invoice',
      customer: [...stripe.kept.customer.keys()][0],
    })
    expect((await stripe.send(place.url, failed)).status).toBe(200)
    expect(await place.namespace()).toMatchObject({
      max_devices: -1,
      billing: { status: 'past_due', active: true },
    })

    become(place, 'canceled')
    const deleted = about(place, 'deleted')
    expect((await stripe.send(place.url, deleted)).status).toBe(200)
    expect(await place.namespace()).toMatchObject({
      max_devices: 3,
      billing: { status: 'canceled', active: false },
    })

    // Older news that comes now does not bring the past back.
    expect((await stripe.send(place.url, early)).status).toBe(200)
    expect(await status(place)).toBe('canceled')

    place.asked()
    for (let time = 0; time < 3; time++) expect((await stripe.send(place.url, deleted)).status).toBe(200)
    expect(place.asked(), 'known already').toEqual([])
  })

  test('the same event many times at the same instant does what it does once', async () => {
    await using place = await startBilled(await options())
    await place.subscribed()
    become(place, 'canceled')
    const deleted = about(place, 'deleted')
    const sent = await Promise.all(Array.from({ length: 6 }, () => place.stripe.send(place.url, deleted)))
    expect(sent.map(({ status: answered }) => answered)).toEqual([200, 200, 200, 200, 200, 200])
    expect(await status(place)).toBe('canceled')
    expect(await place.rooms.database.db.selectFrom('billing_events').selectAll().execute()).toHaveLength(1)
  })

  test('an answer that was asked for earlier does not overwrite a later one', async () => {
    await using place = await startBilled(await options())
    const { id, customer } = await place.subscribed()
    const asked_at = place.clock.now()
    await using book = subscriptions({
      stores: place.rooms.stores,
      provider: { subscriptions: async () => [] },
      clock: place.clock,
      onError: (error) => expect.unreachable(String(error)),
    })
    const { tenant_id } = (await place.rooms.stores.billing.findByCustomer(customer))!
    const state = (text: string) => [
      {
        id,
        status: text,
        end_at: 5,
        quantity: 1,
        ended: text === 'canceled',
        key: undefined,
        ours: true,
      },
    ]
    await book.settle(tenant_id, customer, asked_at + 10, state('canceled'))
    await book.settle(tenant_id, customer, asked_at + 5, state('active'))
    expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: { status: 'canceled' } })
    await book.settle(tenant_id, 'cus_other', asked_at + 20, state('active'))
    expect(await status(place)).toBe('canceled')
    await book.settle(tenant_id, customer, asked_at + 20, state('active'))
    expect(await place.namespace()).toMatchObject({ max_devices: -1, billing: { status: 'active' } })
  })
})

test('what is not signed, or not so, changes nothing and asks nobody', async () => {
  await using place = await startBilled()
  const { stripe } = place
  await place.subscribed()
  become(place, 'canceled')
  const payload = about(place, 'deleted')
  const at = Math.floor(place.clock.now() / 1000)
  const [t, v1] = stripe.sign(payload).split(',') as [string, string]
  place.asked()
  for (const [what, signature] of Object.entries({
    none: '',
    nonsense: 'nonsense',
    'of another secret': stripe.sign(payload, { secret: 'whsec_other' }),
    'of another body': stripe.sign(payload.replace('deleted', 'created')),
    'of another moment': `t=${at - 10},${v1}`,
    'of no moment': v1,
    'without a version': `${t},${v1.slice(3)}`,
    'by another scheme': `${t},${v1.replace('v1', 'v0')}`,
    'six minutes old': stripe.sign(payload, { at: at - 360 }),
    'six minutes ahead': stripe.sign(payload, { at: at + 360 }),
    'of a year ahead': stripe.sign(payload, { at: at + 31_536_000 }),
    empty: `t=${at},v1=`,
    'of the body alone': `t=${at},v1=${createHmac('sha256', webhookSecret).update(payload).digest('hex')}`,
  }))
    expect({ what, ...(await stripe.send(place.url, payload, signature)) }).toEqual({ what, ...wrong })
  expect((await stripe.send(place.url, `${payload} `, stripe.sign(payload))).status, 'one blank more').toBe(
    400,
  )
  expect((await stripe.send(place.url, '{', stripe.sign('{'))).status, 'no JSON').toBe(400)
  expect(place.asked()).toEqual([])
  expect(await status(place)).toBe('active')

  expect(place.log()).not.toContain(webhookSecret)

  // One good signature among others is enough: so Stripe changes its secrets.
  expect((await stripe.send(place.url, payload, `${t},v1=${'0'.repeat(64)},${v1}`)).status).toBe(200)
  expect(await status(place)).toBe('canceled')
})

test('an event that was caught is of no use when sent again later', async () => {
  await using place = await startBilled()
  const { stripe } = place
  await place.subscribed()
  const payload = about(place, 'updated')
  const signature = stripe.sign(payload)
  expect((await stripe.send(place.url, payload, signature)).status).toBe(200)
  place.clock.forward(301_000)
  expect(await stripe.send(place.url, payload, signature)).toEqual(wrong)
  expect((await stripe.send(place.url, payload)).status, 'Stripe itself signs anew').toBe(200)
})

test('events about others, and about other things, are taken and left alone', async () => {
  await using place = await startBilled()
  const { stripe } = place
  const { customer } = await place.subscribed()
  await place.rooms.usage!.deliver()
  place.asked()
  for (const [type, object] of [
    [
      'customer.subscription.updated',
      { id: 'sub_x', object: 'subscription', customer: 'cus_of_another_product' },
    ],
    ['customer.created', { id: 'cus_new', object: 'customer' }],
    ['payment_intent.succeeded', { id: 'pi_1', object: 'payment_intent', customer }],
    ['product.created', { id: 'prod_1', object: 'product' }],
    ['customer.updated', { id: 'cus_1', object: 'customer', customer: null }],
  ] as const)
    expect({ type, ...(await stripe.send(place.url, stripe.event(type, object))) }).toEqual({
      type,
      status: 200,
      body: {},
    })
  expect(place.asked()).toEqual([])
})

test('an event that overtakes the subscription which it is about does not undo it', async () => {
  await using place = await startBilled()
  const { stripe } = place
  const { id: customer } = await place.customer()
  const letGo = stripe.hold()
  const subscribing = place.owner.billing.createSubscription()
  await expect
    .poll(() => stripe.asked.some(({ method, path }) => method === 'POST' && path === 'subscriptions'))
    .toBe(true)
  const early = stripe.event('invoice.created', { id: 'in_1', object: 'invoice', customer })
  expect((await stripe.send(place.url, early)).status).toBe(200)
  letGo()
  await subscribing
  expect(await place.namespace()).toMatchObject({
    max_devices: -1,
    billing: { active: true, status: 'active' },
  })
})

test('an event is taken only when it could be acted on: Stripe sends it again', async () => {
  await using place = await startBilled()
  const { stripe } = place
  await place.subscribed()
  become(place, 'canceled')
  const payload = about(place, 'deleted')
  stripe.trouble('error', /GET subscriptions/)
  expect(await stripe.send(place.url, payload)).toMatchObject({
    status: 424,
    body: { code: 'provider_away' },
  })
  expect(await status(place)).toBe('active')
  stripe.well()
  expect((await stripe.send(place.url, payload)).status).toBe(200)
  expect(await status(place)).toBe('canceled')
})
