// Composition of what is about people: their tokens and sign-ins, users, their second factor, namespaces and their
// members.
import { peopleLimits } from '@hawser/contract/limits'
import type { Audit } from '../domain/audit/audit.ts'
import { gate } from '../domain/callers/callers.ts'
import { shellHubTokens } from '../domain/callers/shellhub-tokens.ts'
import { tokens } from '../domain/callers/tokens.ts'
import { invitations } from '../domain/namespaces/invitations.ts'
import { presentedInvitations } from '../domain/namespaces/presented-invitations.ts'
import { administration as openAdministration } from '../domain/namespaces/administration.ts'
import { members } from '../domain/namespaces/members.ts'
import { namespaces } from '../domain/namespaces/namespaces.ts'
import { namespaceView } from '../domain/namespaces/view.ts'
import { ownership } from '../domain/namespaces/ownership.ts'
import { accountLinks } from '../domain/people/account-links.ts'
import { accounts } from '../domain/people/accounts.ts'
import { confirmations as openConfirmations } from '../domain/people/confirmations.ts'
import { identityChanges as openIdentityChanges } from '../domain/people/identity-changes.ts'
import { lockout } from '../domain/people/lockout.ts'
import { mfa } from '../domain/people/mfa.ts'
import { mfaReset } from '../domain/people/mfa-reset.ts'
import { mfaSignIn } from '../domain/people/mfa-sign-in.ts'
import { passwordSignIn } from '../domain/people/password-sign-in.ts'
import { profile } from '../domain/people/profile.ts'
import { proofOfUser } from '../domain/people/proof.ts'
import { signIn } from '../domain/people/sign-in.ts'
import { noteUse, signInRules } from '../domain/people/sign-ins.ts'
import { neighbourhood } from '../kit/address.ts'
import { emails } from '../mail/emails.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'

export async function openSignIn(foundation: Foundation, { audit, auditedRefusals }: EvidenceRooms) {
  const { config, stores, vault, clock, lines, log, background } = foundation
  const issued = await tokens({ stores, vault, clock })
  const shellHub = shellHubTokens({ stores, clock, days: config.HAWSER_SHELLHUB_TOKENS })
  const onUsed = noteUse({ stores, clock, later: background.later })
  return {
    tokens: issued,
    shellHub,
    gate: gate({ stores, tokens: issued, shellHub, clock, onUsed }),
    lockout: lockout({ stores, clock }),
    signIn: signIn({
      stores,
      audit,
      auditedRefusals,
      tokens: issued,
      clock,
      onAttempt({ result, request_id: reqId, ...about }) {
        if (result !== 'refused' || lines.allows(neighbourhood(about.source)))
          log.info({ event: `sign-in.${result}`, reqId, ...about })
      },
    }),
  }
}

export type SignInRooms = Awaited<ReturnType<typeof openSignIn>>

interface PeopleParts extends Pick<SignInRooms, 'lockout' | 'signIn'> {
  readonly audit: Audit
  readonly mailer: Mailer
  readonly billed: boolean
}

export function openPeople(
  foundation: Foundation,
  { audit, mailer, lockout: locks, signIn: who, billed }: PeopleParts,
) {
  const { config, stores, vault, clock, bus, limiter, background, url } = foundation
  const mailing = { stores, audit, vault, clock, lockout: locks, mailer, emails: emails(url), background }
  const confirmations = openConfirmations(mailing)
  const identityChanges = openIdentityChanges({ ...mailing, confirmations })
  const people = { ...mailing, signIn: who, bus, confirmations, identityChanges }
  const registration = config.HAWSER_REGISTRATION
  const links = accountLinks(people)
  const { admin: users, ...registering } = accounts({ ...people, registration }, links)
  const owning = { stores, audit, bus, namespaceLimit: config.HAWSER_NAMESPACE_LIMIT }
  const wrongNames = limiter('wrong names of members', peopleLimits.wrongNames)
  const administration = openAdministration({ ...owning, clock, billed })
  const ruling = { ...owning, administration, view: namespaceView(stores, billed) }
  return {
    rules: {
      users: { ...passwordSignIn(people), ...profile(people), ...links.rules, ...registering },
      signIns: signInRules({ stores, audit, bus, clock }),
      mfa: { ...mfa(people), ...mfaSignIn(people), ...mfaReset(people) },
      invitations: {
        ...invitations({ ...people, hasMail: config.HAWSER_SMTP !== '' }),
        ...presentedInvitations({ ...people, users, registration }),
      },
      namespaces: {
        ...namespaces(ruling),
        ...members({ ...ruling, wrongNames }),
        ...ownership({ ...owning, namespaces: administration, proof: proofOfUser(people) }),
      },
    },
    users,
    namespaces: administration,
  }
}
