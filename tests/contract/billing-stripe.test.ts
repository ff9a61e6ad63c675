// Billing with a payment provider: how a namespace becomes a customer, pays and stops paying, what is refused
// with which code, and that nothing of ours changes when the provider refuses. The provider is a double that
// speaks as Stripe does.
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { oneDatabase } from '../harness/tier.ts'
import { refused, startBilled } from '../harness/billed.ts'
import { stripePrice } from '../harness/stripe.ts'

test('the provider writes to the confirmed address of the owner, not to one that waits for it', async () => {
  await using place = await startBilled()
  await place.owner.users.update({ body: { email: 'olga@unconfirmed.example' } })
  expect((await place.owner.billing.createCustomer()).body.email).toBe(sample.owner.email)
})

describe.each(oneDatabase)('on %s', (_, options) => {
  test('a namespace becomes a customer, subscribes with a card, and leaves', async () => {
    await using place = await startBilled(await options())
    const { stripe, owner } = place
    expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: null })
    await expect(owner.billing.getCustomer()).rejects.toMatchObject(refused(404, 'no_customer'))

    const made = (await owner.billing.createCustomer()).body
    expect(made).toEqual({
      id: expect.stringMatching(/^cus_/) as unknown,
      name: sample.namespace,
      email: sample.owner.email,
      payment_methods: [],
    })
    expect(stripe.kept.customer.get(made.id)).toMatchObject({ metadata: { tenant_id: sample.tenant } })
    const billing = {
      active: false,
      status: 'inactive',
      customer_id: made.id,
      subscription_id: null,
      current_period_end: 0,
    }
    expect(await place.namespace()).toMatchObject({ max_devices: 3, billing })
    expect((await owner.billing.createCustomer()).body, 'once more it is the same').toEqual(made)
    await expect(owner.billing.getSubscription()).rejects.toMatchObject(refused(404, 'no_subscription'))

    const card = stripe.card()
    await owner.billing.attachPaymentMethod({ body: { id: card } })
    await owner.billing.attachPaymentMethod({ body: { id: card } })
    await expect(owner.billing.createSubscription()).rejects.toMatchObject(refused(404, 'no_payment_method'))
    await owner.billing.setDefaultPaymentMethod({ body: { id: card } })
    const method = {
      id: card,
      number: '4242',
      brand: 'visa',
      exp_month: 12,
      exp_year: 2031,
      cvc: '',
      default: true,
    }
    expect((await owner.billing.getCustomer()).body.payment_methods).toEqual([method])

    expect((await owner.billing.createSubscription()).body).toBeUndefined()
    const subscription = (await owner.billing.getSubscription()).body
    expect(subscription).toEqual({
      id: expect.stringMatching(/^sub_/) as unknown,
      active: true,
      status: 'active',
      end_at: expect.any(Number) as unknown,
      invoices: [
        { id: expect.stringMatching(/^in_/) as unknown, status: 'paid', currency: 'usd', amount: 500 },
      ],
    })
    expect(subscription.end_at * 1000).toBeGreaterThan(place.clock.now())
    expect(await place.namespace()).toMatchObject({
      max_devices: -1,
      billing: {
        active: true,
        status: 'active',
        subscription_id: subscription.id,
        current_period_end: subscription.end_at,
      },
    })
    await expect(owner.billing.createSubscription()).rejects.toMatchObject(
      refused(409, 'subscription_exists'),
    )
    expect((await owner.billing.portal()).body).toEqual({
      url: `https://billing.stripe.test/p/session/${made.id}`,
    })
    const [portal] = stripe.asked.filter(({ path }) => path === 'billing_portal/sessions')
    expect(portal?.params).toEqual({ customer: made.id, return_url: 'http://hawser.test/billing' })

    // What it pays with cannot be taken away; another one can.
    await expect(owner.billing.detachPaymentMethod({ body: { id: card } })).rejects.toMatchObject(
      refused(400, 'default_payment_method'),
    )
    const spare = stripe.card()
    await owner.billing.attachPaymentMethod({ body: { id: spare } })
    await owner.billing.setDefaultPaymentMethod({ body: { id: spare } })
    await owner.billing.detachPaymentMethod({ body: { id: card } })
    expect((await owner.billing.getCustomer()).body.payment_methods).toMatchObject([
      { id: spare, default: true },
    ])

    await owner.billing.report({ query: { action: 'namespace_delete' } })
    expect((await owner.billing.getSubscription()).body).toMatchObject({ active: false, status: 'canceled' })
    expect(await place.namespace()).toMatchObject({
      max_devices: 3,
      billing: { active: false, status: 'canceled' },
    })
    await owner.billing.createSubscription()
    expect((await owner.billing.getSubscription()).body).toMatchObject({
      active: true,
      invoices: [{ status: 'paid' }],
    })
  })
})

test('calls to Stripe are form-encoded, name their version, and carry an idempotency key where they make something', async () => {
  await using place = await startBilled()
  await place.subscribed()
  const creating = place.stripe.asked.find(
    ({ method, path }) => method === 'POST' && path === 'subscriptions',
  )
  expect(creating).toMatchObject({
    params: {
      items: { 0: { price: stripePrice, quantity: '1' } },
      metadata: { tenant_id: sample.tenant },
      payment_behavior: 'error_if_incomplete',
    },
    headers: { 'idempotency-key': expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown },
  })
  expect(new Set(place.stripe.asked.map(({ headers }) => headers['stripe-version'])).size).toBe(1)
})

test.each([
  ['expired', 'expired_card', 'Your card has expired.'],
  ['miscopied', 'incorrect_cvc', "Your card's security code is incorrect."],
])('a card that is %s is not attached, and the reason is told', async (kind, code, message) => {
  await using place = await startBilled()
  await place.owner.billing.createCustomer()
  const id = place.stripe.card(kind)
  await expect(place.owner.billing.attachPaymentMethod({ body: { id } })).rejects.toMatchObject({
    status: 424,
    body: { message, code },
  })
  expect((await place.owner.billing.getCustomer()).body.payment_methods).toEqual([])
})

test('a card that cannot pay begins no subscription, and another one does', async () => {
  await using place = await startBilled()
  const { owner, stripe } = place
  await place.customer('poor')
  const before = await place.namespace()
  const message = 'Your card has insufficient funds.'
  for (let time = 0; time < 2; time++)
    await expect(owner.billing.createSubscription()).rejects.toMatchObject({
      status: 424,
      body: { message, code: 'card_declined' },
    })
  await expect(owner.billing.getSubscription()).rejects.toMatchObject(refused(404, 'no_subscription'))
  const { updated_at: _, ...same } = before.billing!
  expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: same })
  // Each was a try of its own: money may have come between them.
  const keys = stripe.asked.flatMap(({ method, path, headers }) =>
    method === 'POST' && path === 'subscriptions' ? [headers['idempotency-key']] : [],
  )
  expect([keys.length, new Set(keys).size]).toEqual([2, 2])

  const id = stripe.card()
  await owner.billing.attachPaymentMethod({ body: { id } })
  await owner.billing.setDefaultPaymentMethod({ body: { id } })
  await owner.billing.createSubscription()
  expect((await place.namespace()).max_devices).toBe(-1)
})

test('open invoices come first: 402', async () => {
  await using place = await startBilled()
  const { owner, stripe } = place
  const { id } = await place.customer()
  const open = stripe.addInvoice(id, 'sub_former', 900, 'open')
  await expect(owner.billing.createSubscription()).rejects.toMatchObject(refused(402, 'open_invoices'))
  expect(stripe.kept.subscription.size).toBe(0)
  open['status'] = 'void'
  await owner.billing.createSubscription()
  const [subscription] = stripe.kept.subscription.values()
  for (const status of ['unpaid', 'incomplete']) {
    subscription!['status'] = status
    await expect(owner.billing.getSubscription()).rejects.toMatchObject(refused(402, 'open_invoices'))
    await expect(owner.billing.createSubscription()).rejects.toMatchObject(refused(402, 'open_invoices'))
    expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: { active: false, status } })
    await expect(owner.billing.report({ query: { action: 'device_accept' } })).rejects.toMatchObject(
      refused(402, 'subscription_inactive'),
    )
  }
})

test.each([
  ['trialing', {}, 'trialing', true],
  ['past_due', {}, 'past_due', true],
  ['active', { cancel_at_period_end: true }, 'to_cancel_at_end_of_period', true],
  ['active', { cancel_at: 2_000_000_000 }, 'to_cancel_at_end_of_period', true],
  ['paused', {}, 'paused', false],
  ['canceled', {}, 'canceled', false],
  ['incomplete_expired', {}, 'incomplete_expired', false],
])('a subscription that is %s %j is shown as %s, active: %s', async (status, more, shown, active) => {
  await using place = await startBilled()
  await place.subscribed()
  const [subscription] = place.stripe.kept.subscription.values()
  Object.assign(subscription!, { status }, more)
  expect((await place.owner.billing.getSubscription()).body).toMatchObject({ status: shown, active })
  expect(await place.namespace()).toMatchObject({
    max_devices: active ? -1 : 3,
    billing: { status: shown, active },
  })
})

test('all invoices are listed, however many pages they fill, the newest first', async () => {
  await using place = await startBilled()
  const { id, customer } = await place.subscribed()
  for (let number = 1; number <= 230; number++)
    place.stripe.addInvoice(customer, id, number, number === 230 ? 'void' : 'paid')
  place.asked()
  const { invoices } = (await place.owner.billing.getSubscription()).body
  expect(invoices.map(({ amount }) => amount)).toEqual([
    ...Array.from({ length: 230 }, (_, index) => 230 - index),
    500,
  ])
  expect(invoices[0]?.status).toBe('voided')
  expect(place.asked().filter((call) => call === 'GET invoices')).toHaveLength(3)
})

test('what belongs to another namespace does not exist', async () => {
  await using place = await startBilled()
  const { stripe, owner, stranger } = place
  await stranger.billing.createCustomer()
  const theirs = stripe.card()
  await stranger.billing.attachPaymentMethod({ body: { id: theirs } })
  const none = refused(404, 'no_payment_method')
  for (const id of [theirs, 'pm_none', '../customers']) {
    await expect(owner.billing.attachPaymentMethod({ body: { id } })).rejects.toMatchObject(
      refused(404, 'no_customer'),
    )
  }
  const { id: mine } = await place.customer()
  for (const id of [theirs, 'pm_none', '../customers', `../customers/${mine}`, 'pm_1?x=1'])
    for (const act of ['attachPaymentMethod', 'detachPaymentMethod', 'setDefaultPaymentMethod'] as const)
      await expect(owner.billing[act]({ body: { id } }), `${act} ${id}`).rejects.toMatchObject(none)
  const loose = stripe.card()
  for (const act of ['detachPaymentMethod', 'setDefaultPaymentMethod'] as const)
    await expect(owner.billing[act]({ body: { id: loose } }), act).rejects.toMatchObject(none)
  expect((await stranger.billing.getCustomer()).body.payment_methods).toMatchObject([{ id: theirs }])
})

test('a customer that was deleted at Stripe can be made anew', async () => {
  await using place = await startBilled()
  const { id } = await place.subscribed()
  const [customer] = place.stripe.kept.customer.values()
  customer!['deleted'] = true
  place.stripe.kept.subscription.get(id)!['status'] = 'canceled'
  await expect(place.owner.billing.getCustomer()).rejects.toMatchObject(refused(404, 'no_customer'))
  const again = (await place.owner.billing.createCustomer()).body
  expect(again.id).not.toBe(customer!.id)
  expect(await place.namespace()).toMatchObject({
    max_devices: 3,
    billing: { customer_id: again.id, active: false, subscription_id: null },
  })
})

test('two owners’ clicks at once make one customer and one subscription', async () => {
  await using place = await startBilled()
  const { owner, stripe } = place
  await Promise.allSettled(Array.from({ length: 4 }, () => owner.billing.createCustomer()))
  expect(stripe.kept.customer.size).toBe(1)
  await place.customer()
  const outcomes = await Promise.allSettled(
    Array.from({ length: 4 }, () => owner.billing.createSubscription()),
  )
  expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
  expect(stripe.kept.subscription.size).toBe(1)
})

test('only the owner may, by token or key; everyone else is refused before Stripe is asked', async () => {
  await using place = await startBilled()
  for (const client of [place.administrator, place.operator, place.observer, place.key, place.device]) {
    await expect(client.billing.createCustomer()).rejects.toMatchObject({
      status: 403,
      body: { code: expect.any(String) as unknown },
    })
    await expect(client.billing.portal()).rejects.toMatchObject({ status: 403 })
  }
  await expect(place.owner.billing.attachPaymentMethod({ body: { id: '' } })).rejects.toMatchObject({
    status: 400,
  })
  expect(place.asked()).toEqual([])
  const { id } = (await place.owner.apiKeys.create({ body: { name: 'treasurer', expires_at: -1 } })).body
  expect((await place.api({ apiKey: id }).billing.createCustomer()).status).toBe(200)
})
