// Sends batches of audit entries to webhooks and syslog servers. A delivery is bounded in time and goes only
// where destination.ts allows. Its sentence is safe for the tenant and the log: it has neither the secret nor
// the URL, which may contain a token.
import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { AuditEntry } from '@hawser/contract/audit'
import type { StreamKind } from '@hawser/contract/audit-streams'
import { iso, second_ms, type Clock } from '../kit/clock.ts'
import { DeliveryFailed, destinationOf, destinations, type DestinationParts } from './destination.ts'
import { messageOf, sendSyslog, testMessage } from './syslog.ts'
import { postWebhook } from './webhook.ts'

export interface Receiver {
  readonly url: string
  /** Signs webhooks. */
  readonly secret: string
  readonly ca: string | null
}

export interface StreamBatch {
  readonly stream: string
  readonly tenant_id: string
  /** The entries were dead letters. */
  readonly redelivery: boolean
  /** A test of the receiver, without entries. */
  readonly test: boolean
  readonly entries: readonly AuditEntry[]
}

export interface Receivers {
  /** The address has nothing secret in it. Does not throw for a checked URL. */
  describe(url: string): { readonly kind: StreamKind; readonly address: string }
  /** The fault in the settings of a receiver, in a sentence; undefined: none that can be seen. */
  check(receiver: Receiver): string | undefined
  /** Undefined: the receiver has taken the batch; else the reason, in a sentence. Never throws. */
  send(receiver: Receiver, batch: StreamBatch, signal?: AbortSignal): Promise<string | undefined>
}

export interface ReceiverParts extends DestinationParts {
  clock: Clock
  /** The name of the server in messages of syslog. */
  hostName: string
  /** The time limit of a delivery; absent: 15 seconds. */
  patience_ms?: number
}

const patience_ms = 15 * second_ms

export function receivers(parts: ReceiverParts): Receivers {
  const places = destinations(parts)

  async function deliver(
    { url, secret, ca }: Receiver,
    batch: StreamBatch,
    signal: AbortSignal,
  ): Promise<void> {
    const destination = destinationOf(url)
    const address = await places.resolve(destination)
    const tls = destination.secure ? contextOf(ca) : undefined
    const now = parts.clock.now()
    if (destination.protocol === 'webhook') {
      const time_s = Math.floor(now / second_ms)
      const body = JSON.stringify(batch)
      return postWebhook({ destination, address, tls, secret, body, time_s, signal })
    }
    const { stream, tenant_id, test } = batch
    const messages = test
      ? [testMessage(parts.hostName, iso(now), { stream, tenant_id, test })]
      : batch.entries.map((entry) => messageOf(parts.hostName, entry))
    return sendSyslog({ destination, address, tls, messages, signal })
  }

  return {
    describe(url) {
      const { protocol, host, port } = destinationOf(url)
      return { kind: protocol, address: `${host.includes(':') ? `[${host}]` : host}:${port}` }
    },
    check({ url, ca }) {
      try {
        places.check(destinationOf(url))
        if (ca !== null) contextOf(ca)
        return undefined
      } catch (error) {
        return sentenceOf(error)
      }
    },
    async send(receiver, batch, signal) {
      const patience = AbortSignal.timeout(parts.patience_ms ?? patience_ms)
      const ending = signal ? AbortSignal.any([signal, patience]) : patience
      const gaveUp = Promise.withResolvers<never>()
      const giveUp = (): void => gaveUp.reject(new DeliveryFailed('The receiver did not answer in time.'))
      ending.addEventListener('abort', giveUp, { once: true })
      gaveUp.promise.catch(() => undefined)
      try {
        // Not every step hears the signal: a name server may be silent.
        await Promise.race([deliver(receiver, batch, ending), gaveUp.promise])
        return undefined
      } catch (error) {
        return ending.aborted ? 'The receiver did not answer in time.' : sentenceOf(error)
      } finally {
        ending.removeEventListener('abort', giveUp)
      }
    },
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof DeliveryFailed) return error.message
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code)
    ? `The receiver cannot be reached (${code}).`
    : 'The receiver cannot be reached.'
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Made here and not by the request, so that OpenSSL's words about bad certificates do not reach the caller. */
function contextOf(ca: string | null): SecureContext {
  try {
    if (ca === null) return createSecureContext({ minVersion: 'TLSv1.2' })
    // OpenSSL passes over what it cannot read, and then trusts nobody.
    const all = ca.match(certificate) ?? []
    if (all.length === 0) throw new Error('there is no certificate')
    return createSecureContext({
      ca: all.map((one) => new X509Certificate(one).toString()),
      minVersion: 'TLSv1.2',
    })
  } catch (cause) {
    throw new DeliveryFailed('The certificates (ca) cannot be used: PEM is expected.', { cause })
  }
}
