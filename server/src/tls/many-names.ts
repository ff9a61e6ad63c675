// Certificates of many names below one domain, each ordered from the ACME server by itself: the names come
// and go while the server runs, and only names that exist are ordered. At most `most` have one, the oldest
// first, because ACME servers allow few orders for one domain in a week.
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Certificate } from './certificate.ts'
import type { Renewal } from './renewal.ts'

export interface ManyNamesParts {
  /** The names that exist now, the oldest first, at most this many. */
  names(most: number): Promise<readonly string[]>
  readonly most: number
  renew(name: string, onCertificate: (certificate: Certificate) => void): Renewal
  /** How often the names are looked up again; news come before. */
  readonly look_ms: number
  onError(error: unknown): void
}

export interface ManyNames extends AsyncDisposable {
  /** Undefined: the name has no certificate. */
  contextOf(name: string): SecureContext | undefined
  /** Names may have come or gone. */
  changed(): void
}

export function manyNames(parts: ManyNamesParts): ManyNames {
  const renewals = new Map<string, Renewal>()
  const contexts = new Map<string, SecureContext>()
  let looking = Promise.resolve()

  async function look(): Promise<void> {
    const wanted = new Set(await parts.names(parts.most))
    for (const name of wanted)
      if (!renewals.has(name))
        renewals.set(
          name,
          parts.renew(name, ({ chain, key }) =>
            contexts.set(name, createSecureContext({ cert: chain, key })),
          ),
        )
    for (const [name, renewal] of renewals) {
      if (wanted.has(name)) continue
      renewals.delete(name)
      contexts.delete(name)
      await renewal[Symbol.asyncDispose]()
    }
  }
  const changed = (): void => void (looking = looking.then(look).catch(parts.onError))
  const timer = setInterval(changed, parts.look_ms).unref()
  changed()

  return {
    contextOf: (name) => contexts.get(name.toLowerCase()),
    changed,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await looking
      for (const renewal of renewals.values()) await renewal[Symbol.asyncDispose]()
    },
  }
}
