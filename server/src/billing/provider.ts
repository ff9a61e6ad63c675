// The interface of a payment provider, in our words. A refusal, or an unreachable provider, is thrown as a
// Failure with a code; nothing of ours is changed here.

export interface PaymentMethod {
  readonly id: string
  /** The last four digits. */
  readonly number: string
  readonly brand: string
  readonly exp_month: number
  readonly exp_year: number
}

export interface Customer {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly default_method: string | undefined
  readonly methods: readonly PaymentMethod[]
}

export interface SubscriptionState {
  readonly id: string
  /** The provider's, or `to_cancel_at_end_of_period`. */
  readonly status: string
  readonly end_at: number
  readonly quantity: number
  readonly ended: boolean
  /** The key that it was created with; undefined: somebody else created it, or an older server. */
  readonly key: string | undefined
  /** Whether a server of ours created it for this namespace. */
  readonly ours: boolean
}

export interface Invoice {
  readonly id: string
  readonly status: string
  readonly currency: string
  readonly amount: number
}

export interface ProviderEvent {
  readonly id: string
  readonly type: string
  readonly customer_id: string | undefined
}

export interface Provider extends Disposable {
  /** A second call with the same key repeats the first, whatever became of its answer. */
  createCustomer(who: { tenant_id: string; name: string; email: string }, key: string): Promise<Customer>
  /** Undefined: there is none, or it was deleted there. */
  findCustomer(customer_id: string): Promise<Customer | undefined>
  /** Null: nobody's; undefined: there is no such method. */
  ownerOfMethod(id: string): Promise<string | null | undefined>
  attach(customer_id: string, id: string): Promise<void>
  detach(id: string): Promise<void>
  setDefault(customer_id: string, id: string): Promise<void>
  /** Also ended ones, newest first. */
  subscriptions(customer_id: string, tenant_id: string): Promise<SubscriptionState[]>
  /** Charges the default method; when that fails there is no subscription. */
  subscribe(
    what: { customer_id: string; tenant_id: string; quantity: number },
    key: string,
  ): Promise<SubscriptionState>
  invoices(subscription_id: string): Promise<Invoice[]>
  hasOpenInvoices(customer_id: string): Promise<boolean>
  setQuantity(subscription_id: string, quantity: number): Promise<void>
  /** At once, with a last invoice for what was used. */
  cancel(subscription_id: string): Promise<void>
  portal(customer_id: string, return_url: string): Promise<string>
  /** Reads an event that is signed, and not longer ago than a few minutes. */
  readEvent(payload: string, signature: string, now: number): ProviderEvent
  /** Whether an error leaves the outcome open: a retry may succeed, and the call may have been carried out. */
  isPassing(error: unknown): boolean
}
