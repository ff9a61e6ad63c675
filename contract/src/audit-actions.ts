// Every action of the audit log, with its sentence. An operation of the contract names its action in its
// stanza; events without an operation (a session ends, a login is refused) are in this list, too.

const catalogue = {
  'device.enrolled': 'A new device joined.',
  'device.accepted': 'A device was accepted.',
  'device.rejected': 'A device was rejected.',
  'device.pending': 'A device was made pending.',
  'device.unused': 'A device was made unused.',
  'device.replaced': 'A device was removed because another one with the same MAC address replaced it.',
  'device.updated': 'The name or the public URL of a device changed.',
  'device.tags.updated': 'The tags of a device changed.',
  'device.notes.updated': 'The notes about a device changed.',
  'device.removed': 'A device was removed.',
  'device.conflict': 'Two machines use the identity of one device.',
  'device.update.requested': 'Agents were asked to update themselves.',
  'budget.created': 'A data budget was created.',
  'budget.updated': 'A data budget changed.',
  'budget.removed': 'A data budget was removed.',
  'tag.renamed': 'A tag was renamed everywhere.',
  'tag.removed': 'A tag was removed everywhere.',
  'pairing.confirmed': 'A device was taken in by its pairing code.',
  'pairing.refused': 'A device that asked with a pairing code was refused.',
  'accept-rule.created': 'An accept rule was created.',
  'accept-rule.removed': 'An accept rule was removed.',
  'enrolment-token.created': 'An enrolment token was created.',
  'enrolment-token.removed': 'An enrolment token was removed.',
  'enrolment-token.refused': 'A device presented an enrolment token that has expired or is used up.',
  'enrolment-key.created': 'An enrolment key was created.',
  'enrolment-key.removed': 'An enrolment key was removed.',
  'connector.created': 'A connector was created.',
  'connector.updated': 'A connector changed.',
  'connector.removed': 'A connector was removed.',
  'public-key.created': 'A public key was registered.',
  'public-key.updated': 'A public key changed.',
  'public-key.removed': 'A public key was removed.',
  'api-key.created': 'An API key was created.',
  'api-key.updated': 'An API key changed.',
  'api-key.removed': 'An API key was removed.',
  'firewall.rule.created': 'A firewall rule was created.',
  'firewall.rule.updated': 'A firewall rule changed.',
  'firewall.rule.removed': 'A firewall rule was removed.',
  'namespace.created': 'A namespace was created.',
  'namespace.updated': 'The name or the settings of a namespace changed.',
  'namespace.removed': 'A namespace was removed with everything in it.',
  'invitation.created': 'Somebody was invited into the namespace by e-mail.',
  'invitation.sent-again': 'An invitation was sent again, with a new link.',
  'invitation.withdrawn': 'An invitation was withdrawn.',
  'invitation.ended':
    'An invitation ended, because its creator got a new password, or undid a change of the account.',
  'member.added': 'A user became a member.',
  'member.updated': 'The role of a member changed.',
  'member.removed': 'A membership ended.',
  'member.left': 'A member left the namespace.',
  'namespace.handed-over': 'The owner made another member the owner.',
  'session.opened': 'Somebody logged in on a device.',
  'session.closed': 'A session ended.',
  'session.terminated': 'A member ended a session.',
  'session.held': 'A session lost its client, and waits for its person to come back.',
  'session.resumed': 'A person continued a session with another client.',
  'session.watched': 'Somebody began to watch a session.',
  'session.unwatched': 'Somebody stopped watching a session.',
  'session.invitation.created': 'Somebody was invited to a session.',
  'session.invitation.used': 'Somebody accepted an invitation to a session.',
  'session.invitation.revoked': 'An invitation to a session was revoked.',
  'session.consent.given': 'The person of a session allowed somebody to type in it.',
  'session.consent.refused': 'The person of a session did not allow somebody to type in it.',
  'session.joined': 'Somebody was allowed to type in another person’s session.',
  'session.left': 'Somebody stopped typing in another person’s session.',
  'session.control.taken': 'Somebody took control of a session: only they can type.',
  'session.control.handed': 'Somebody handed control of a session to another person.',
  'session.control.shared': 'Everybody who may type in a session can do so again.',
  'file.transferred': 'A file was read or written by SFTP in a session.',
  'forward.opened': 'A connection was forwarded in a session, to this address for the first time.',
  'policy.updated': 'The session policy changed.',
  'policy.refused': 'The policy of the namespace forbade something in a session.',
  'login.refused': 'A login on a device was refused.',
  'recording.played': 'Somebody played or searched a recording.',
  'recording.searched': 'Somebody searched all recordings.',
  'recording.downloaded': 'Somebody downloaded a recording.',
  'recording.removed': 'A recording was removed, or several that were older than the server keeps them.',
  'user.created': 'A user was created.',
  'user.registered': 'Somebody registered.',
  'user.activated': 'A user confirmed the e-mail address of the registration.',
  'user.removed': 'A user was removed.',
  'user.updated': 'A user changed the name, the user name or an e-mail address.',
  'user.email.confirmed': 'A user confirmed a changed e-mail address.',
  'user.identity.restored': 'A user undid a change of e-mail address or second factor.',
  'user.password.changed': 'A password changed.',
  'user.mfa.enabled': 'A second factor was switched on.',
  'user.mfa.disabled': 'A second factor was switched off.',
  'user.signed-in': 'Somebody signed in.',
  'user.signed-out': 'Somebody signed out, or ended other sign-ins.',
  'user.sign-in.refused': 'A sign-in was refused.',
  'billing.updated': 'The subscription or the payment method of a namespace changed.',
  'audit.exported': 'Somebody exported the audit log.',
  'audit.trimmed': 'Entries that are older than the retention of the namespace were removed.',
  'audit-stream.created': 'An audit stream was created.',
  'audit-stream.updated': 'An audit stream changed.',
  'audit-stream.removed': 'An audit stream was removed.',
  'audit-stream.tested': 'Somebody sent a test message to the receiver of an audit stream.',
  'audit-stream.redelivered': 'Somebody had dead letters of an audit stream sent again.',
  'audit-stream.gave-up':
    'The receiver of an audit stream did not take entries in time; they are dead letters.',
  'admin.command': 'The administrator ran a command on the server.',
} as const

export type AuditAction = keyof typeof catalogue

export const auditActions: Readonly<Record<AuditAction, string>> = catalogue

/**
 * The entry of an operation in the audit log: its action, one of several, or nothing, with the reason. An
 * operation that was refused, or that changed nothing, leaves no entry. A failed test of a receiver leaves
 * one.
 */
export type AuditDeclaration = AuditAction | readonly AuditAction[] | { readonly none: string }

export function declaredActions(declared: AuditDeclaration | undefined): readonly AuditAction[] {
  if (declared === undefined) return []
  if (typeof declared === 'string') return [declared]
  return 'none' in declared ? [] : declared
}
