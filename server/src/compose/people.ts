// Composition of what is about people: users, their second factor, namespaces and their members.
import type { Audit } from '../domain/audit/audit.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { invitations } from '../domain/namespaces/invitations.ts'
import { namespaces, type NamespaceAdministration } from '../domain/namespaces/namespaces.ts'
import { ownership } from '../domain/namespaces/ownership.ts'
import { identity } from '../domain/people/identity.ts'
import type { Lockout } from '../domain/people/lockout.ts'
import { mfa } from '../domain/people/mfa.ts'
import { proofOfUser } from '../domain/people/proof.ts'
import type { SignIn } from '../domain/people/sign-in.ts'
import { signInRules } from '../domain/people/sign-ins.ts'
import { users, type UserAdministration } from '../domain/people/users.ts'
import { minute_ms } from '../kit/clock.ts'
import { emails } from '../mail/emails.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Foundation } from './foundation.ts'

export interface PeopleRooms {
  readonly rules: Pick<AllRules, 'users' | 'signIns' | 'mfa' | 'namespaces' | 'invitations'>
  readonly administration: {
    readonly users: UserAdministration
    readonly namespaces: NamespaceAdministration
  }
}

interface PeopleParts {
  readonly audit: Audit
  readonly mailer: Mailer
  readonly lockout: Lockout
  readonly signIn: SignIn
  /** Whether there is a payment provider. */
  readonly billed: boolean
}

export function openPeople(foundation: Foundation, parts: PeopleParts): PeopleRooms {
  const { config, stores, vault, clock, bus, limiter, background, url } = foundation
  const { audit, mailer, lockout, signIn, billed } = parts
  const mailing = { stores, audit, vault, clock, lockout, mailer, emails: emails(url), background }
  const people = { ...mailing, signIn, identity: identity(mailing) }
  const registration = config.HAWSER_REGISTRATION
  const userRules = users({ ...people, bus, registration })
  const owning = { stores, audit, bus, namespaceLimit: config.HAWSER_NAMESPACE_LIMIT }
  const wrongNames = limiter('wrong names of members', { max: 30, window_ms: 10 * minute_ms })
  const namespaceRules = namespaces({ ...owning, clock, billed, wrongNames })
  return {
    rules: {
      users: userRules,
      signIns: signInRules({ stores, audit, bus, clock }),
      mfa: mfa(people),
      invitations: invitations({
        ...people,
        users: userRules.admin,
        hasMail: config.HAWSER_SMTP !== '',
        registration,
      }),
      namespaces: {
        ...namespaceRules,
        ...ownership({ ...owning, namespaces: namespaceRules.admin, proof: proofOfUser(people) }),
      },
    },
    administration: { users: userRules.admin, namespaces: namespaceRules.admin },
  }
}
