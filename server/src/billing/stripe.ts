// Stripe as a payment provider: the only file that knows its SDK, loaded only when a key is set. Every call
// ends within seconds: one try and one more, with the same idempotency key. Errors pass on by kind and code;
// their sentence only where it is written for the holder of a card. Neither these sentences nor our keys are
// logged.
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import Stripe from 'stripe'
import { Failure } from '@hawser/contract/failures'
import { second_ms } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Customer, Provider, ProviderEvent, SubscriptionState } from './provider.ts'

export interface StripeOptions {
  url: string
  key: string
  /** The price of one device; recurring, licensed, for each unit. */
  price: string
  webhookSecret: string
  log: Log
  timeout_ms?: number
}

/** Charging a card takes Stripe a few seconds; nobody waits longer than twice this. */
const usual_timeout_ms = 5 * second_ms
/** Between the moment of a signature and now. */
const tolerance_s = 300
const page_size = 100
/** Customers can see the rest on the provider's own pages. */
const most_listed = 300

const ended = new Set(['canceled', 'incomplete_expired'])
const passing = new Set(['provider_away', 'provider_busy', 'provider_misconfigured'])

export function stripeProvider({
  url,
  key,
  price,
  webhookSecret,
  log,
  timeout_ms = usual_timeout_ms,
}: StripeOptions): Provider {
  const { protocol, hostname, port } = new URL(url)
  const secure = protocol === 'https:'
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 20 })
  const stripe = new Stripe(key, {
    host: hostname,
    port: port || (secure ? 443 : 80),
    protocol: secure ? 'https' : 'http',
    httpAgent: agent,
    timeout: timeout_ms,
    maxNetworkRetries: 1,
    telemetry: false,
  })

  const calls = { stripe, ...outcomes(log) }

  return {
    ...customersOf(calls),
    ...subscriptionsOf(calls, price),
    readEvent: (payload, signature, now) => readEvent(stripe, webhookSecret, payload, signature, now),
    isPassing: (error) => error instanceof Failure && passing.has(error.code ?? ''),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

interface Calls extends ReturnType<typeof outcomes> {
  readonly stripe: Stripe
}

/** Turns the errors of calls into failures, and logs them. */
function outcomes(log: Log) {
  async function ask<T>(what: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      const failure = failureOf(error)
      const said =
        error instanceof Stripe.errors.StripeError
          ? { type: error.type, reason: error.code, request: error.requestId }
          : {}
      const level =
        failure.code === 'provider_misconfigured'
          ? 'error'
          : passing.has(failure.code ?? '')
            ? 'warn'
            : 'info'
      log[level]({ event: 'billing.refused', what, kind: failure.code, ...said })
      throw failure
    }
  }

  /** Undefined where Stripe reports that there is no such thing. */
  async function find<T>(what: string, call: () => Promise<T>): Promise<T | undefined> {
    return ask(what, async () => {
      try {
        return await call()
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    })
  }

  return { ask, find }
}

function customersOf({
  stripe,
  ask,
  find,
}: Calls): Pick<
  Provider,
  'createCustomer' | 'findCustomer' | 'ownerOfMethod' | 'attach' | 'detach' | 'setDefault' | 'portal'
> {
  async function customerOf(found: Stripe.Customer): Promise<Customer> {
    const methods = await ask('list payment methods', () =>
      stripe.customers
        .listPaymentMethods(found.id, { type: 'card', limit: page_size })
        .autoPagingToArray({ limit: most_listed }),
    )
    return {
      id: found.id,
      name: found.name ?? '',
      email: found.email ?? '',
      default_method: idOf(found.invoice_settings.default_payment_method),
      methods: methods.flatMap(({ id, card }) =>
        card
          ? [
              {
                id,
                number: card.last4 ?? '',
                brand: card.brand,
                exp_month: card.exp_month,
                exp_year: card.exp_year,
              },
            ]
          : [],
      ),
    }
  }

  return {
    async createCustomer({ tenant_id, name, email }, idempotencyKey) {
      const made = await ask('create a customer', () =>
        stripe.customers.create({ name, email, metadata: { tenant_id } }, { idempotencyKey }),
      )
      return customerOf(made)
    },

    async findCustomer(customer_id) {
      const found = await find('find a customer', () => stripe.customers.retrieve(customer_id))
      return !found || found.deleted ? undefined : customerOf(found)
    },

    async ownerOfMethod(id) {
      // The id becomes part of an address; anything else there would make another address.
      if (!/^\w+$/.test(id)) return undefined
      const found = await find('find a payment method', () => stripe.paymentMethods.retrieve(id))
      return found && (idOf(found.customer) ?? null)
    },
    async attach(customer, id) {
      await ask('attach a payment method', () => stripe.paymentMethods.attach(id, { customer }))
    },
    async detach(id) {
      await ask('detach a payment method', () => stripe.paymentMethods.detach(id))
    },
    async setDefault(customer_id, id) {
      await ask('set the default payment method', () =>
        stripe.customers.update(customer_id, { invoice_settings: { default_payment_method: id } }),
      )
    },

    async portal(customer, return_url) {
      return (
        await ask('open the portal', () => stripe.billingPortal.sessions.create({ customer, return_url }))
      ).url
    },
  }
}

function subscriptionsOf(
  { stripe, ask, find }: Calls,
  price: string,
): Pick<Provider, 'subscriptions' | 'subscribe' | 'invoices' | 'hasOpenInvoices' | 'setQuantity' | 'cancel'> {
  return {
    async subscriptions(customer, tenant_id) {
      const all = await ask('list subscriptions', () =>
        stripe.subscriptions
          .list({ customer, status: 'all', limit: page_size })
          .autoPagingToArray({ limit: most_listed }),
      )
      return all
        .filter(
          (one) =>
            one.metadata['tenant_id'] === tenant_id || one.items.data.some((item) => item.price.id === price),
        )
        .map((one) => stateOf(one, tenant_id))
    },

    async subscribe({ customer_id, tenant_id, quantity }, idempotencyKey) {
      const made = await ask('subscribe', () =>
        stripe.subscriptions.create(
          {
            customer: customer_id,
            items: [{ price, quantity }],
            metadata: { tenant_id, key: idempotencyKey },
            // A card that is refused leaves nothing behind.
            payment_behavior: 'error_if_incomplete',
          },
          { idempotencyKey },
        ),
      )
      return stateOf(made, tenant_id)
    },

    async invoices(subscription) {
      const all = await ask('list invoices', () =>
        stripe.invoices.list({ subscription, limit: page_size }).autoPagingToArray({ limit: most_listed }),
      )
      return all.map(({ id, status, currency, amount_due }) => ({
        id: id ?? '',
        // Clients expect ShellHub's word.
        status: status === 'void' ? 'voided' : (status ?? 'draft'),
        currency,
        amount: amount_due,
      }))
    },

    async hasOpenInvoices(customer) {
      const open = await ask('list open invoices', () =>
        stripe.invoices.list({ customer, status: 'open', limit: 1 }),
      )
      return open.data.length > 0
    },

    async setQuantity(subscription_id, quantity) {
      const found = await ask('find a subscription', () => stripe.subscriptions.retrieve(subscription_id))
      const item = found.items.data.find((one) => one.price.id === price) ?? found.items.data[0]
      if (!item || ended.has(found.status))
        throw new Failure('notFound', { message: 'The subscription has ended.', code: 'no_subscription' })
      if (item.quantity === quantity) return
      await ask('change the quantity', () =>
        stripe.subscriptions.update(subscription_id, {
          items: [{ id: item.id, quantity }],
          proration_behavior: 'create_prorations',
        }),
      )
    },

    async cancel(subscription_id) {
      const found = await find('find a subscription', () => stripe.subscriptions.retrieve(subscription_id))
      if (!found || ended.has(found.status)) return
      await find('cancel a subscription', () =>
        stripe.subscriptions.cancel(subscription_id, { invoice_now: true, prorate: true }),
      )
    },
  }
}

function readEvent(
  stripe: Stripe,
  webhookSecret: string,
  payload: string,
  signature: string,
  now: number,
): ProviderEvent {
  try {
    const event = stripe.webhooks.constructEvent(
      payload,
      signature,
      webhookSecret,
      tolerance_s,
      undefined,
      now,
    )
    // The SDK refuses what is too old; a signature from the future could be reused for as long.
    const signed_at = Number(/(?:^|,)t=(\d+)/.exec(signature)?.[1])
    if (!(signed_at <= now / 1000 + tolerance_s)) throw new Error('signed in the future')
    const about = event.data.object as {
      object?: string
      id?: string
      customer?: string | { id: string } | null
    }
    return {
      id: event.id,
      type: event.type,
      customer_id: about.object === 'customer' ? about.id : idOf(about.customer),
    }
  } catch {
    throw new Failure('invalid', {
      message: 'The signature of the event is wrong or too old.',
      code: 'wrong_signature',
    })
  }
}

function stateOf(subscription: Stripe.Subscription, tenant_id: string): SubscriptionState {
  const { id, status, cancel_at, cancel_at_period_end, items, metadata } = subscription
  const leaving =
    (status === 'active' || status === 'trialing') && (cancel_at_period_end || cancel_at !== null)
  return {
    id,
    status: leaving ? 'to_cancel_at_end_of_period' : status,
    end_at: Math.max(0, ...items.data.map((item) => item.current_period_end)),
    quantity: items.data[0]?.quantity ?? 0,
    ended: ended.has(status),
    key: metadata['key'],
    ours: metadata['tenant_id'] === tenant_id,
  }
}

/** Stripe gives an id, or the whole object where it is expanded. */
function idOf(thing: string | { id: string } | null | undefined): string | undefined {
  return typeof thing === 'string' ? thing : thing?.id
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeError &&
    (error.code === 'resource_missing' || error.statusCode === 404)
  )
}

function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  const refused = (code: string, message?: string) =>
    new Failure('providerFailed', { code, ...(message && { message }), cause: error })
  const away = () =>
    refused('provider_away', 'The payment provider cannot be reached at the moment; please try again later.')
  if (!(error instanceof Stripe.errors.StripeError)) return away()
  // These kinds mean nothing about the request itself.
  if (
    error instanceof Stripe.errors.StripeRateLimitError ||
    error instanceof Stripe.errors.StripeIdempotencyError ||
    error.code === 'idempotency_key_in_use'
  )
    return refused('provider_busy', 'The payment provider is busy at the moment; please try again later.')
  if (
    error instanceof Stripe.errors.StripeAuthenticationError ||
    error instanceof Stripe.errors.StripePermissionError
  )
    return refused(
      'provider_misconfigured',
      'The payment provider rejected the credentials of this server; its administrator must check the settings.',
    )
  if (error instanceof Stripe.errors.StripeCardError)
    return refused(error.code ?? 'card_declined', error.message)
  if (isMissing(error))
    return new Failure('notFound', {
      message: 'The payment provider has no such object.',
      code: 'resource_missing',
      cause: error,
    })
  if ((error.statusCode ?? 500) < 500)
    return refused(error.code ?? 'refused', 'The payment provider refused the request.')
  return away()
}
