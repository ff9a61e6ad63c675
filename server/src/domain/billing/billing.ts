// Billing: the namespace as a customer of the payment provider. The database changes only after the provider
// agreed. Callers reach only their own namespace's customer. Without a provider there is no limit, and every
// operation says so.
import { Failure } from '@hawser/contract/failures'
import type { Provider, SubscriptionState } from '../../billing/provider.ts'
import { iso } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import { hasRoom, isOver } from './device-limit.ts'
import { customers } from './customers.ts'
import { creatingOnce } from './once.ts'
import { billingRecords, noCustomer, noSubscription, openInvoices } from './records.ts'
import type { Rules } from '../callers/rules.ts'
import { counting, isActive, isUnpaid, slot_hold_ms, type Subscriptions } from './subscriptions.ts'
import type { Usage } from './usage.ts'

export interface BillingParts extends With<'stores' | 'audit' | 'clock'> {
  provider: Provider
  subscriptions: Subscriptions
  usage: Usage
  url: string
}

export const noProvider = () =>
  new Failure('providerFailed', {
    message: 'This server has no payment provider.',
    code: 'provider_not_configured',
  })

export function noBilling(): Rules<'billing'> {
  const none = (): never => {
    throw noProvider()
  }
  return {
    getCustomer: none,
    createCustomer: none,
    getSubscription: none,
    createSubscription: none,
    attachPaymentMethod: none,
    detachPaymentMethod: none,
    setDefaultPaymentMethod: none,
    portal: none,
    evaluate: none,
    report: none,
    webhook: none,
  }
}

function requireNone(all: readonly SubscriptionState[]): void {
  const state = counting(all)
  if (!state || state.ended) return
  if (isUnpaid(state.status)) throw openInvoices()
  throw new Failure('conflict', { message: 'There is a subscription already.', code: 'subscription_exists' })
}

export function billing(parts: BillingParts): Rules<'billing'> {
  const { stores, clock, provider, subscriptions, usage } = parts
  const once = creatingOnce(parts)
  const records = billingRecords(parts)
  const { namespaceOf, recordOf, note } = records

  async function present(tenant_id: string, customer_id: string): Promise<SubscriptionState[]> {
    const all = await subscriptions.refresh(tenant_id, customer_id)
    usage.wake()
    return all
  }

  return {
    ...customers(parts, records, once),

    async getSubscription(_, caller) {
      const { customer_id } = await recordOf(caller)
      const state = counting(await present(caller.tenant_id, customer_id))
      if (!state) throw noSubscription()
      if (isUnpaid(state.status)) throw openInvoices()
      const { id, status, end_at } = state
      return { id, active: isActive(status), status, end_at, invoices: await provider.invoices(id) }
    },

    async createSubscription(_, caller) {
      const { tenant_id } = caller
      const { customer_id } = await recordOf(caller)
      const key = await once.takeKey(tenant_id, 'subscription', async (taken) => {
        const all = await present(tenant_id, customer_id)
        requireNone(all)
        return all.some((one) => one.key === taken)
      })
      const customer = await provider.findCustomer(customer_id)
      if (!customer) throw noCustomer()
      if (customer.default_method === undefined)
        throw new Failure('notFound', {
          message: 'There is no payment method to charge yet.',
          code: 'no_payment_method',
        })
      if (await provider.hasOpenInvoices(customer_id)) throw openInvoices()
      const quantity = Math.max(1, await stores.namespaces.deviceCount(tenant_id))
      const made = await once.create({ tenant_id, what: 'subscription', key }, { quantity }, async (params) =>
        provider.subscribe({ customer_id, tenant_id, quantity: params.quantity }, key),
      )
      // An event that arrived in the meantime may have asked for the subscription too early.
      await subscriptions.settle(tenant_id, customer_id, clock.now(), [made])
      await note(caller, 'subscription created')
      usage.wake()
    },

    /** Access to devices must not depend on a provider that may be unreachable. */
    async evaluate(_, caller) {
      const { tenant_id, max_devices } = await namespaceOf(caller)
      const accepted = await stores.namespaces.deviceCount(tenant_id)
      const kept = (await stores.of(tenant_id).removedDevices.list(iso(clock.now() - slot_hold_ms))).length
      return {
        can_accept: hasRoom({ accepted, kept, max_devices }),
        can_connect: !isOver({ accepted, max_devices }),
      }
    },

    async report({ query }, caller) {
      const { subscription_id, active, customer_id } = await recordOf(caller)
      if (subscription_id === null) throw noSubscription()
      if (!active)
        throw new Failure('paymentRequired', {
          message: 'The subscription is not active.',
          code: 'subscription_inactive',
        })
      if (query.action === 'device_accept') return usage.report(subscription_id, caller.tenant_id)
      await usage.cancelAll({ subscription_id, customer_id, tenant_id: caller.tenant_id })
      await note(caller, 'subscription cancelled')
      await present(caller.tenant_id, customer_id)
      return undefined
    },

    /**
     * An event only triggers a look at the provider's present state, so events may arrive twice, late and in
     * any order.
     */
    async webhook({ body }) {
      const event = provider.readEvent(body.payload, body.signature, clock.now())
      if (event.customer_id === undefined || !/^(customer|invoice)\./.test(event.type)) return
      if (await stores.billing.isKnownEvent(event.id)) return
      const namespace = await stores.billing.findByCustomer(event.customer_id)
      // Fails when the provider is unreachable; the provider then sends the event again.
      if (namespace) await present(namespace.tenant_id, event.customer_id)
      await stores.billing.rememberEvent(event.id, iso(clock.now()))
    },
  }
}
