// A new password ends every token of the user but the one that asked for it, so the user remembers which one that is.
import type { Opened } from '../dialects/dialect.ts'

export const identity = {
  name: 'identity',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [`alter table users add column kept_token ${text}`]
  },
}
