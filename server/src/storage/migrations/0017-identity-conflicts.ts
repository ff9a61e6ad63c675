// A device remembers that two machines used its identity: JSON {since, last_at, addresses}, or null.
import type { Opened } from '../dialects/dialect.ts'

export const identityConflicts = {
  name: 'identity conflicts',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [`alter table devices add column conflict ${text}`]
  },
}
