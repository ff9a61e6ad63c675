// Recordings that are being written or wait to be sent, each with the node that has it: of several nodes it
// alone may put it into the store that they share, and when it is lost one of the others takes its place.
import type { Opened } from '../dialects/dialect.ts'

export const unfinishedRecordings = {
  name: 'unfinished recordings',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table unfinished_recordings (tenant_id ${text} not null, session_uid ${text} not null, channel integer not null,
        node ${text} not null, primary key (session_uid, channel))`,
      'create index unfinished_recordings_by_node on unfinished_recordings (node)',
    ]
  },
}
