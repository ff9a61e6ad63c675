// Agents are brought up to date: which build each device runs and whether it can replace it, what it was
// asked to install, how far automatic updates of a namespace are, the releases that were offered, and the
// keys that sign them.
import type { Opened } from '../dialects/dialect.ts'

export const agentUpdates = {
  name: 'agent updates',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    return [
      `alter table namespaces add column agent_updates ${text} not null default 'manual'`,
      `create index namespaces_automatic on namespaces (tenant_id) where agent_updates = 'automatic'`,
      `alter table devices add column agent_build ${text} not null default ''`,
      `alter table devices add column agent_ability ${text} not null default ''`,
      `alter table devices add column update_build ${text} not null default ''`,
      `alter table devices add column update_wanted_at ${text}`,
      `alter table devices add column update_asked_at ${text}`,
      `alter table devices add column update_phase ${text} not null default ''`,
      `alter table devices add column update_failed ${text} not null default ''`,
      `alter table devices add column update_reason ${text} not null default ''`,
      `create index devices_by_agent on devices (tenant_id, agent_build, info_arch, uid) where agent_ability = 'self'`,
      `create index devices_to_update on devices (update_asked_at, update_wanted_at, uid) where update_build <> ''`,
      `create index devices_by_update on devices (update_build) where update_build <> ''`,
      `create index devices_not_updated on devices (tenant_id, update_failed) where update_failed <> ''`,
      `create table update_waves (tenant_id ${text} primary key references namespaces (tenant_id) on delete cascade,
        build ${text} not null, wave integer not null, opened_at ${text} not null, stopped ${text} not null)`,
      `create table agent_releases (build ${text} primary key, version ${text} not null, released_at ${text} not null unique)`,
      // A key has one successor and there is one first key, however many nodes make one at the same time.
      `create table update_keys (public_key ${text} primary key, previous ${text} not null unique,
        private_key ${text} not null, endorsement ${text} not null, created_at ${text} not null)`,
    ]
  },
}
