// The stored state of a namespace's subscription, and the device limit that follows from it. `settle` changes
// it, always to the provider's last answer. An older answer never overwrites a newer one, in whatever order
// answers and events arrive. Without a subscription a namespace has its free devices; with one there is no
// limit.
import type { SubscriptionState } from '../../billing/provider.ts'
import { day_ms, iso } from '../../kit/clock.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'

/** Devices of a namespace without a subscription. */
export const free_devices = 3
/**
 * How long a deleted device holds its slot in a namespace without a subscription, so that a few slots cannot
 * serve many devices in turn.
 */
export const slot_hold_ms = 30 * day_ms

/** The column `namespaces.billing`, which members of the namespace can see. */
export interface BillingRecord {
  readonly active: boolean
  readonly status: string
  readonly customer_id: string
  readonly subscription_id: string | null
  /** Seconds since 1970. */
  readonly current_period_end: number
  readonly created_at: string
  /** When the provider was last asked. */
  readonly updated_at: string
}

/**
 * States in which the subscription counts. The provider retries a refused card for days, and a cancelled
 * subscription runs to the end of its period.
 */
const active = new Set(['active', 'trialing', 'past_due', 'to_cancel_at_end_of_period'])
/** States in which an invoice must be paid first. */
const unpaid = new Set(['unpaid', 'incomplete'])
export const isActive = (status: string): boolean => active.has(status)
export const isUnpaid = (status: string): boolean => unpaid.has(status)

export function readBilling({ billing }: Pick<NamespaceRow, 'billing'>): BillingRecord | null {
  return billing === null ? null : (JSON.parse(billing) as BillingRecord)
}

export interface Subscriptions {
  /** Makes the namespace this customer; a former customer was deleted at the provider. */
  begin(tenant_id: string, customer_id: string, now: number): Promise<void>
  /** Stores what the provider said about the customer's subscription when it was asked. */
  settle(
    tenant_id: string,
    customer_id: string,
    asked_at: number,
    state: SubscriptionState | undefined,
  ): Promise<void>
}

export function subscriptions({ stores }: { stores: Stores }): Subscriptions {
  const limitOf = (row: NamespaceRow, isPaid: boolean): number =>
    row.free_devices === null ? row.max_devices : isPaid ? -1 : row.free_devices

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

    settle: (tenant_id, customer_id, asked_at, state) =>
      stores.transaction(async (inside) => {
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
      }),
  }
}
