// Billing: how many devices a namespace has without a subscription, who it is at the payment provider, places
// that deleted devices keep for a while, and what the provider is still to be told. That last list is written
// by triggers, so that no way in which a device becomes accepted, stops being it or goes with its namespace
// can forget to report it. It has one row for each subscription and says only that there is news; what is
// told is what is true when it is told.
import type { Opened } from '../dialects/dialect.ts'

export const billing = {
  name: 'billing',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const field = (row: string, name: string) =>
      dialect === 'sqlite' ? `${row}billing ->> '${name}'` : `cast(${row}billing as json) ->> '${name}'`
    const yes = dialect === 'sqlite' ? '1' : `'true'`
    const news = (
      wanted: string,
      from: string,
    ) => `insert into usage_reports (subscription_id, tenant_id, wanted, version, tries, due_at) ${from}
      on conflict (subscription_id) do update set version = usage_reports.version + 1, wanted = ${wanted};`
    const changed = (row: 'old' | 'new') =>
      news(
        'usage_reports.wanted',
        `select ${field('', 'subscription_id')}, tenant_id, 'quantity', 1, 0, '' from namespaces
          where tenant_id = ${row}.tenant_id and ${field('', 'subscription_id')} is not null and ${field('', 'active')} = ${yes}`,
      )
    const gone = news(
      `'cancel'`,
      `values (${field('old.', 'subscription_id')}, old.tenant_id, 'cancel', 1, 0, '')`,
    )
    const triggers: [name: string, event: string, when: string, body: string][] = [
      ['usage_of_new_device', 'insert on devices', `new.status = 'accepted'`, changed('new')],
      [
        'usage_of_changed_device',
        'update of status on devices',
        `old.status <> new.status and 'accepted' in (old.status, new.status)`,
        changed('new'),
      ],
      ['usage_of_deleted_device', 'delete on devices', `old.status = 'accepted'`, changed('old')],
      [
        'usage_of_deleted_namespace',
        'delete on namespaces',
        `${field('old.', 'subscription_id')} is not null`,
        gone,
      ],
    ]
    return [
      'alter table namespaces add column free_devices integer',
      `create unique index namespaces_by_customer on namespaces ((${field('', 'customer_id')}))`,
      `create table removed_devices (tenant_id ${text} not null references namespaces (tenant_id) on delete cascade, uid ${text} not null,
        removed_at ${text} not null, primary key (tenant_id, uid))`,
      'create index removed_devices_by_time on removed_devices (removed_at)',
      `create table usage_reports (subscription_id ${text} primary key, tenant_id ${text} not null, wanted ${text} not null,
        version integer not null, tries integer not null, due_at ${text} not null)`,
      'create index usage_reports_by_time on usage_reports (due_at)',
      `create table billing_events (id ${text} primary key, received_at ${text} not null)`,
      'create index billing_events_by_time on billing_events (received_at)',
      `create table billing_attempts (tenant_id ${text} not null references namespaces (tenant_id) on delete cascade, what ${text} not null,
        key ${text} not null, primary key (tenant_id, what))`,
      ...triggers.flatMap(([name, event, when, body]) =>
        dialect === 'sqlite'
          ? [`create trigger ${name} after ${event} when ${when} begin ${body} end`]
          : [
              `create function ${name}() returns trigger language plpgsql as $$ begin ${body} return null; end $$`,
              `create trigger ${name} after ${event} for each row when (${when}) execute function ${name}()`,
            ],
      ),
    ]
  },
}
