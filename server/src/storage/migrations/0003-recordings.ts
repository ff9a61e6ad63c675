// Recordings are journals outside of the database, so the table of frames goes. What stays here: the key that
// signs them, and a list of what is to be removed. A trigger writes it, so that no way in which a session
// goes (with its device, with its namespace) can forget its recording; the sweeps remove the journals.
import type { Opened } from '../dialects/dialect.ts'

export const recordings = {
  name: 'recordings',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const remember = `insert into unwanted_recordings (session_uid, tenant_id) values (old.uid, old.tenant_id) on conflict do nothing;`
    const when = 'old.recorded = 1 or old.active = 1'
    return [
      'drop table frames',
      'update sessions set recorded = 0 where recorded = 1',
      `create table recording_keys (type ${text} primary key, private_key ${text} not null, created_at ${text} not null)`,
      `create table unwanted_recordings (session_uid ${text} primary key, tenant_id ${text} not null)`,
      'create index sessions_by_recording on sessions (last_seen) where recorded = 1',
      ...(dialect === 'sqlite'
        ? [
            `create trigger sessions_recording_deleted after delete on sessions when ${when} begin ${remember} end`,
          ]
        : [
            `create function sessions_recording_deleted() returns trigger language plpgsql as $$ begin ${remember} return null; end $$`,
            `create trigger sessions_recording_deleted after delete on sessions for each row when (${when})
              execute function sessions_recording_deleted()`,
          ]),
    ]
  },
}
