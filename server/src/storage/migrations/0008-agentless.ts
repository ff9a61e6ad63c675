// Devices without an agent: the keys with which they may join a namespace, the key with which we log in there
// for those who come with a public key, and a device remembers that it is one of them.
import type { Opened } from '../dialects/dialect.ts'

export const agentless = {
  name: 'agentless',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table enrolment_keys (tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        fingerprint ${text} not null, name ${text} not null, public_key ${text} not null, created_at ${text} not null,
        primary key (tenant_id, fingerprint))`,
      `create table login_keys (tenant_id ${text} primary key references namespaces (tenant_id) on delete cascade,
        private_key ${text} not null, created_at ${text} not null)`,
      `alter table devices add column enrolment_key ${text}`,
    ]
  },
}
