// Reports to the payment provider the number of devices of a subscription, and ends subscriptions: all of a
// deleted namespace, and extra ones. Triggers and settled answers queue reports in a table. A report sends
// the present count, so a repeated or late one does no harm. Reports wait, longer each time, while the
// provider is unreachable; refused ones are dropped and logged.
import type { Provider } from '../../billing/provider.ts'
import { hour_ms, iso, minute_ms, second_ms } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { UsageReport } from '../../storage/billing.ts'
import type { With } from '../audit/parts.ts'
import { counting } from './subscriptions.ts'

const check_every_ms = 30 * second_ms
/** How long a node claims a report that it sends; longer than any call takes. */
const claim_ms = minute_ms
const first_wait_ms = 15 * second_ms
const longest_wait_ms = hour_ms
/** About four days; by then somebody has read the log. */
const most_tries = 100
const at_once = 50
/**
 * A deleted namespace's customer is checked again after this time: a subscription may have been under
 * creation. Longer than any call takes.
 */
const recheck_ms = minute_ms

export interface Usage extends AsyncDisposable {
  /** One run at a time. */
  deliver(): Promise<void>
  wake(): void
  /** Reports now, and throws the provider's error. */
  report(subscription_id: string, tenant_id: string): Promise<void>
  /** Ends every subscription that our servers created for the namespace, and this one. */
  cancelAll(of: Pick<UsageReport, 'subscription_id' | 'customer_id' | 'tenant_id'>): Promise<void>
}

export interface UsageParts extends With<'stores' | 'clock'> {
  provider: Provider
  log: Log
  onExtraEnded(report: UsageReport): Promise<void>
}

export function usage({ stores, provider, clock, log, onExtraEnded }: UsageParts): Usage {
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  const quantity = async (tenant_id: string): Promise<number> =>
    Math.max(1, await stores.namespaces.deviceCount(tenant_id))

  const cancelAll: Usage['cancelAll'] = async ({ subscription_id, customer_id, tenant_id }) => {
    const all = customer_id === '' ? [] : await provider.subscriptions(customer_id, tenant_id)
    for (const { id, ours, ended } of all)
      if (ours && !ended && id !== subscription_id) await provider.cancel(id)
    // The row of a namespace without a known subscription has the id of the customer.
    if (subscription_id !== customer_id) await provider.cancel(subscription_id)
  }

  async function endExtra(report: UsageReport): Promise<void> {
    const { subscription_id, customer_id, tenant_id } = report
    const kept = counting(await provider.subscriptions(customer_id, tenant_id))
    if (kept?.id === subscription_id) return
    await provider.cancel(subscription_id)
    log.warn({ event: 'billing.extra_ended', tenant_id, subscription_id, kept: kept?.id })
    await onExtraEnded(report)
  }

  async function send(report: UsageReport): Promise<void> {
    const { subscription_id, tenant_id, wanted } = report
    if (wanted === 'quantity') await provider.setQuantity(subscription_id, await quantity(tenant_id))
    else if (wanted === 'end extra') await endExtra(report)
    else await cancelAll(report)
  }

  async function deliverOne(due: UsageReport): Promise<void> {
    const report = await stores.billing.claimReport(due, iso(clock.now() + claim_ms))
    if (!report) return
    const { subscription_id, tenant_id, wanted, tries } = report
    try {
      await send(report)
      log.info({ event: 'billing.reported', tenant_id, subscription_id, wanted })
      if (wanted === 'cancel') {
        await stores.billing.postponeReport(subscription_id, iso(clock.now() + recheck_ms), 'recheck')
        return
      }
    } catch (error) {
      if (provider.isPassing(error) && tries < most_tries) {
        const wait_ms = Math.min(longest_wait_ms, first_wait_ms * 2 ** Math.min(tries - 1, 20))
        await stores.billing.postponeReport(subscription_id, iso(clock.now() + wait_ms))
        return
      }
      log.error({ event: 'billing.unreported', tenant_id, subscription_id, wanted, tries })
    }
    await stores.billing.endReport(report)
  }

  async function run(): Promise<void> {
    do {
      again = false
      for (;;) {
        const due = await stores.billing.dueReports(iso(clock.now()), at_once)
        for (const report of due) {
          if (stopped) return
          await deliverOne(report)
        }
        if (due.length === 0) break
      }
    } while (again)
  }

  const deliver = (): Promise<void> => {
    if (running) {
      again = true
      return running
    }
    return (running = run().finally(() => (running = undefined)))
  }

  const wake = () => void deliver().catch((err: unknown) => log.error({ event: 'billing.failed', err }))
  const timer = setInterval(wake, check_every_ms)
  timer.unref()

  return {
    deliver,
    wake,
    async report(subscription_id, tenant_id) {
      await provider.setQuantity(subscription_id, await quantity(tenant_id))
    },
    cancelAll,
    async [Symbol.asyncDispose]() {
      stopped = true
      clearInterval(timer)
      await running?.catch(() => {})
    },
  }
}
