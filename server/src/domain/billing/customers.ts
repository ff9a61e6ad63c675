// The namespace as a customer of the payment provider, and its payment methods.
import { Failure } from '@hawser/contract/failures'
import type { Customer, Provider } from '../../billing/provider.ts'
import type { With } from '../audit/parts.ts'
import type { Rules } from '../callers/rules.ts'
import { countingEmail } from '../people/identity.ts'
import type { creatingOnce } from './once.ts'
import { noCustomer, noMethod, type BillingRecords } from './records.ts'
import { readBilling, type Subscriptions } from './subscriptions.ts'

export interface CustomerParts extends With<'stores' | 'clock'> {
  provider: Provider
  subscriptions: Subscriptions
  url: string
}

const shown = ({ id, name, email, default_method, methods }: Customer) => ({
  id,
  name,
  email,
  // Nobody stores the code of a card, not even the provider.
  payment_methods: methods.map((method) => ({ ...method, cvc: '', default: method.id === default_method })),
})

export function customers(
  { stores, clock, provider, subscriptions, url }: CustomerParts,
  { namespaceOf, recordOf, own, note }: BillingRecords,
  { takeKey, create }: ReturnType<typeof creatingOnce>,
): Pick<
  Rules<'billing'>,
  | 'getCustomer'
  | 'createCustomer'
  | 'attachPaymentMethod'
  | 'detachPaymentMethod'
  | 'setDefaultPaymentMethod'
  | 'portal'
> {
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
      // A customer that is deleted at the provider can be created anew.
      await stores.billing.endAttempt(tenant_id, 'customer', key)
      await note(caller, 'customer created')
      return shown(made)
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
  }
}
