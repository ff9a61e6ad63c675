// Tells the payment provider for how many devices a subscription is, and that its namespace has gone. That
// there is news stands in a table that triggers write; what is told is what is true at that moment, so a
// report that comes twice or late does no harm. While the provider is away reports wait, longer each time;
// one that it refuses is dropped and logged.
import type { Provider } from '../../billing/provider.ts'
import { hour_ms, iso, minute_ms, second_ms, type Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { UsageReport } from '../../storage/billing.ts'
import type { Stores } from '../../storage/stores.ts'

const look_ms = 30 * second_ms
/** While one node tells it; longer than any call takes. */
const claim_ms = minute_ms
const first_wait_ms = 15 * second_ms
const longest_wait_ms = hour_ms
/** About four days; by then somebody has read the log. */
const most_tries = 100
const at_once = 50

export interface Usage extends AsyncDisposable {
  /** Tells whatever is due; one run at a time. */
  deliver(): Promise<void>
  /** The same, and nobody waits for it. */
  wake(): void
  /** Tells it now, and throws what the provider says. */
  report(subscription_id: string, tenant_id: string): Promise<void>
}

export function usage({
  stores,
  provider,
  clock,
  log,
}: {
  stores: Stores
  provider: Provider
  clock: Clock
  log: Log
}): Usage {
  let running: Promise<void> | undefined
  let again = false
  let stopped = false

  /** A subscription is for one device at least. */
  const quantity = async (tenant_id: string): Promise<number> =>
    Math.max(1, await stores.namespaces.deviceCount(tenant_id))

  async function tell({ subscription_id, tenant_id, wanted }: UsageReport): Promise<void> {
    if (wanted === 'cancel') await provider.cancel(subscription_id)
    else await provider.setQuantity(subscription_id, await quantity(tenant_id))
  }

  async function deliverOne(due: UsageReport): Promise<void> {
    const report = await stores.billing.claimReport(due, iso(clock.now() + claim_ms))
    if (!report) return
    const { subscription_id, tenant_id, wanted, tries } = report
    try {
      await tell(report)
      log.info({ event: 'billing.reported', tenant_id, subscription_id, wanted })
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
  const timer = setInterval(wake, look_ms)
  timer.unref()

  return {
    deliver,
    wake,
    async report(subscription_id, tenant_id) {
      await provider.setQuantity(subscription_id, await quantity(tenant_id))
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      clearInterval(timer)
      await running?.catch(() => {})
    },
  }
}
