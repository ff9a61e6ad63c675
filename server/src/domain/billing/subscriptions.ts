// The stored state of a namespace's subscription and the device limit that follows. `settle` sets it to the
// provider's last answer; an older answer never overwrites a newer one. Without a subscription a namespace
// has its free devices; with one there is no limit. Extra subscriptions that our servers created are
// reported, and ended by usage.ts. Each customer is checked once a day, in case an event was lost.
import type { Provider, SubscriptionState } from '../../billing/provider.ts'
import { day_ms, iso, minute_ms } from '../../kit/clock.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { With } from '../audit/parts.ts'

export const free_devices = 3
/** A deleted device holds its slot this long, so that a few slots cannot serve many devices in turn. */
export const slot_hold_ms = 30 * day_ms

/** The column `namespaces.billing`, which members of the namespace can see. */
export interface BillingRecord {
  readonly active: boolean
  readonly status: string
  readonly customer_id: string
  readonly subscription_id: string | null
  readonly current_period_end: number
  readonly created_at: string
  readonly updated_at: string
}

/** The provider retries a refused card for days, and a cancelled subscription runs to the end of its period. */
const active = new Set(['active', 'trialing', 'past_due', 'to_cancel_at_end_of_period'])
/** States in which an invoice must be paid first. */
const unpaid = new Set(['unpaid', 'incomplete'])
export const isActive = (status: string): boolean => active.has(status)
export const isUnpaid = (status: string): boolean => unpaid.has(status)

/** The oldest paid subscription, else the oldest live one, else the newest. */
export function counting(newestFirst: readonly SubscriptionState[]): SubscriptionState | undefined {
  const live = newestFirst.filter(({ ended }) => !ended)
  return live.findLast(({ status }) => isActive(status)) ?? live.at(-1) ?? newestFirst[0]
}

/** Live subscriptions that our servers created for the namespace next to the one that counts. */
const extrasOf = (all: readonly SubscriptionState[]): SubscriptionState[] =>
  all.filter((one) => one.ours && !one.ended && one !== counting(all))

export function readBilling({ billing }: Pick<NamespaceRow, 'billing'>): BillingRecord | null {
  return billing === null ? null : (JSON.parse(billing) as BillingRecord)
}

const look_every_ms = 10 * minute_ms

export interface Subscriptions extends AsyncDisposable {
  /** Makes the namespace this customer; a former customer was deleted at the provider. */
  begin(tenant_id: string, customer_id: string, now: number): Promise<void>
  settle(
    tenant_id: string,
    customer_id: string,
    asked_at: number,
    all: readonly SubscriptionState[],
  ): Promise<void>
  /** Returns the newest first. */
  refresh(tenant_id: string, customer_id: string): Promise<SubscriptionState[]>
  /** Refreshes customers that were not checked for a day; one run at a time. */
  look(): Promise<void>
}

export interface SubscriptionParts extends With<'stores' | 'clock'> {
  provider: Pick<Provider, 'subscriptions'>
  onError(error: unknown): void
}

export function subscriptions({ stores, provider, clock, onError }: SubscriptionParts): Subscriptions {
  const limitOf = (row: NamespaceRow, isPaid: boolean): number =>
    row.free_devices === null ? row.max_devices : isPaid ? -1 : row.free_devices

  async function refresh(tenant_id: string, customer_id: string): Promise<SubscriptionState[]> {
    const asked_at = clock.now()
    const all = await provider.subscriptions(customer_id, tenant_id)
    await settle(tenant_id, customer_id, asked_at, all)
    return all
  }

  /** One after the other; a failure leaves that customer for the next run. */
  async function lookAtAll(): Promise<void> {
    const old = await stores.billing.customersAskedBefore(iso(clock.now() - day_ms))
    for (const { tenant_id, customer_id } of old) {
      if (stopped) return
      await refresh(tenant_id, customer_id).catch(onError)
    }
  }

  let stopped = false
  let looking: Promise<void> | undefined
  const look = (): Promise<void> => (looking ??= lookAtAll().finally(() => (looking = undefined)))
  const timer = setInterval(() => void look().catch(onError), look_every_ms).unref()

  return {
    begin: (tenant_id, customer_id, now) =>
      stores.transaction(async (inside) => {
        const row = await inside.namespaces.hold(tenant_id)
        if (!row || readBilling(row)?.customer_id === customer_id) return
        const record: BillingRecord = {
          active: false,
          status: 'inactive',
          customer_id,
          subscription_id: null,
          current_period_end: 0,
          created_at: iso(now),
          updated_at: iso(now),
        }
        await inside.namespaces.save(tenant_id, {
          billing: JSON.stringify(record),
          max_devices: limitOf(row, false),
        })
      }),

    settle,
    refresh,
    look,
    async [Symbol.asyncDispose]() {
      stopped = true
      clearInterval(timer)
      await looking?.catch(onError)
    },
  }

  function settle(
    tenant_id: string,
    customer_id: string,
    asked_at: number,
    all: readonly SubscriptionState[],
  ): Promise<void> {
    const state = counting(all)
    return stores.transaction(async (inside) => {
      const row = await inside.namespaces.hold(tenant_id)
      const before = row && readBilling(row)
      if (!row || before?.customer_id !== customer_id || before.updated_at > iso(asked_at)) return
      const next: BillingRecord = {
        active: state !== undefined && isActive(state.status),
        status: state?.status ?? 'inactive',
        customer_id,
        subscription_id: state?.id ?? null,
        current_period_end: state?.end_at ?? 0,
        created_at: before.created_at,
        updated_at: iso(asked_at),
      }
      await inside.namespaces.save(tenant_id, {
        billing: JSON.stringify(next),
        max_devices: limitOf(row, next.active),
      })
      // While there was no subscription no report was queued for devices that were accepted.
      if (
        next.active &&
        state &&
        state.quantity !== Math.max(1, await inside.namespaces.deviceCount(tenant_id))
      )
        await inside.billing.report(state.id, tenant_id)
      for (const extra of extrasOf(all)) await inside.billing.reportExtra(extra.id, tenant_id, customer_id)
    })
  }
}
