// Several nodes on one database: who they are, which of them has a device's tunnel or runs a session, and the
// number of a device's tunnel, of which the highest counts.
import type { Opened } from '../dialects/dialect.ts'

export const nodes = {
  name: 'nodes',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const moment = dialect === 'sqlite' ? 'text' : 'timestamptz'
    return [
      `create table nodes (id ${text} primary key, address ${text} not null, seen_at ${moment} not null)`,
      `alter table devices add column node ${text} not null default ''`,
      'alter table devices add column tunnel integer not null default 0',
      `create index devices_by_node on devices (node) where node <> ''`,
      `alter table sessions add column node ${text} not null default ''`,
      `create index sessions_by_node on sessions (node) where active = 1`,
    ]
  },
}
