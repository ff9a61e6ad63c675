// The payment provider goes away, breaks, hangs, or does what it was asked and loses its answer. Callers are
// told 424 with a code, soon; nothing of ours changes; devices are accepted and reached as before; and what
// it missed it is told later, once. No key of its stands in any line of the log.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { stripeProvider } from '../../server/src/billing/stripe.ts'
import { hour_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { openLog } from '../../server/src/kit/log.ts'
import { refused, startBilled, type Billed } from '../harness/billed.ts'
import { startPlace } from '../harness/place.ts'
import { startService } from '../harness/service.ts'
import { startStripe, stripeKey, stripePrice, webhookSecret, type Trouble } from '../harness/stripe.ts'
import { temporaryFolder } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })

const waiting = (place: Billed) => place.rooms.database.db.selectFrom('usage_reports').selectAll().execute()

/** Every call that an owner makes, and one that a member makes. */
const calls = (place: Billed) => ({
  'get customer': () => place.owner.billing.getCustomer(),
  'get subscription': () => place.owner.billing.getSubscription(),
  'create subscription': () => place.owner.billing.createSubscription(),
  attach: () => place.owner.billing.attachPaymentMethod({ body: { id: 'pm_1' } }),
  detach: () => place.owner.billing.detachPaymentMethod({ body: { id: 'pm_1' } }),
  default: () => place.owner.billing.setDefaultPaymentMethod({ body: { id: 'pm_1' } }),
  portal: () => place.owner.billing.portal(),
  report: () => place.owner.billing.report({ query: { action: 'device_accept' } }),
  'report of the end': () => place.owner.billing.report({ query: { action: 'namespace_delete' } }),
})

test.each<[Trouble, string]>([
  ['error', 'provider_away'],
  ['reset', 'provider_away'],
  ['busy', 'provider_busy'],
  ['wrong key', 'provider_misconfigured'],
])(
  'when Stripe answers with %s, everything says 424 %s, nothing changes, and devices are accepted',
  async (trouble, code) => {
    await using place = await startBilled()
    await place.subscribed()
    const before = await place.namespace()
    place.stripe.trouble(trouble)
    for (const [what, call] of Object.entries(calls(place)))
      await expect(call(), what).rejects.toMatchObject(refused(424, code))
    expect(await place.namespace()).toEqual(before)
    expect((await place.observer.billing.evaluate()).body).toEqual({ can_accept: true, can_connect: true })
    for (let number = 0; number < 4; number++) await place.accepted(`tug-${number}`)
    await expect.poll(() => waiting(place)).toMatchObject([{ wanted: 'quantity', tries: 1 }])

    place.stripe.well()
    place.clock.forward(minute_ms)
    await place.rooms.usage!.deliver()
    expect([place.quantity(), await waiting(place)]).toEqual([5, []])
    for (const secret of [stripeKey, webhookSecret]) expect(place.log()).not.toContain(secret)
    expect(place.log()).toContain('billing.refused')
  },
)

test('when nobody listens where Stripe should be, it is the same, and a new namespace can still be made and used', async () => {
  await using place = await startBilled({ env: { HAWSER_STRIPE_URL: 'http://127.0.0.1:9' } })
  await expect(place.owner.billing.createCustomer()).rejects.toMatchObject(refused(424, 'provider_away'))
  expect((await place.namespace()).billing).toBeNull()
  for (const name of ['tug-1', 'tug-2']) await place.accepted(name)
  const { uid } = await place.enrol()
  await expect(place.owner.devices.accept({ params: { uid } })).rejects.toMatchObject({ status: 402 })
  const reachable = await place.rooms.logins.find(`${sample.namespace}.tug-1`)
  expect(await place.rooms.logins.withinLimit(reachable!)).toBe(true)
})

test('a Stripe that hangs is given up: one try and one more, with the same idempotency key', async () => {
  await using stripe = await startStripe()
  const lines: string[] = []
  const sink = new Writable({ write: (chunk: Buffer, _, done) => (lines.push(String(chunk)), done()) })
  using provider = stripeProvider({
    url: stripe.url,
    key: stripeKey,
    price: stripePrice,
    webhookSecret,
    log: openLog('debug', sink),
    timeout_ms: 150,
  })
  stripe.trouble('hang', /POST customers/)
  const call = provider.createCustomer({ tenant_id: 't', name: 'n', email: 'a@example.com' }, 'key-1')
  await expect(call).rejects.toMatchObject({ kind: 'providerFailed', code: 'provider_away' })
  expect(stripe.asked.map(({ headers }) => headers['idempotency-key'])).toEqual(['key-1', 'key-1'])
  expect(lines.join('')).not.toContain(stripeKey)
  stripe.well()
})

test('an owner hears of a Stripe that hangs, and others do not wait with the owner', async () => {
  await using place = await startBilled()
  await place.owner.billing.createCustomer()
  place.stripe.trouble('hang')
  let answered = false
  const asking = place.owner.billing.getCustomer().then(
    () => 'an answer',
    (error: unknown) => ((answered = true), error),
  )
  for (const name of ['tug-1', 'tug-2']) await place.accepted(name)
  expect((await place.owner.devices.list()).status).toBe(200)
  expect(answered).toBe(false)
  expect(await asking).toMatchObject(refused(424, 'provider_away'))
})

test('a customer and a subscription whose answers are lost are made once', async () => {
  await using place = await startBilled()
  const { owner, stripe } = place
  stripe.trouble('lose', /POST customers$/)
  await expect(owner.billing.createCustomer()).rejects.toMatchObject(refused(424, 'provider_away'))
  expect([stripe.kept.customer.size, (await place.namespace()).billing]).toEqual([1, null])
  stripe.well()
  const { id } = (await owner.billing.createCustomer()).body
  expect([...stripe.kept.customer.keys()]).toEqual([id])

  await place.customer()
  stripe.trouble('lose', /POST subscriptions$/)
  await expect(owner.billing.createSubscription()).rejects.toMatchObject(refused(424, 'provider_away'))
  expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: { active: false } })
  stripe.well()
  // It is found, by asking; nobody pays twice.
  await expect(owner.billing.createSubscription()).rejects.toMatchObject(refused(409, 'subscription_exists'))
  expect([stripe.kept.subscription.size, stripe.kept.invoice.size]).toEqual([1, 1])
  expect(await place.namespace()).toMatchObject({ max_devices: -1, billing: { active: true } })
})

test('a call that is still under way at Stripe is not made a second time', async () => {
  await using place = await startBilled()
  const letGo = place.stripe.hold()
  const first = place.owner.billing.createCustomer()
  await expect.poll(() => place.stripe.asked.length).toBe(1)
  await expect(place.owner.billing.createCustomer()).rejects.toMatchObject(refused(424, 'provider_busy'))
  letGo()
  const { id } = (await first).body
  expect([...place.stripe.kept.customer.keys()]).toEqual([id])
})

test('reports wait longer each time while Stripe is away, and are one for each subscription', async () => {
  await using place = await startBilled()
  await place.subscribed()
  place.stripe.trouble('error', /subscriptions\//)
  for (let number = 0; number < 10; number++) await place.accepted(`tug-${number}`)
  await place.rooms.usage!.deliver()
  expect(await waiting(place)).toMatchObject([{ tries: 1 }])
  const waits: number[] = []
  for (let time = 0; time < 12; time++) {
    const [report] = await waiting(place)
    waits.push(Math.round((Date.parse(report!.due_at) - place.clock.now()) / 1000))
    place.clock.forward(2 * hour_ms)
    await place.rooms.usage!.deliver()
  }
  for (const [index, wait] of waits.entries())
    expect(wait).toBeGreaterThanOrEqual(Math.min(waits[index - 1] ?? 0, 3599))
  expect(Math.max(...waits)).toBeLessThanOrEqual(3600)
  expect(await waiting(place)).toHaveLength(1)
  place.stripe.well()
  place.clock.forward(2 * hour_ms)
  await place.rooms.usage!.deliver()
  expect([place.quantity(), await waiting(place)]).toEqual([11, []])
})

test('reports outlive the server', async () => {
  using home = temporaryFolder()
  await using stripe = await startStripe()
  const at = { folder: home.path, env: stripe.env }
  {
    await using place = await startPlace(at)
    await place.owner.billing.createCustomer()
    const id = stripe.card()
    await place.owner.billing.attachPaymentMethod({ body: { id } })
    await place.owner.billing.setDefaultPaymentMethod({ body: { id } })
    await place.owner.billing.createSubscription()
    stripe.trouble('error')
    await place.accepted('tug')
  }
  stripe.well()
  await using again = await startService(at)
  again.clock.forward(minute_ms)
  await again.rooms.usage!.deliver()
  expect([...stripe.kept.subscription.values()]).toMatchObject([{ items: { data: [{ quantity: 2 }] } }])
})

test('a report that Stripe refuses is dropped with a line in the log, and does not hold up the others', async () => {
  await using place = await startBilled()
  await place.subscribed()
  await place.rooms.stores.billing.report('sub_unknown', sample.otherTenant)
  await place.accepted('tug')
  await expect.poll(() => waiting(place)).toEqual([])
  expect(place.quantity()).toBe(2)
  expect(place.log()).toMatch(/billing\.unreported.*sub_unknown/)
})

test('a namespace is deleted while Stripe is away, and its subscription ends when Stripe is back', async () => {
  await using place = await startBilled()
  const { id } = await place.subscribed()
  await place.accepted('tug')
  await expect.poll(() => waiting(place)).toEqual([])
  place.stripe.trouble('reset')
  await place.owner.namespaces.remove({ params: { tenant: sample.tenant } })
  await expect.poll(() => waiting(place)).toMatchObject([{ subscription_id: id, wanted: 'cancel', tries: 1 }])
  place.stripe.well()
  place.clock.forward(minute_ms)
  await place.rooms.usage!.deliver()
  expect(place.stripe.kept.subscription.get(id)!['status']).toBe('canceled')
  // One more look, at what was under way when the namespace went.
  expect(await waiting(place)).toMatchObject([{ subscription_id: id, wanted: 'recheck' }])
  place.clock.forward(minute_ms)
  await place.rooms.usage!.deliver()
  expect(await waiting(place)).toEqual([])
})

test('an answer that is no JSON is a Stripe that is away', async () => {
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Maintenance</h1>'),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    await using place = await startBilled({ env: { HAWSER_STRIPE_URL: `http://127.0.0.1:${port}` } })
    await expect(place.owner.billing.createCustomer()).rejects.toMatchObject(refused(424, 'provider_away'))
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
