// What we know of a namespace's subscription, and what follows from it: how many devices it may have. One
// function changes it, always to what the payment provider said when it was last asked; an older word never
// overwrites a newer one, in whatever order answers and events arrive. Without a subscription a namespace has
// its free devices, with one there is no limit.
import type { SubscriptionState } from '../../billing/provider.ts'
import { day_ms, iso } from '../../kit/clock.ts'
import type { NamespaceRow } from '../../storage/namespaces.ts'
import type { Stores } from '../../storage/stores.ts'

/** Devices of a namespace without a subscription. */
export const free_devices = 3
/**
 * How long a deleted device keeps its place in a namespace without a subscription: places are not for passing
 * round.
 */
export const place_ms = 30 * day_ms

/** In `namespaces.billing`, and shown to its members. */
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
 * A card that was refused is tried again for days, and a subscription that ends does so later: until then it
 * counts.
 */
const active = new Set(['active', 'trialing', 'past_due', 'to_cancel_at_end_of_period'])
/** Nothing goes on until an invoice is paid. */
const unpaid = new Set(['unpaid', 'incomplete'])
export const isActive = (status: string): boolean => active.has(status)
export const isUnpaid = (status: string): boolean => unpaid.has(status)

export function readBilling({ billing }: Pick<NamespaceRow, 'billing'>): BillingRecord | null {
  return billing === null ? null : (JSON.parse(billing) as BillingRecord)
}

export interface Subscriptions {
  /** The namespace is this customer from now on; a former one was deleted at the provider. */
  begin(tenant_id: string, customer_id: string, now: number): Promise<void>
  /** What the provider said about the customer's subscription, asked at that moment. */
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
        // Devices that were accepted meanwhile were nobody's news while there was no subscription.
        if (
          next.active &&
          state &&
          state.quantity !== Math.max(1, await inside.namespaces.deviceCount(tenant_id))
        )
          await inside.billing.report(state.id, tenant_id)
      }),
  }
}
