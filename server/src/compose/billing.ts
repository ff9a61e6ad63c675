// Composition of billing: with a key of the payment provider its code is loaded and joined to the rules of
// billing. Without a key nothing of it is loaded, and limits from an earlier time do not apply any more.
import type { Bus } from '../bus/bus.ts'
import { ConfigError, type Config } from '../config.ts'
import { billing, noBilling } from '../domain/billing/billing.ts'
import type { Audit } from '../domain/audit/audit.ts'
import type { Rules } from '../domain/callers/rules.ts'
import { subscriptions } from '../domain/billing/subscriptions.ts'
import { usage, type Usage } from '../domain/billing/usage.ts'
import type { Clock } from '../kit/clock.ts'
import type { Lifetime } from '../kit/lifetime.ts'
import type { Log } from '../kit/log.ts'
import type { Stores } from '../storage/stores.ts'

export interface BillingRoomParts {
  config: Config
  log: Log
  clock: Clock
  stores: Stores
  bus: Bus
  background: Lifetime
  audit: Audit
  url: string
}

export interface BillingRoom {
  /** Whether there is a payment provider. */
  readonly billed: boolean
  readonly rules: Rules<'billing'>
  readonly usage: Usage | undefined
}

export async function openBilling({
  config,
  log,
  clock,
  stores,
  audit,
  bus,
  background,
  url,
}: BillingRoomParts): Promise<BillingRoom> {
  const {
    HAWSER_STRIPE_KEY: key,
    HAWSER_STRIPE_PRICE: price,
    HAWSER_STRIPE_WEBHOOK_SECRET: webhookSecret,
  } = config
  await stores.billing.applyLimits(key !== '')
  if (key === '') {
    log.info({
      event: 'billing.off',
      message: 'there is no payment provider: nothing is billed and nothing is limited',
    })
    return { billed: false, rules: noBilling(), usage: undefined }
  }
  if (price === '' || webhookSecret === '')
    throw new ConfigError(
      'HAWSER_STRIPE_KEY is set, so HAWSER_STRIPE_PRICE and HAWSER_STRIPE_WEBHOOK_SECRET are needed too.',
    )

  const { stripeProvider } = await import('../billing/stripe.ts')
  const provider = background.own(
    stripeProvider({ url: config.HAWSER_STRIPE_URL, key, price, webhookSecret, log }),
  )
  const reports = background.own(usage({ stores, provider, clock, log }))
  // Sends reports that were due before the last stop, and from now on those of every change.
  reports.wake()
  background.own(bus.hear('device.changed', reports.wake))
  background.own(bus.hear('namespace.changed', reports.wake))
  const rules = billing({
    stores,
    audit,
    clock,
    provider,
    subscriptions: subscriptions({ stores }),
    usage: reports,
    url,
  })
  return { billed: true, rules, usage: reports }
}
