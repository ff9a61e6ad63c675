// The state of the gateway: its own host keys, so that clients know it again after a restart and on every node,
// and whether a device's agent has once proved that it holds the device's private key (from then on it always
// must).
import type { Opened } from '../dialects/dialect.ts'

export const reachingDevices = {
  name: 'reaching devices',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `create table host_keys (type ${text} primary key, private_key ${text} not null, created_at ${text} not null)`,
      'alter table devices add column proved integer not null default 0',
      `create index sessions_by_active on sessions (active) where active = 1`,
    ]
  },
}
