// Reports to the payment provider how many devices a subscription is for, and ends subscriptions: all of a
// deleted namespace, and extra ones of a namespace that pays for more than one. Triggers and settled answers
// write into a table that a report is due. A report sends the present count, so one that is sent twice or late
// does no harm. While the provider is unreachable reports wait, longer each time. A report that the provider
// refuses is dropped and logged.
import type { Provider } from '../../billing/provider.ts'
import { hour_ms, iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { UsageReport } from '../../storage/billing.ts'
import type { Stores } from '../../storage/stores.ts'
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
 * How long after the end of a namespace its customer is looked at once more: a subscription that was being
 * created when the namespace was deleted may have begun after the first look. Longer than any call takes.
 */
const recheck_ms = minute_ms

export interface Usage extends AsyncDisposable {
  /** Sends all reports that are due; one run at a time. */
  deliver(): Promise<void>
  /** Starts `deliver` without waiting for it. */
  wake(): void
  /** Reports now, and throws the provider's error. */
  report(subscription_id: string, tenant_id: string): Promise<void>
  /** Ends every subscription that our servers created for the namespace, and this one. */
  cancelAll(of: Pick<UsageReport, 'subscription_id' | 'customer_id' | 'tenant_id'>): Promise<void>
}

export interface UsageParts {
  stores: Stores
  provider: Provider
  clock: Clock
  log: Log
  /** Tells the owner that an extra subscription was ended. */
  onExtraEnded(report: UsageReport): Promise<void>
}

export function usage({ stores, provider, clock, log, onExtraEnded }: UsageParts): Usage {
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  /** A subscription is for one device at least. */
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
    // The other one has ended since.
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
