// Search over recordings: which sessions are to be indexed, and whether a namespace wants that. The index
// itself is in tables here on PostgreSQL, and in a file of its own next to SQLite's.
import type { Opened } from '../dialects/dialect.ts'

export const search = {
  name: 'search',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const both = [
      'alter table namespaces add column search integer not null default 1',
      `alter table sessions add column index_at ${text}`,
      `update sessions set index_at = '' where recorded = 1`,
      'create index sessions_to_index on sessions (index_at) where index_at is not null',
    ]
    if (dialect === 'sqlite') return both
    return [
      ...both,
      `create table search_recordings (id bigint generated always as identity primary key, tenant_id ${text} not null,
        session_uid ${text} not null references sessions (uid) on delete cascade, channel integer not null,
        device_uid ${text} not null, username ${text} not null, started_ms bigint not null,
        version integer not null, unique (session_uid, channel))`,
      'create index search_recordings_by_namespace on search_recordings (tenant_id)',
      `create table search_passages (id bigint primary key,
        recording bigint not null references search_recordings (id) on delete cascade,
        body bytea not null, words tsvector not null)`,
      // The text is compressed already.
      'alter table search_passages alter column body set storage external',
      'create index search_passages_by_recording on search_passages (recording)',
      'create index search_passages_by_words on search_passages using gin (words)',
    ]
  },
}
