// A namespace names variables of clients that reach its devices in addition to those of language.
import type { Opened } from '../dialects/dialect.ts'

export const acceptedVariables = {
  name: 'accepted variables',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [`alter table namespaces add column accept_env ${text} not null default '[]'`]
  },
}
