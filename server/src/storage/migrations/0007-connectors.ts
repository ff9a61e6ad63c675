// Containers become devices: a device remembers which connector it is of, and a connector has the key by
// which its containers are known, and whether they are accepted at once.
import type { Opened } from '../dialects/dialect.ts'

export const connectors = {
  name: 'connectors',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      'alter table connectors add column accept integer not null default 0',
      `alter table connectors add column identity ${text}`,
      `alter table devices add column connector ${text}`,
      'create index devices_by_connector on devices (tenant_id, connector) where connector is not null',
      'create index connectors_enabled on connectors (enable, uid)',
    ]
  },
}
