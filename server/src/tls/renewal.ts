// A certificate from an ACME server, ordered when there is none, and again after two thirds of its life. All
// nodes share it by the database; the one with the lease orders. After a failure the next try waits, longer
// each time; the database remembers that, so that a server which restarts again and again does not use up
// what the ACME server allows.
import { day_ms, hour_ms, iso, minute_ms, second_ms, type Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Vault } from '../kit/secrets.ts'
import type { CertificateName, CertificateRow, CertificateStore } from '../storage/certificates.ts'
import { OrderFailed, type AcmeOrderOptions } from './acme.ts'
import { readCertificate, type Certificate } from './certificate.ts'

export interface RenewalParts {
  readonly which: CertificateName
  readonly email: string
  /** This process's id among those that share the database. */
  readonly holder: string
  readonly store: CertificateStore
  readonly vault: Vault
  readonly clock: Clock
  readonly log: Log
  order(options: AcmeOrderOptions): Promise<{ chain: string; key: string }>
  /** One order at a time for all names: the first one makes the account that all use. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  onCertificate(certificate: Certificate): void
  readonly random?: () => number
}

export interface Renewal extends AsyncDisposable {
  /** The answer to a challenge of the ACME server; undefined if it is not ours. */
  answer(token: string): Promise<string | undefined>
}

/** Waits after the first failure, the second, and so on. Let's Encrypt allows five failures in an hour. */
const waits_ms = [minute_ms, 5 * minute_ms, 30 * minute_ms, hour_ms, 3 * hour_ms, 12 * hour_ms]
const leastWhenLimited_ms = 3 * hour_ms
const lease_ms = 10 * minute_ms
const challenge_ms = hour_ms
/** How often the database is asked for what another node got: while one is needed, and later. */
const impatient_ms = 5 * second_ms
const patient_ms = minute_ms
const renewAfter = 2 / 3
/** Renewals of many servers are spread over this part of a certificate's life. */
const spread = 0.03
const tokenShape = /^[\w-]{16,128}$/
const keyPurpose = 'tls key'
const accountPurpose = 'acme account key'

export function renewal(parts: RenewalParts): Renewal {
  const { which, store, vault, clock, log, random = Math.random } = parts
  let current: Certificate | undefined
  let renew_at = 0
  let timer: NodeJS.Timeout | undefined
  let working = Promise.resolve()
  const stopping = new AbortController()

  function use(chain: string, key: string): void {
    if (current?.chain === chain) return
    const certificate = readCertificate(chain, key)
    current = certificate
    const life_ms = certificate.expires_at - certificate.begins_at
    renew_at = certificate.begins_at + life_ms * (renewAfter - random() * spread)
    parts.onCertificate(certificate)
  }

  function adopt(row: CertificateRow | undefined): void {
    if (row?.chain && row.private_key) use(row.chain, vault.open(keyPurpose, row.private_key))
  }

  /** Uses the present certificate or orders one; returns when to look again. */
  async function step(): Promise<number> {
    const found = await store.find(which)
    adopt(found)
    const now = clock.now()
    if (current && now < renew_at) return Math.min(patient_ms, Math.max(second_ms, renew_at - now))
    if ((found?.retry_at ?? '') > iso(now)) return impatient_ms
    return parts.inTurn(order)
  }

  async function order(): Promise<number> {
    if (stopping.signal.aborted) return patient_ms
    const now = clock.now()
    const leased = await store.lease(which, parts.holder, iso(now), iso(now + lease_ms))
    if (!leased) return impatient_ms
    if (stopping.signal.aborted) {
      await store.release(which)
      return patient_ms
    }
    // Another node may have renewed it since the row was read.
    adopt(leased)
    if ((current && now < renew_at) || leased.retry_at > iso(now)) {
      await store.release(which)
      return second_ms
    }
    await attempt(leased.failures)
    return second_ms
  }

  async function attempt(failures: number): Promise<void> {
    try {
      const sealed = await store.account(which.directory)
      const ordered = parts.order({
        ...which,
        email: parts.email,
        accountKey: sealed === undefined ? undefined : vault.open(accountPurpose, sealed),
        onAccount: async (key) =>
          void (await store.saveAccount({
            directory: which.directory,
            private_key: vault.seal(accountPurpose, key),
            created_at: iso(clock.now()),
          })),
        publish: async (token, answer) => {
          const now = clock.now()
          await store.addChallenge({ token, answer, expires_at: iso(now + challenge_ms) }, iso(now))
        },
      })
      const { chain, key } = await Promise.race([ordered, stopped(stopping.signal)])
      const { expires_at } = readCertificate(chain, key)
      await store.issued(which, chain, vault.seal(keyPurpose, key))
      log.info({ event: 'certificate.issued', name: which.name, expires_at: iso(expires_at) })
      use(chain, key)
    } catch (error) {
      if (stopping.signal.aborted) return void (await store.release(which))
      const limited = error instanceof OrderFailed && error.rateLimited
      const wait_ms = Math.max(
        waits_ms[Math.min(failures, waits_ms.length - 1)] ?? day_ms,
        limited ? leastWhenLimited_ms : 0,
      )
      const retry_at = iso(clock.now() + wait_ms * (1 + random() / 5))
      await store.failed(which, failures + 1, retry_at)
      log.error({ event: 'certificate.failed', message: (error as Error).message, retry_at })
    }
  }

  async function run(): Promise<void> {
    let next_ms = patient_ms
    try {
      next_ms = await step()
    } catch (err) {
      log.error({ event: 'certificate.unread', err })
    }
    if (!stopping.signal.aborted) timer = setTimeout(() => void (working = run()), next_ms).unref()
  }
  working = run()

  return {
    answer: async (token) => (tokenShape.test(token) ? store.challenge(token, iso(clock.now())) : undefined),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      clearTimeout(timer)
      await working
    },
  }
}

/** Rejects when the signal is aborted. */
function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error('the server stops'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
