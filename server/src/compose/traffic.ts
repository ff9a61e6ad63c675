// Composition of what devices use of their links: the sums of bytes, and the data budgets that
// are judged by them.
import type { Audit } from '../domain/audit/audit.ts'
import { budgets, type Budgets } from '../domain/devices/budgets.ts'
import { deviceTraffic, type DeviceTrafficSums } from '../domain/devices/traffic.ts'
import { day_ms, minute_ms } from '../kit/clock.ts'
import { emails } from '../mail/emails.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Foundation } from './foundation.ts'

export function openTraffic(
  foundation: Foundation,
  audit: Audit,
  mailer: Mailer,
): { readonly budgets: Budgets; readonly traffic: DeviceTrafficSums } {
  const { stores, clock, bus, log, background, limiter, url } = foundation
  const judged = budgets({
    stores,
    audit,
    clock,
    bus,
    mailer,
    emails: emails(url),
    emailsPerNamespace: limiter('budget e-mails', { max: 20, window_ms: day_ms }),
    tagsPerNamespace: limiter('budgets of tags', { max: 30, window_ms: minute_ms }),
    later: background.later,
    onChanged: ({ tenant_id: tenant, state, ...about }) =>
      log[state === 'under' ? 'info' : 'warn']({ event: `budget.${state}`, tenant, ...about }),
    onUnsent: (tenant) => log.warn({ event: 'budget.unsent', tenant }),
    onError: (err) => log.error({ event: 'budget.unjudged', err }),
  })
  const traffic = deviceTraffic({
    stores,
    clock,
    budgets: judged,
    onError: (err) => log.error({ event: 'traffic.unwritten', err }),
  })
  return { budgets: judged, traffic: background.own(traffic) }
}
