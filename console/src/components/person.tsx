// The person behind a session or an entry of the audit log, in words: who, what kind of a name that is, and what they
// did.
import { Link } from '@tanstack/react-router'
import type { AuditEntry } from '@hawser/contract/audit'
import { auditActions, type AuditAction } from '@hawser/contract/audit-actions'
import type { Session } from '@hawser/contract/sessions'
import { msg, t } from '../language/language.ts'

const kinds: Readonly<Record<Session['person']['kind'], string>> = {
  user: '',
  'api-key': msg('API key'),
  certificate: msg('by certificate'),
  unknown: '',
}

export const ways: Readonly<Record<string, string>> = {
  ssh: msg('plain ssh'),
  browser: msg('the terminal in the browser'),
  cli: msg('the hawser command'),
}

export const methods: Readonly<Record<string, string>> = {
  password: msg('device password'),
  publickey: msg('public key'),
  certificate: msg('certificate'),
  'sign-in': msg('sign-in'),
  link: msg('link'),
  public: msg('public'),
}

/** Links to the person's sessions. */
export function Person({ person }: { person: Session['person'] }) {
  if (person.kind === 'unknown') return <span className="soft">{t('an unknown person')}</span>
  const kind = [
    kinds[person.kind] && t(kinds[person.kind]),
    person.created_by && t('of {created_by}', { created_by: person.created_by }),
  ]
    .filter(Boolean)
    .join(' ')
  return (
    <>
      <Link
        to="/sessions"
        search={{ past: true, person: person.id }}
        aria-label={t('Sessions of {name}', { name: person.name })}
      >
        {person.name}
      </Link>
      {kind && ` (${kind})`}
    </>
  )
}

/** People have names of their own; the administrator of the server does not. */
export const actorName = ({ kind, name }: AuditEntry['actor']): string => (kind === 'admin' ? t(name) : name)

const isKnown = (action: string): action is AuditAction => Object.hasOwn(auditActions, action)

/** An action that this console does not know is called by its name. */
export const actionText = (action: string): string =>
  isKnown(action) ? t(auditActions[action]).replace(/\.$/, '') : action
