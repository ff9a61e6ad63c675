// A refused login leaves one line in the log and one count behind. A login is one connection that tried
// to prove something; it is refused when the connection ends without a session. Clients try all their keys and
// some passwords on one connection, so the line has the most telling refusal and the keys that were tried.
// Whoever is refused learns nothing of it. Lines about one source are limited, because strangers cause them.
import type { Reachable } from '../domain/access/logins.ts'
import type { RefusedLogin } from '../domain/access/refusals.ts'
import { neighbourhood } from '../kit/address.ts'
import { Counter } from '../kit/counter.ts'
import { safeText, type LineLimiter, type Log } from '../kit/log.ts'
import type { References } from './references.ts'

/** Why logins are refused. The metrics have one count for each; docs/guides/monitoring.md explains them. */
export const loginReasons = [
  'invalid-sshid',
  'unknown-device',
  'offline',
  'unreachable',
  'host-key-changed',
  'firewall',
  'device-limit',
  'person-required',
  'password',
  'unknown-key',
  'key-scope',
  'weak-key',
  'certificate',
  'signature',
  'old-agent',
  'device-refused',
  'enrolment-key',
  'rate-limited',
  'too-many-sessions',
  'unavailable',
] as const
export type LoginReason = (typeof loginReasons)[number]

const loginMethods = ['password', 'publickey'] as const
export type LoginMethod = (typeof loginMethods)[number]

export interface LoginRefusal {
  readonly reason: LoginReason
  /** Absent when the login was refused before anything was proved. */
  readonly method?: LoginMethod | undefined
  /** The SHA-256 fingerprint of the key. */
  readonly fingerprint?: string | undefined
  /** The id of the firewall rule, or the name of the registered key, that refused. */
  readonly rule?: string | undefined
  /** More about the reason, for people. */
  readonly detail?: string | undefined
}

/** How a login was accepted. */
export interface AcceptedProof {
  readonly method: LoginMethod
  readonly fingerprint: string | undefined
  /** Attempts on the same connection that were refused before. */
  readonly refused: number
}

/** Where refused logins are kept for administrators, and what refused people are shown to name one. */
export interface KeptRefusals {
  readonly references: References
  keep(login: RefusedLogin): void
}

export interface LoginReport extends Disposable {
  /** Notes the SSHID that the client sent. */
  asked(sshid: string): void
  /** Notes the device that the SSHID means. */
  found(to: Reachable): void
  /** An attempt was refused. */
  refused(refusal: LoginRefusal): void
  accepted(method: LoginMethod, fingerprint: string | undefined): AcceptedProof
  /** The reference by which an administrator finds the reason. It says nothing about the reason by itself. */
  reference(): string
}

export interface LoginReports {
  /** A report about one connection, which is written when the report is disposed. */
  open(about: { source: string; via: 'ssh' | 'web'; by?: string | undefined; event?: string }): LoginReport
  readonly accepted: Counter<LoginMethod>
  readonly refused: Counter<LoginReason>
}

const loginRefused = 'login.refused'
/** Fingerprints in one line. A connection may fail six times. */
const mostKeys = 6

export function loginReports(log: Log, lines: LineLimiter, { references, keep }: KeptRefusals): LoginReports {
  const accepted = new Counter(loginMethods)
  const refused = new Counter(loginReasons)

  return {
    accepted,
    refused,
    open({ source, via, by, event = loginRefused }) {
      let sshid = ''
      let to: Reachable | undefined
      let telling: LoginRefusal | undefined
      let attempts = 0
      let isIn = false
      const keys = new Set<string>()
      const reference = (): string => references.of(source, sshid)
      return {
        reference,
        asked: (text) => void (sshid = text),
        found: (reachable) => void (to = reachable),
        refused(refusal) {
          attempts += 1
          if (refusal.fingerprint !== undefined) keys.add(refusal.fingerprint)
          // Clients offer all their keys, so an unknown key says less than any other reason.
          if (telling === undefined || refusal.reason !== 'unknown-key') telling = refusal
        },
        accepted(method, fingerprint) {
          isIn = true
          accepted.add(method)
          return { method, fingerprint, refused: attempts }
        },
        [Symbol.dispose]() {
          if (isIn || telling === undefined) return
          refused.add(telling.reason)
          const login = {
            reference: reference(),
            ...telling,
            source,
            via,
            by,
            username: sshid.includes('@') ? safeText(sshid.slice(0, sshid.indexOf('@'))) : undefined,
            sshid: safeText(sshid),
            tenant_id: to?.namespace.tenant_id,
            device: to?.device.uid,
            name: to && `${to.namespace.name}.${to.device.name}`,
            attempts,
          }
          // A device that may not join was refused by no namespace that its words name.
          if (event === loginRefused) keep(login)
          if (!lines.allows(neighbourhood(source))) return
          const keys_tried = keys.size > 1 ? [...keys].slice(0, mostKeys) : undefined
          log.info({ event, ...login, keys_tried })
        },
      }
    },
  }
}
