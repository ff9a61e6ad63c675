// Devices of containers follow the names of their containers: a device remembers what its container is called,
// whether a person named the device instead, and whether a person decided about its status. Devices from before
// do not know the name yet (''); whatever they are called then counts as a person's choice unless it fits.
import type { Opened } from '../dialects/dialect.ts'

export const containerNames = {
  name: 'container names',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `alter table devices add column container ${text}`,
      'alter table devices add column named integer not null default 0',
      'alter table devices add column decided integer not null default 0',
      `update devices set container = '', decided = case when status_update_at <> created_at then 1 else 0 end
        where connector is not null or info_platform = 'connector'`,
      'drop index devices_by_connector',
      `create index devices_by_connector on devices (tenant_id, connector)
        where connector is not null and status <> 'removed'`,
      `create index devices_of_gone_containers on devices (tenant_id, connector, container)
        where connector is not null and status = 'removed'`,
      `create index devices_removed on devices (status_update_at) where status = 'removed'`,
      `create index devices_to_rename on devices (tenant_id, connector)
        where container <> name and named = 0 and status = 'accepted'`,
    ]
  },
}
