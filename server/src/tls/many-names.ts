// Certificates of many names below one domain, each ordered from the ACME server by itself: the names come
// and go while the server runs, and only names that exist are ordered. At most `most` have one, the oldest
// first; where several owners have names, one gets no more than half of them. ACME servers allow few orders for one
// domain in a week, so no more than `most` new names are ordered in one, however many come and go.
import { createSecureContext, type SecureContext } from 'node:tls'
import { day_ms, type Clock } from '../kit/clock.ts'
import { limiter } from '../kit/limiter.ts'
import type { Certificate } from './certificate.ts'
import type { Renewal } from './renewal.ts'

export interface OwnedName {
  readonly name: string
  readonly owner: string
}

export interface ManyNamesParts {
  /** The names that exist now, the oldest first, at most this many. */
  names(most: number): Promise<readonly OwnedName[]>
  readonly most: number
  /** Names with a certificate from before. */
  stored(): Promise<ReadonlySet<string>>
  renew(name: string, onCertificate: (certificate: Certificate) => void): Renewal
  /** How often the names are looked up again; news come before. */
  readonly look_ms: number
  readonly clock: Clock
  onError(error: unknown): void
}

export interface ManyNames extends AsyncDisposable {
  /** Undefined: the name has no certificate. */
  contextOf(name: string): SecureContext | undefined
  /** Names may have come or gone. */
  changed(): void
}

const week_ms = 7 * day_ms

const endAll = async (renewals: Iterable<AsyncDisposable>): Promise<unknown> =>
  Promise.all(Array.from(renewals, async (renewal) => renewal[Symbol.asyncDispose]()))
/** Older names of owners that have their share. */
const mostPassedOver = 10_000

export function manyNames(parts: ManyNamesParts): ManyNames {
  const { most, clock } = parts
  const renewals = new Map<string, Renewal & OwnedName>()
  const contexts = new Map<string, SecureContext>()
  const orders = limiter(clock, { max: most, window_ms: week_ms })
  let looking = Promise.resolve()
  let isWaiting = false

  async function look(): Promise<void> {
    isWaiting = false
    const names = await parts.names(most + mostPassedOver)
    const existing = new Set(names.map(({ name }) => name))
    const gone = [...renewals.values()].filter(({ name }) => !existing.has(name))
    for (const { name } of gone) {
      renewals.delete(name)
      contexts.delete(name)
    }
    await endAll(gone)
    if (renewals.size >= most) return
    const stored = await parts.stored()
    const share = new Set(names.map(({ owner }) => owner)).size > 1 ? Math.ceil(most / 2) : most
    const held = new Map<string, number>()
    for (const { owner } of renewals.values()) held.set(owner, (held.get(owner) ?? 0) + 1)
    for (const { name, owner } of names) {
      if (renewals.size >= most) return
      const owned = held.get(owner) ?? 0
      if (renewals.has(name) || owned >= share) continue
      if (!stored.has(name) && orders.take('') > 0) continue
      held.set(owner, owned + 1)
      const renewal = parts.renew(name, ({ chain, key }) =>
        contexts.set(name, createSecureContext({ cert: chain, key })),
      )
      renewals.set(name, Object.assign(renewal, { name, owner }))
    }
  }
  /** Changes that come while the names are looked up share the next look. */
  const changed = (): void => {
    if (isWaiting) return
    isWaiting = true
    looking = looking.then(look).catch(parts.onError)
  }
  const timer = setInterval(changed, parts.look_ms).unref()
  changed()

  return {
    contextOf: (name) => contexts.get(name.toLowerCase()),
    changed,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await looking
      await endAll(renewals.values())
    },
  }
}
