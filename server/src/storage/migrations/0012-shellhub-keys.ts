// Moved from a ShellHub: the public keys that its device tokens are signed with, each with a namespace that
// it counts for; a namespace remembers that it was imported, and a device when it was first given a token
// here.
import type { Opened } from '../dialects/dialect.ts'

export const shellHubKeys = {
  name: 'ShellHub keys',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table shellhub_keys (tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        fingerprint ${text} not null, public_key ${text} not null, added_at ${text} not null,
        primary key (tenant_id, fingerprint))`,
      'alter table namespaces add column imported integer not null default 0',
      `alter table devices add column token_at ${text}`,
    ]
  },
}
