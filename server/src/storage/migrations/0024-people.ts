// A session carries who opened it, and how. A public key may belong to a member. A namespace may demand a
// known person. Sessions from before know nobody, and keys from before belong to nobody.
import type { Opened } from '../dialects/dialect.ts'

export const people = {
  name: 'people',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const columns = [
      `person_kind ${text} not null default 'unknown'`,
      ...[
        'person_id',
        'person_name',
        'person_created_by',
        'via',
        'method',
        'key_fingerprint',
        'key_name',
        'client',
      ].map((name) => `${name} ${text} not null default ''`),
    ]
    return [
      ...columns.map((column) => `alter table sessions add column ${column}`),
      'create index sessions_by_person on sessions (tenant_id, person_id, started_at, uid)',
      // In the order of lists.
      'drop index sessions_by_device',
      'create index sessions_by_device on sessions (tenant_id, device_uid, started_at, uid)',
      `alter table public_keys add column owner ${text} references users (id) on delete cascade`,
      'create index public_keys_by_owner on public_keys (owner)',
      'alter table namespaces add column require_person integer not null default 0',
    ]
  },
}
