// A change with its entry writes fewer pages. Entries lay in the tree of their key, whose inner pages held
// whole entries as well, so that an entry rewrote half a dozen pages; and an index by time was kept for
// questions that the numbers answer, because moments never go back.
import type { Opened } from '../dialects/dialect.ts'

export const auditPages = {
  name: 'audit-pages',
  statements: (dialect: Opened['name']): string[] => [
    'drop index audit_entries_by_time',
    ...(dialect === 'sqlite'
      ? [
          `create table audit_entries_new (tenant_id text not null, seq bigint not null, at text not null,
            action text not null, actor_kind text not null, actor_id text not null, actor_name text not null,
            source text not null, request_id text not null,
            target_kind text not null, target_id text not null, target_name text not null,
            detail text not null, hash text not null, primary key (tenant_id, seq))`,
          `insert into audit_entries_new (tenant_id, seq, at, action, actor_kind, actor_id, actor_name, source,
            request_id, target_kind, target_id, target_name, detail, hash)
            select tenant_id, seq, at, action, actor_kind, actor_id, actor_name, source, request_id, target_kind,
            target_id, target_name, detail, hash from audit_entries order by tenant_id, seq`,
          'drop table audit_entries',
          'alter table audit_entries_new rename to audit_entries',
        ]
      : []),
  ],
}
