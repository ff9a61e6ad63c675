// The events of sessions: files, commands and forwarded connections. And what a namespace forbids there.
import type { Opened } from '../dialects/dialect.ts'

export const sessionEvents = {
  name: 'session events',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const compact = dialect === 'sqlite' ? ' without rowid' : ''
    return [
      `create table session_events (tenant_id ${text} not null,
        session_uid ${text} not null references sessions (uid) on delete cascade, seq bigint not null,
        at ${text} not null, kind ${text} not null, subject ${text} not null, target ${text} not null,
        outcome ${text} not null, received bigint not null, sent bigint not null, sha256 ${text} not null,
        why ${text} not null, primary key (session_uid, seq))${compact}`,
      `alter table namespaces add column policy ${text} not null default '{}'`,
    ]
  },
}
