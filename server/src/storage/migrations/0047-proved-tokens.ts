// A device remembers which token proved its key in a tunnel, and a session whether its recordings are only
// frames that somebody posted. Devices from before have proved nothing by a token yet; what was recorded
// before counts as the gateway's.
import type { Opened } from '../dialects/dialect.ts'

export const provedTokens = {
  name: 'proved tokens',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `alter table devices add column proved_token ${text}`,
      'alter table sessions add column posted integer not null default 0',
    ]
  },
}
