// Search by person, and recordings that cannot be indexed: how often indexing one has ended its thread.
// Indexed recordings are indexed again, because their words do not name the person yet; with SQLite the file of
// the index is made anew.
import type { Opened } from '../dialects/dialect.ts'

export const searchPeople = {
  name: 'search-people',
  statements: (dialect: Opened['name']): string[] => [
    'alter table sessions add column index_failures integer not null default 0',
    'create index sessions_not_indexed on sessions (tenant_id) where index_failures > 0',
    ...(dialect === 'sqlite'
      ? []
      : [
          `alter table search_recordings add column person_id text collate "C" not null default ''`,
          `update sessions set index_at = '' where recorded = 1`,
        ]),
  ],
}
