// Notes about devices.
import type { Opened } from '../dialects/dialect.ts'

export const deviceNotes = {
  name: 'device notes',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table device_notes (tenant_id ${text} not null,
        uid ${text} not null references devices (uid) on delete cascade, text ${text} not null,
        version integer not null, changed_at ${text} not null, changed_by ${text} not null,
        primary key (uid, tenant_id))`,
    ]
  },
}
