// Billing: the namespace as a customer of the payment provider. Each operation asks the provider first and
// writes to the database after the provider agreed, so that nothing of ours changes when it refuses or is
// unreachable. Callers reach only the customer of their own namespace. Without a provider there is no limit,
// and every operation says that there is no provider.
import { Failure } from '@hawser/contract/failures'
import type { Customer, Provider, SubscriptionState } from '../../billing/provider.ts'
import { iso, type Clock } from '../../kit/clock.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit } from '../audit/audit.ts'
import type { MemberCaller } from '../callers/callers.ts'
import { hasRoom, isOver } from './device-limit.ts'
import { countingEmail } from '../people/identity.ts'
import { creatingOnce } from './once.ts'
import type { Rules } from '../callers/rules.ts'
import {
  counting,
  isActive,
  isUnpaid,
  readBilling,
  slot_hold_ms,
  type BillingRecord,
  type Subscriptions,
} from './subscriptions.ts'
import type { Usage } from './usage.ts'

export interface BillingParts {
  stores: Stores
  audit: Audit
  clock: Clock
  provider: Provider
  subscriptions: Subscriptions
  usage: Usage
  /** Where people reach the console. */
  url: string
}

const noCustomer = () =>
  new Failure('notFound', { message: 'The namespace is no customer yet.', code: 'no_customer' })
const noMethod = () =>
  new Failure('notFound', { message: 'There is no such payment method.', code: 'no_payment_method' })
const noSubscription = () =>
  new Failure('notFound', { message: 'There is no subscription yet.', code: 'no_subscription' })
const openInvoices = () =>
  new Failure('paymentRequired', {
    message: 'An invoice is open; it has to be paid first.',
    code: 'open_invoices',
  })

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

export function billing({
  stores,
  audit,
  clock,
  provider,
  subscriptions,
  usage,
  url,
}: BillingParts): Rules<'billing'> {
  const { takeKey, create } = creatingOnce({ stores, clock, provider })

  async function namespaceOf({ tenant_id }: MemberCaller): Promise<NamespaceRow> {
    const row = await stores.namespaces.find(tenant_id)
    if (!row) throw new Failure('notFound')
    return row
  }

  async function recordOf(caller: MemberCaller): Promise<BillingRecord> {
    const record = readBilling(await namespaceOf(caller))
    if (!record) throw noCustomer()
    return record
  }

  /** Says in the audit log what the provider has agreed to. */
  const note = (caller: MemberCaller, what: string): Promise<void> =>
    audit.event(caller, {
      action: 'billing.updated',
      target: { kind: 'namespace', id: caller.tenant_id, name: '' },
      detail: { what },
    })

  /** Asks the provider for the customer's subscriptions, and stores the answer. */
  async function present(tenant_id: string, customer_id: string): Promise<SubscriptionState[]> {
    const all = await subscriptions.refresh(tenant_id, customer_id)
    usage.wake()
    return all
  }

  /** The billing record of the caller, if the payment method is the caller's own. */
  async function own(caller: MemberCaller, id: string): Promise<BillingRecord> {
    const record = await recordOf(caller)
    if ((await provider.ownerOfMethod(id)) !== record.customer_id) throw noMethod()
    return record
  }

  /** Throws if the namespace has a subscription that has not ended. */
  function requireNone(all: readonly SubscriptionState[]): void {
    const state = counting(all)
    if (!state || state.ended) return
    if (isUnpaid(state.status)) throw openInvoices()
    throw new Failure('conflict', {
      message: 'There is a subscription already.',
      code: 'subscription_exists',
    })
  }

  const shown = ({ id, name, email, default_method, methods }: Customer) => ({
    id,
    name,
    email,
    // Nobody stores the code of a card, not even the provider.
    payment_methods: methods.map((method) => ({ ...method, cvc: '', default: method.id === default_method })),
  })

  return {
    async getCustomer(_, caller) {
      const customer = await provider.findCustomer((await recordOf(caller)).customer_id)
      if (!customer) throw noCustomer()
      return shown(customer)
    },

    async createCustomer(_, caller) {
      const { tenant_id } = caller
      const key = await takeKey(tenant_id, 'customer', async () => false)
      const row = await namespaceOf(caller)
      const record = readBilling(row)
      const known = record && (await provider.findCustomer(record.customer_id))
      if (known) return shown(known)
      const owner = await stores.users.find(row.owner)
      const who = { tenant_id, name: row.name, email: owner ? countingEmail(owner) : '' }
      const made = await create({ tenant_id, what: 'customer', key }, who, async (params) => {
        const customer = await provider.createCustomer(params, key)
        await subscriptions.begin(tenant_id, customer.id, clock.now())
        return customer
      })
      // The record knows the customer now. One that is deleted at the provider can be created anew.
      await stores.billing.endAttempt(tenant_id, 'customer', key)
      await note(caller, 'customer created')
      return shown(made)
    },

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
      const key = await takeKey(tenant_id, 'subscription', async (taken) => {
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
      const made = await create({ tenant_id, what: 'subscription', key }, { quantity }, async (params) =>
        provider.subscribe({ customer_id, tenant_id, quantity: params.quantity }, key),
      )
      // An event that arrived in the meantime may have asked for the subscription too early.
      await subscriptions.settle(tenant_id, customer_id, clock.now(), [made])
      await note(caller, 'subscription created')
      usage.wake()
    },

    async attachPaymentMethod({ body: { id } }, caller) {
      const { customer_id } = await recordOf(caller)
      const owner = await provider.ownerOfMethod(id)
      if (owner === customer_id) return
      if (owner !== null) throw noMethod()
      await provider.attach(customer_id, id)
      await note(caller, 'payment method attached')
    },

    async detachPaymentMethod({ body: { id } }, caller) {
      const { active, customer_id } = await own(caller, id)
      if (active && (await provider.findCustomer(customer_id))?.default_method === id)
        throw new Failure('invalid', {
          message: 'The subscription is paid with this payment method; make another one the default first.',
          code: 'default_payment_method',
        })
      await provider.detach(id)
      await note(caller, 'payment method detached')
    },

    async setDefaultPaymentMethod({ body: { id } }, caller) {
      await provider.setDefault((await own(caller, id)).customer_id, id)
      await note(caller, 'default payment method changed')
    },

    async portal(_, caller) {
      return { url: await provider.portal((await recordOf(caller)).customer_id, `${url}/billing`) }
    },

    /** Answers from the database: access to devices must not depend on a provider that may be unreachable. */
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
     * An event only says that something happened; the present state is then asked of the provider. So events
     * may arrive twice, late and in any order.
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
