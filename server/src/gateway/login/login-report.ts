// A refused login is reported once. A login is one connection that tried to prove something; it is refused when the
// connection ends without a session. Clients try all their keys and some passwords on one connection, so the report
// has the most telling refusal and the keys that were tried. The client only learns its reference.
import { refusalSentences, type LoginRefusalReason } from '@hawser/contract/logins'
import type { Reachable } from '../../domain/access/logins.ts'
import type { RefusedEvent, RefusedLogin, Refusals } from '../../domain/access/refusals.ts'
import { Counter } from '../../kit/counter.ts'
import { safeText } from '../../kit/log.ts'
import type { AcceptedProof } from '../channels/logged-in.ts'

/** Why logins are refused. The metrics have one count for each; docs/guides/monitoring.md explains them. */
export type LoginReason = LoginRefusalReason | 'enrolment-key'
const loginReasons = [...Object.keys(refusalSentences), 'enrolment-key'] as LoginReason[]

export type LoginMethod = AcceptedProof['method']
const loginMethods: readonly LoginMethod[] = ['password', 'publickey']

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

/** The connection that a report is about; `by`: the person at the browser. */
type Reported = Pick<RefusedLogin, 'source' | 'via'> & { by?: string; event?: RefusedEvent }

export type LoginReports = ReturnType<typeof loginReports>
export type LoginReport = ReturnType<LoginReports['open']>

/** Fingerprints in one report. A connection may fail six times. */
const mostKeys = 6

export function loginReports(refusals: Pick<Refusals, 'reference' | 'note'>) {
  const accepted = new Counter(loginMethods)
  const refused = new Counter(loginReasons)

  return {
    accepted,
    refused,
    /** A report about one connection, which is sent when it is disposed. */
    open({ source, via, by, event = 'login.refused' }: Reported) {
      let sshid = ''
      let to: Reachable | undefined
      let telling: LoginRefusal | undefined
      let attempts = 0
      let isIn = false
      const keys = new Set<string>()
      return {
        /** By which an administrator finds the reason. */
        reference: () => refusals.reference(source, sshid),
        /** Notes the SSHID that the client sent. */
        asked: (text: string) => void (sshid = text),
        /** Notes the device that the SSHID means. */
        found: (reachable: Reachable) => void (to = reachable),
        /** An attempt was refused. */
        refused(refusal: LoginRefusal): void {
          attempts += 1
          if (refusal.fingerprint !== undefined) keys.add(refusal.fingerprint)
          // Clients offer all their keys, so an unknown key says less than any other reason.
          if (telling === undefined || refusal.reason !== 'unknown-key') telling = refusal
        },
        accepted(method: LoginMethod, fingerprint: string | undefined): AcceptedProof {
          isIn = true
          accepted.add(method)
          return { method, fingerprint, refused: attempts }
        },
        [Symbol.dispose]() {
          if (isIn || telling === undefined) return
          refused.add(telling.reason)
          const login = {
            reference: refusals.reference(source, sshid),
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
          refusals.note(login, event, keys.size > 1 ? [...keys].slice(0, mostKeys) : undefined)
        },
      }
    },
  }
}
