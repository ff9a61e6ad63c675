// Composition of billing: with a key of the payment provider its code is loaded and joined to the rules of
// billing. Without a key none of it is loaded, and limits from an earlier time no longer apply.
import { ConfigError } from '../config.ts'
import { billing, noBilling } from '../domain/billing/billing.ts'
import { theServer, type Audit } from '../domain/audit/audit.ts'
import { subscriptions } from '../domain/billing/subscriptions.ts'
import { usage } from '../domain/billing/usage.ts'
import { countingEmail } from '../domain/people/identity.ts'
import { emails } from '../mail/emails.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { UsageReport } from '../storage/billing.ts'
import type { Foundation } from './foundation.ts'

export async function openBilling(
  { config, log, clock, stores, bus, background, url }: Foundation,
  audit: Audit,
  mailer: Mailer,
) {
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
    return { billed: false, rules: noBilling(), usage: undefined, subscriptions: undefined }
  }
  if (price === '' || webhookSecret === '')
    throw new ConfigError(
      'HAWSER_STRIPE_KEY is set, so HAWSER_STRIPE_PRICE and HAWSER_STRIPE_WEBHOOK_SECRET are needed too.',
    )

  const { stripeProvider } = await import('../billing/stripe.ts')
  const provider = background.own(
    stripeProvider({ url: config.HAWSER_STRIPE_URL, key, price, webhookSecret, log }),
  )
  const onExtraEnded = async ({ tenant_id, subscription_id }: UsageReport): Promise<void> => {
    const namespace = await stores.namespaces.find(tenant_id)
    const owner = namespace && (await stores.users.find(namespace.owner))
    if (!owner) return
    await audit.event(
      { ...theServer, name: 'billing', tenant_id },
      {
        action: 'billing.updated',
        target: { kind: 'namespace', id: tenant_id, name: namespace.name },
        detail: { what: 'extra subscription ended', subscription_id },
      },
    )
    // An imported owner may not have confirmed the address yet.
    if (owner.confirmed === 0) return
    const about = { name: owner.name, namespace: namespace.name, subscription_id }
    await mailer.send(emails(url).extraSubscription({ to: countingEmail(owner), ...about }))
  }
  const reports = background.own(usage({ stores, provider, clock, log, onExtraEnded }))
  const known = background.own(
    subscriptions({
      stores,
      provider,
      clock,
      onError: (err) => log.warn({ event: 'billing.unlooked', err }),
    }),
  )
  // Also sends reports that were due before the last stop.
  reports.wake()
  background.own(bus.hear('device.changed', reports.wake))
  background.own(bus.hear('namespace.changed', reports.wake))
  const rules = billing({ stores, audit, clock, provider, subscriptions: known, usage: reports, url })
  return { billed: true, rules, usage: reports, subscriptions: known }
}
