// Sign-ins: where a user is signed in. A token belongs to one, and counts while it is there. Tokens from
// before belong to none, so everybody signs in once more.
import type { Opened } from '../dialects/dialect.ts'

export const signIns = {
  name: 'sign-ins',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table sign_ins (id ${text} primary key,
        user_id ${text} not null references users (id) on delete cascade,
        agent ${text} not null, source ${text} not null, created_at ${text} not null,
        used_from ${text} not null, used_at ${text} not null, expires_at ${text} not null)`,
      'create index sign_ins_of_user on sign_ins (user_id, used_at)',
      'create index sign_ins_by_end on sign_ins (expires_at)',
    ]
  },
}
