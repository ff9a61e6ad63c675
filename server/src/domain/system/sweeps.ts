// Sweeps remove what has expired, and mark devices offline that a crash left online. Every sweep is safe to
// repeat and to run on several nodes at once.
import { trafficDays_most } from '@hawser/contract/devices'
import { day_ms, iso, minute_ms } from '../../kit/clock.ts'
import type { With } from '../audit/parts.ts'
import { stale_ms } from '../sessions/live-sessions.ts'
import { online_ms } from '../devices/presence.ts'
import { slot_hold_ms } from '../billing/subscriptions.ts'

const every_ms = 5 * minute_ms
/** How far the database may be behind what another node has in memory (see presence.ts). */
const lag_ms = 5 * minute_ms
/** The payment provider retries an event for days; after that it never sends it again. */
const event_ms = 30 * day_ms

/** An account that is not confirmed in this time frees its name. */
const unconfirmed_ms = 7 * day_ms

/** As the gateway remembers sources that logged in (gateway/login/startups.ts). */
const knownSources = { lasts_ms: day_ms, most: 100_000 }

/** How long expired invitations can be sent again. */
const invitation_ms = 30 * day_ms

/** How long a new container can take over the device of a removed one of its name. */
const goneContainer_ms = 30 * day_ms

const refusal_ms = 30 * day_ms

export interface SweepParts extends With<'stores' | 'clock'> {
  /** Removes accounts that registered before this moment and were never confirmed, and changes to an address. */
  claims(registeredBefore: string): Promise<void>
  recordings(): Promise<void>
  sessions(moments: { readonly last_seen: string; readonly now: string }): Promise<void>
  audit(): Promise<void>
  onError: (error: unknown) => void
}

export async function sweeps({
  stores,
  clock,
  claims,
  recordings,
  sessions,
  audit,
  onError,
}: SweepParts): Promise<Disposable> {
  const sweep = async (): Promise<void> => {
    const now = clock.now()
    await stores.tokens.sweep(iso(now))
    await stores.identityChanges.sweep(iso(now))
    await claims(iso(now - unconfirmed_ms))
    await stores.attempts.sweep(iso(now))
    await stores.knownSources.sweep(iso(now - knownSources.lasts_ms), knownSources.most)
    await stores.signIns.sweep(iso(now))
    await stores.presentedMemberInvitations.sweep(iso(now - invitation_ms))
    await stores.pairings.sweep(iso(now))
    await stores.presentedInvitations.sweep(iso(now))
    await stores.presence.forgetOlderThan(iso(now - online_ms - lag_ms))
    await sessions({ last_seen: iso(now - stale_ms), now: iso(now) })
    await stores.billing.sweep({ places: iso(now - slot_hold_ms), events: iso(now - event_ms) })
    await stores.trafficSums.sweep(iso(now - trafficDays_most * day_ms).slice(0, 10))
    await stores.oldRefusals.sweep(iso(now - refusal_ms))
    await stores.goneDevices.sweep(iso(now - goneContainer_ms))
    await recordings()
    await audit()
  }
  await sweep()
  const timer = setInterval(() => void sweep().catch(onError), every_ms)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
