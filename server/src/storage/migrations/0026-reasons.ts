// Why things are as they are: what happened to devices, and why logins were refused.
import type { Opened } from '../dialects/dialect.ts'

export const reasons = {
  name: 'reasons',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const compact = dialect === 'sqlite' ? ' without rowid' : ''
    return [
      `create table device_events (tenant_id ${text} not null,
        uid ${text} not null references devices (uid) on delete cascade, seq bigint not null,
        at ${text} not null, kind ${text} not null, detail ${text} not null, primary key (uid, seq))${compact}`,
      `create table login_refusals (tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        reference ${text} not null, at ${text} not null, last_at ${text} not null, times bigint not null,
        detail ${text} not null, primary key (tenant_id, reference))${compact}`,
      'create index login_refusals_by_time on login_refusals (tenant_id, last_at)',
      // For the sweep, which goes by age.
      'create index login_refusals_by_age on login_refusals (last_at)',
    ]
  },
}
