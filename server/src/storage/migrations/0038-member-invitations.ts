// Invitations of people into a namespace, by e-mail.
import type { Opened } from '../dialects/dialect.ts'

export const memberInvitations = {
  name: 'member invitations',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table member_invitations (id ${text} primary key,
        tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        email ${text} not null, role ${text} not null, hash ${text} not null unique, by_mail integer not null,
        invited_by ${text} not null references users (id) on delete cascade, valid_days integer not null,
        created_at ${text} not null, sent_at ${text} not null, expires_at ${text} not null)`,
      'create unique index member_invitations_by_email on member_invitations (tenant_id, email)',
      'create index member_invitations_by_maker on member_invitations (invited_by)',
      'create index member_invitations_by_end on member_invitations (expires_at)',
    ]
  },
}
