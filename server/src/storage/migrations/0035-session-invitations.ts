// Invitations to live sessions, and whether those who are no members may be invited.
import type { Opened } from '../dialects/dialect.ts'

export const sessionInvitations = {
  name: 'session invitations',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table session_invitations (id ${text} primary key,
        tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        session_uid ${text} not null references sessions (uid) on delete cascade, hash ${text} not null unique,
        mode ${text} not null, for_name ${text} not null,
        user_id ${text} references users (id) on delete cascade, used_at ${text},
        created_by ${text} not null references users (id) on delete cascade, created_epoch integer not null,
        created_token ${text} not null, created_at ${text} not null, expires_at ${text} not null)`,
      'create index session_invitations_by_session on session_invitations (session_uid)',
      'create index session_invitations_by_namespace on session_invitations (tenant_id)',
      'create index session_invitations_by_maker on session_invitations (created_by)',
      'create index session_invitations_by_user on session_invitations (user_id)',
      'create index session_invitations_by_expiry on session_invitations (expires_at)',
      'alter table namespaces add column invite_outsiders integer not null default 0',
    ]
  },
}
