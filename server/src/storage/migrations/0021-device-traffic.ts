// Bytes that devices have received and sent, by day.
import type { Opened } from '../dialects/dialect.ts'

export const deviceTraffic = {
  name: 'device traffic',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const compact = dialect === 'sqlite' ? ' without rowid' : ''
    return [
      `create table device_traffic (tenant_id ${text} not null,
        uid ${text} not null references devices (uid) on delete cascade, day ${text} not null,
        idle_received bigint not null, idle_sent bigint not null,
        session_received bigint not null, session_sent bigint not null, primary key (uid, day))${compact}`,
      // For the sweep, which goes by age.
      `create index device_traffic_by_day on device_traffic (day)`,
    ]
  },
}
