// Billing without a payment provider: nothing is limited, and every billing operation says that there is none.
import { Failure } from '@hawser/contract/failures'
import type { Rules } from './rules.ts'

export function billing(): Rules<'billing'> {
  const none = (): never => {
    throw new Failure('providerFailed', { message: 'This server has no payment provider.', code: 'provider_not_configured' })
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
