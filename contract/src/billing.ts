// Billing: customer, subscription and payment methods at the payment provider. Without a provider nothing is
// limited and every operation answers 424 with the code `provider_not_configured`. With one, `code` is the
// reason of a refusal: `provider_away`, `provider_busy`, `no_customer`, `open_invoices` …, or the provider's
// own, such as `card_declined`.
import Type from './type.ts'
import { anyone, member } from './access.ts'
import { operation } from './operation.ts'

const PaymentMethod = Type.Object({
  id: Type.String(),
  number: Type.String(),
  brand: Type.String(),
  exp_month: Type.Integer(),
  exp_year: Type.Integer(),
  cvc: Type.String(),
  default: Type.Boolean(),
})
const Customer = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  payment_methods: Type.Array(PaymentMethod),
})
const Subscription = Type.Object({
  id: Type.String(),
  active: Type.Boolean(),
  status: Type.String(),
  end_at: Type.Integer(),
  invoices: Type.Array(
    Type.Object({
      id: Type.String(),
      status: Type.String(),
      currency: Type.String(),
      amount: Type.Integer({ description: 'In cents.' }),
    }),
  ),
})

const owner = {
  access: member('owner'),
  failureBody: 'code',
  failures: ['providerFailed', 'notFound'],
} as const
const MethodId = Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) })
const aMethod = { body: { id: 'pm_1MqM05LkdIwHu7ix' } }

export const billing = {
  getCustomer: operation({
    ...owner,
    title: 'Get customer',
    summary: 'The namespace as a customer of the payment provider.',
    method: 'GET',
    path: '/api/billing/customer',
    answer: Customer,
    example: {},
  }),
  createCustomer: operation({
    ...owner,
    title: 'Create billing customer',
    summary: 'Makes the namespace a customer of the payment provider.',
    method: 'POST',
    path: '/api/billing/customer',
    audit: 'billing.updated',
    answer: Customer,
    example: {},
  }),
  getSubscription: operation({
    ...owner,
    title: 'Get subscription',
    summary: 'The subscription and its invoices.',
    method: 'GET',
    path: '/api/billing/subscription',
    answer: Subscription,
    failures: ['providerFailed', 'notFound', 'paymentRequired'],
    example: {},
  }),
  createSubscription: operation({
    ...owner,
    title: 'Create subscription',
    summary: 'Starts a subscription with the default payment method.',
    method: 'POST',
    path: '/api/billing/subscription',
    audit: 'billing.updated',
    failures: ['providerFailed', 'notFound', 'paymentRequired', 'conflict'],
    example: {},
  }),
  attachPaymentMethod: operation({
    ...owner,
    title: 'Attach payment method',
    summary: 'Adds a payment method to the customer.',
    method: 'POST',
    path: '/api/billing/paymentmethod/attach',
    audit: 'billing.updated',
    body: MethodId,
    example: aMethod,
  }),
  detachPaymentMethod: operation({
    ...owner,
    title: 'Detach payment method',
    summary: 'Removes a payment method of the customer; not the one that pays an active subscription.',
    method: 'POST',
    path: '/api/billing/paymentmethod/detach',
    audit: 'billing.updated',
    body: MethodId,
    example: aMethod,
  }),
  setDefaultPaymentMethod: operation({
    ...owner,
    title: 'Set default payment method',
    summary: 'Makes a payment method the one that is charged.',
    method: 'POST',
    path: '/api/billing/paymentmethod/default',
    audit: 'billing.updated',
    body: MethodId,
    example: aMethod,
  }),
  portal: operation({
    ...owner,
    title: 'Billing portal',
    summary: 'The address of the payment provider’s own pages for this customer.',
    method: 'POST',
    path: '/api/billing/portal',
    audit: { none: 'it gives a link to the provider and changes nothing' },
    answer: Type.Object({ url: Type.String() }),
    example: {},
  }),
  evaluate: operation({
    ...owner,
    title: 'Billing evaluate',
    summary: 'Whether the namespace may accept one more device, and connect to those it has.',
    method: 'POST',
    path: '/api/billing/evaluate',
    audit: { none: 'it only reads' },
    access: member('observer'),
    answer: Type.Object({ can_accept: Type.Boolean(), can_connect: Type.Boolean() }),
    example: {},
  }),
  report: operation({
    ...owner,
    title: 'Billing report',
    summary: 'Reports usage to the payment provider.',
    method: 'POST',
    path: '/api/billing/report',
    audit: 'billing.updated',
    query: Type.Object({ action: Type.Enum(['device_accept', 'namespace_delete']) }),
    failures: ['providerFailed', 'notFound', 'paymentRequired'],
    example: { query: { action: 'device_accept' } },
  }),
  webhook: operation({
    title: 'Stripe webhook',
    summary: 'Events from the payment provider, signed by it.',
    method: 'POST',
    path: '/api/webhook-billing',
    audit: { none: 'the provider reports an event; nobody here caused it' },
    access: anyone,
    body: Type.Unknown(),
    largestBody: 256 * 1024,
    signed: 'stripe-signature',
    failureBody: 'code',
    failures: ['providerFailed'],
    example: { body: { type: 'invoice.paid' } },
  }),
}
