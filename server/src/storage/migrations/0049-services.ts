// Services of devices, what their sessions carried, and whether their requests are logged. The flag
// `public_url` of a device did nothing until here; where it is set, its service is made.
import type { Opened } from '../dialects/dialect.ts'

export const services = {
  name: 'services',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const id =
      dialect === 'sqlite'
        ? `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) ||
            '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`
        : 'cast(gen_random_uuid() as text)'
    return [
      `create table services (id ${text} primary key,
        tenant_id ${text} not null references namespaces (tenant_id) on delete cascade,
        device_uid ${text} not null references devices (uid) on delete cascade,
        address ${text} not null unique, name ${text} not null, host ${text} not null, port integer not null,
        scheme ${text} not null, certificate ${text} not null, tls_name ${text} not null, pinned ${text} not null,
        audience ${text} not null, role ${text} not null, people ${text} not null, link_hash ${text} not null,
        host_header ${text} not null, identify integer not null, username ${text} not null, expires_at ${text},
        public_url integer not null, created_at ${text} not null, created_by ${text} not null)`,
      'create index services_by_device on services (device_uid, tenant_id)',
      'create index services_by_age on services (created_at, id)',
      'create index services_by_name on services (tenant_id, name)',
      `alter table sessions add column web ${text} not null default ''`,
      'alter table namespaces add column log_web_requests integer not null default 0',
      `insert into services select ${id}, tenant_id, uid, public_url_address, 'public_url', '127.0.0.1', 80,
        'http', 'none', '', '', 'public', 'observer', '[]', '', 'own', 0, '', null, 1, created_at, ''
        from devices where public_url = 1 and public_url_address <> ''`,
    ]
  },
}
