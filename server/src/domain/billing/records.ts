// The billing record of a caller's namespace: who the customer is and for what; and how operations refuse.
import { Failure } from '@hawser/contract/failures'
import type { Provider } from '../../billing/provider.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { With } from '../audit/parts.ts'
import type { MemberCaller } from '../callers/callers.ts'
import { readBilling, type BillingRecord } from './subscriptions.ts'

export interface RecordParts extends With<'stores' | 'audit'> {
  provider: Provider
}

export const noCustomer = () =>
  new Failure('notFound', { message: 'This namespace is not a customer yet.', code: 'no_customer' })
export const noMethod = () =>
  new Failure('notFound', { message: 'There is no such payment method.', code: 'no_payment_method' })
export const noSubscription = () =>
  new Failure('notFound', { message: 'There is no subscription yet.', code: 'no_subscription' })
export const openInvoices = () =>
  new Failure('paymentRequired', { message: 'An invoice is open; pay it first.', code: 'open_invoices' })

export type BillingRecords = ReturnType<typeof billingRecords>

export function billingRecords({ stores, audit, provider }: RecordParts) {
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

  const note = (caller: MemberCaller, what: string): Promise<void> =>
    audit.event(caller, {
      action: 'billing.updated',
      target: { kind: 'namespace', id: caller.tenant_id, name: '' },
      detail: { what },
    })

  /** Refuses a payment method that is not the caller's. */
  async function own(caller: MemberCaller, id: string): Promise<BillingRecord> {
    const record = await recordOf(caller)
    if ((await provider.ownerOfMethod(id)) !== record.customer_id) throw noMethod()
    return record
  }

  return { namespaceOf, recordOf, own, note }
}
