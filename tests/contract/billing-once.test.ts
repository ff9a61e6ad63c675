// A namespace pays once. Whatever a slow provider answers late and out of order, and whoever else asks at the
// same time, there is one customer, one subscription and one invoice. A namespace that pays for two all the
// same, since an older server or a lost race created the second, gets the extra one ended and is told.
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { day_ms, minute_ms } from '../../server/src/kit/clock.ts'
import { refused, startBilled, type Billed } from '../harness/billed.ts'
import { stripePrice } from '../harness/stripe.ts'
import { oneDatabase, times } from '../harness/tier.ts'

const live = ({ stripe }: Billed) =>
  [...stripe.kept.subscription.values()].filter((one) => one['status'] !== 'canceled')
const charged = ({ stripe }: Billed) =>
  [...stripe.kept.invoice.values()].filter((one) => one['status'] === 'paid')
const waiting = (place: Billed) => place.rooms.database.db.selectFrom('usage_reports').selectAll().execute()
const subscribing = (place: Billed) =>
  place.stripe.asked.filter(({ method, path }) => method === 'POST' && path === 'subscriptions')

/** A subscription as an older server created it: a second one, known to Stripe alone. */
async function double(place: Billed, customer: string, more: object = {}): Promise<string> {
  const [first] = place.stripe.kept.subscription.values()
  const id = `sub_extra_${place.stripe.kept.subscription.size}`
  place.stripe.kept.subscription.set(id, { ...structuredClone(first!), id, customer, ...more })
  return id
}

/** Milliseconds that a call takes before it is acted on and before it is answered, again and again. */
const delays = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 40 })), {
  minLength: 1,
  maxLength: 12,
})

describe.each(oneDatabase)('on %s', (_, options) => {
  // Each run has a server of its own.
  const timeout = times(60_000, 300_000)
  test(
    'two to twenty calls, at once or soon after each other, make one subscription and one invoice',
    { timeout },
    async () => {
      const schedules = fc.array(fc.integer({ min: 0, max: 250 }), { minLength: 2, maxLength: 20 })
      await fc.assert(
        fc.asyncProperty(schedules, delays, async (starts, pauses) => {
          await using place = await startBilled(await options())
          await place.customer()
          let turn = 0
          place.stripe.meet(async (when) => {
            const [before, after] = pauses[turn++ % pauses.length]!
            await sleep(when === 'asked' ? before : after)
          })
          const outcomes = await Promise.allSettled(
            starts.map(async (start) => {
              await sleep(start)
              await place.owner.billing.createSubscription()
            }),
          )
          place.stripe.well()
          for (const outcome of outcomes)
            if (outcome.status === 'rejected')
              expect(outcome.reason).toMatchObject({
                body: { code: expect.stringMatching(/^(subscription_exists|provider_busy)$/) as unknown },
              })
          expect([place.stripe.kept.subscription.size, charged(place).length]).toEqual([1, 1])
          expect(await place.namespace()).toMatchObject({ max_devices: -1, billing: { active: true } })
        }),
        { numRuns: times(4, 25) },
      )
    },
  )
})

test('a second call that asked before the first was done creates nothing, whenever it goes on', async () => {
  await using place = await startBilled()
  await place.customer()
  // The second call has been told that there is no subscription, and then waits.
  const told = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  let lists = 0
  place.stripe.meet(async (when, { method, path }) => {
    if (when !== 'done' || `${method} ${path}` !== 'GET subscriptions' || ++lists > 1) return
    told.resolve()
    await first.promise
  })
  const late = place.owner.billing.createSubscription()
  await told.promise
  await place.owner.billing.createSubscription()
  first.resolve()
  await late
  expect([place.stripe.kept.subscription.size, charged(place).length]).toEqual([1, 1])
  const keys = subscribing(place).map(({ headers }) => headers['idempotency-key'])
  expect([keys.length, new Set(keys).size]).toEqual([2, 1])
})

test('a retry sends the number of devices of the first call, and the right one is told afterwards', async () => {
  await using place = await startBilled()
  await place.customer()
  place.stripe.trouble('reset', /POST subscriptions$/)
  await expect(place.owner.billing.createSubscription()).rejects.toMatchObject(refused(424, 'provider_away'))
  place.stripe.well()
  await place.accepted('tug')
  await place.owner.billing.createSubscription()
  expect(new Set(subscribing(place).map(({ params }) => JSON.stringify(params))).size).toBe(1)
  await expect.poll(() => place.quantity()).toBe(2)
  expect(charged(place)).toHaveLength(1)
})

test('a key is good for a day, and no longer than what was created with it', async () => {
  await using place = await startBilled()
  await place.customer()
  place.stripe.trouble('reset', /POST subscriptions$/)
  for (const wait_ms of [0, day_ms - minute_ms, 2 * minute_ms]) {
    place.clock.forward(wait_ms)
    await expect(place.owner.billing.createSubscription()).rejects.toMatchObject({ status: 424 })
  }
  place.stripe.well()
  const keys = () => [...new Set(subscribing(place).map(({ headers }) => headers['idempotency-key']))]
  expect(keys()).toHaveLength(2)

  await place.owner.billing.createSubscription()
  expect(keys()).toHaveLength(2)
  await place.owner.billing.report({ query: { action: 'namespace_delete' } })
  expect(live(place)).toEqual([])
  await place.owner.billing.createSubscription()
  expect([keys().length, live(place).length]).toEqual([3, 1])
})

test('a lost answer, a subscription that ended since, and a new one', async () => {
  await using place = await startBilled()
  await place.customer()
  place.stripe.trouble('lose', /POST subscriptions$/)
  await expect(place.owner.billing.createSubscription()).rejects.toMatchObject({ status: 424 })
  place.stripe.well()
  live(place)[0]!['status'] = 'canceled'
  await place.owner.billing.createSubscription()
  expect(live(place), 'not the first answer again').toHaveLength(1)
  expect((await place.owner.billing.getSubscription()).body).toMatchObject({ active: true })
})

test('an event shows a second subscription: it is ended, the first stays, and owner, log and audit log are told', async () => {
  await using place = await startBilled()
  const { id, customer } = await place.subscribed()
  const extra = await double(place, customer)
  const event = place.stripe.event('invoice.paid', { id: 'in_2', object: 'invoice', customer })
  expect((await place.stripe.send(place.url, event)).status).toBe(200)
  await expect.poll(() => live(place).map((one) => one.id)).toEqual([id])
  await expect.poll(() => waiting(place)).toEqual([])
  expect(place.log()).toMatch(new RegExp(`billing.extra_ended.*${extra}`))
  expect(await place.namespace()).toMatchObject({ max_devices: -1, billing: { subscription_id: id } })
  const { body } = await place.owner.audit.list({ query: { action: 'billing.updated' } })
  expect(body.entries[0]).toMatchObject({
    detail: { what: 'extra subscription ended', subscription_id: extra },
  })
  const email = await place.newestEmail(sample.owner.email)
  expect(email.subject).toBe(`Duplicate subscription of ${sample.namespace} cancelled`)
  expect(email.text).toContain(extra)
})

test('without any event each customer is looked at once a day', async () => {
  await using place = await startBilled()
  const { id, customer } = await place.subscribed()
  await double(place, customer)
  await place.rooms.subscriptions!.look()
  expect(live(place), 'it was asked a moment ago').toHaveLength(2)
  place.clock.forward(day_ms + minute_ms)
  await place.rooms.subscriptions!.look()
  await place.rooms.usage!.deliver()
  expect(live(place).map((one) => one.id)).toEqual([id])
})

test('a subscription that somebody else made for the customer is left alone', async () => {
  await using place = await startBilled()
  const { customer } = await place.subscribed()
  await double(place, customer, { metadata: {} })
  await place.owner.billing.getSubscription()
  await place.rooms.usage!.deliver()
  expect(live(place)).toHaveLength(2)
  expect(live(place)[0]).toMatchObject({ items: { data: [{ price: { id: stripePrice } }] } })
})

test('whoever cancels pays for nothing more, also not for an extra subscription', async () => {
  await using place = await startBilled()
  const { customer } = await place.subscribed()
  await double(place, customer)
  await place.owner.billing.report({ query: { action: 'namespace_delete' } })
  expect(live(place)).toEqual([])
  expect(await place.namespace()).toMatchObject({ max_devices: 3, billing: { active: false } })
})

test('a namespace takes all its subscriptions along, also one that was being created', async () => {
  await using place = await startBilled()
  const { customer } = await place.subscribed()
  await double(place, customer)
  await place.owner.namespaces.remove({ params: { tenant: sample.tenant } })
  await expect.poll(() => live(place)).toEqual([])

  await double(place, customer, { status: 'active' })
  expect(live(place), 'created while the namespace was being deleted').toHaveLength(1)
  place.clock.forward(2 * minute_ms)
  await place.rooms.usage!.deliver()
  expect([live(place), await waiting(place)]).toEqual([[], []])
})
