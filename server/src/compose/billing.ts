// Composition of what is paid: with a key of the payment provider its room is loaded and joined to the rules
// of billing; without one nothing of it is loaded, and what it had limited is not limited any more.
import type { Bus } from '../bus/bus.ts'
import { ConfigError, type Config } from '../config.ts'
import { billing, noBilling } from '../domain/billing/billing.ts'
import type { Rules } from '../domain/callers/rules.ts'
import { subscriptions } from '../domain/billing/subscriptions.ts'
import { usage, type Usage } from '../domain/billing/usage.ts'
import type { Clock } from '../kit/clock.ts'
import type { Lifetime } from '../kit/lifetime.ts'
import type { Log } from '../kit/log.ts'
import type { Stores } from '../storage/stores.ts'

export interface PayingParts {
  config: Config
  log: Log
  clock: Clock
  stores: Stores
  bus: Bus
  background: Lifetime
  url: string
}

export interface Paying {
  /** Whether there is a payment provider. */
  readonly billed: boolean
  readonly rules: Rules<'billing'>
  readonly usage: Usage | undefined
}

export async function openPaying({
  config,
  log,
  clock,
  stores,
  bus,
  background,
  url,
}: PayingParts): Promise<Paying> {
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
  // What was not told before the last stop, and from now on whatever changes.
  reports.wake()
  background.own(bus.hear('device.changed', reports.wake))
  background.own(bus.hear('namespace.changed', reports.wake))
  const book = subscriptions({ stores })
  const rules = billing({ stores, clock, provider, subscriptions: book, usage: reports, url })
  return { billed: true, rules, usage: reports }
}
