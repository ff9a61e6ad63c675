// TLS certificates from an ACME server: the account there, the certificate of each name with the node
// that orders it at the moment, and the answers to challenges, which every node gives.
import type { Opened } from '../dialects/dialect.ts'

export const certificates = {
  name: 'certificates',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table acme_accounts (directory ${text} primary key, private_key ${text} not null,
        created_at ${text} not null)`,
      `create table certificates (directory ${text} not null, name ${text} not null, chain ${text},
        private_key ${text}, failures integer not null default 0, retry_at ${text} not null default '',
        lease_holder ${text} not null default '', lease_ends_at ${text} not null default '',
        primary key (directory, name))`,
      `create table acme_challenges (token ${text} primary key, answer ${text} not null,
        expires_at ${text} not null)`,
    ]
  },
}
