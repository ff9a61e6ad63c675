// The audit log: its entries, the head of each chain, how long a namespace keeps its entries, and which
// members have come. The server's
// own log has the empty tenant_id, so nothing here references a namespace.
import type { Opened } from '../dialects/dialect.ts'

export const audit = {
  name: 'audit',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const compact = dialect === 'sqlite' ? ' without rowid' : ''
    return [
      `create table audit_entries (tenant_id ${text} not null, seq bigint not null, at ${text} not null,
        action ${text} not null, actor_kind ${text} not null, actor_id ${text} not null, actor_name ${text} not null,
        source ${text} not null, request_id ${text} not null,
        target_kind ${text} not null, target_id ${text} not null, target_name ${text} not null,
        detail ${text} not null, hash ${text} not null, primary key (tenant_id, seq))${compact}`,
      // Filters by time and the sweep find their place by it.
      `create index audit_entries_by_time on audit_entries (tenant_id, at, seq)`,
      `create table audit_heads (tenant_id ${text} not null primary key, seq bigint not null, hash ${text} not null,
        at ${text} not null, first_seq bigint not null, first_hash ${text} not null)${compact}`,
      `alter table namespaces add column audit_retention_days integer not null default 365`,
      // Anybody can make anybody a member, so a namespace learns of an account once its user has come.
      `alter table members add column signed_in integer not null default 0`,
      `update members set signed_in = 1`,
    ]
  },
}
