// A place whose namespaces pay: a service that is billed by the double of Stripe, with the world of the
// examples in it, and the steps by which its owner becomes a customer and subscribes. The sample namespace
// has one accepted device at first.
import { expect } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { startPlace, type Place } from './place.ts'
import type { ServiceOptions } from './service.ts'
import { startStripe, type StripeDouble } from './stripe.ts'

export interface Billed extends Place {
  readonly stripe: StripeDouble
  /** Makes the namespace a customer with a card to charge. */
  customer(card?: Parameters<StripeDouble['card']>[0]): Promise<{ id: string; method: string }>
  subscribed(): Promise<{ id: string; customer: string; method: string }>
  /** The number of devices of the subscription, at Stripe. */
  quantity(): number
  /** As its owner sees it. */
  namespace(): Promise<{ max_devices: number; device_count: number; billing: Record<string, unknown> | null }>
  /** Calls of Stripe since the last look, as `METHOD path`. */
  asked(): string[]
}

export async function startBilled({ env = {}, ...options }: ServiceOptions = {}): Promise<Billed> {
  let started: Place | undefined
  const stripe = await startStripe(() => started?.clock.now() ?? Date.now())
  let place: Place
  try {
    place = started = await startPlace({ ...options, env: { ...stripe.env, ...env } })
  } catch (error) {
    await stripe[Symbol.asyncDispose]()
    throw error
  }
  const stop = place[Symbol.asyncDispose].bind(place)

  async function customer(card: Parameters<StripeDouble['card']>[0] = 'good') {
    const { id } = (await place.owner.billing.createCustomer()).body
    const method = stripe.card(card)
    await place.owner.billing.attachPaymentMethod({ body: { id: method } })
    await place.owner.billing.setDefaultPaymentMethod({ body: { id: method } })
    return { id, method }
  }

  return Object.assign(place, {
    stripe,
    customer,
    async subscribed() {
      const made = await customer()
      await place.owner.billing.createSubscription()
      const { id } = (await place.owner.billing.getSubscription()).body
      return { id, customer: made.id, method: made.method }
    },
    quantity() {
      const [live] = [...stripe.kept.subscription.values()].filter((one) => one['status'] !== 'canceled')
      return (live!['items'] as { data: { quantity: number }[] }).data[0]!.quantity
    },
    namespace: async () => (await place.owner.namespaces.get({ params: { tenant: sample.tenant } })).body,
    asked: () =>
      stripe.asked
        .splice(0)
        .map(({ method, path }) => `${method} ${path.replace(/(cus|pm|sub|in)_\w+/, '$1')}`),
    async [Symbol.asyncDispose]() {
      stripe.well()
      await stop()
      await stripe[Symbol.asyncDispose]()
    },
  })
}

export const refused = (status: number, code: string) => ({
  status,
  body: { message: expect.stringMatching(/\w \w.*\.$/) as unknown, code },
})
