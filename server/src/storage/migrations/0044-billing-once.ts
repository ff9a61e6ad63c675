// Subscriptions that are made once and ended all together. An attempt stores the parameters of its first call,
// because the payment provider takes a key again only with the same ones, and when that call was. A report
// names the customer, so that all subscriptions of a deleted namespace can be ended, also those that only the
// provider knows.
import type { Opened } from '../dialects/dialect.ts'

export const billingOnce = {
  name: 'billing once',
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const field = (row: string, name: string) =>
      dialect === 'sqlite' ? `${row}billing ->> '${name}'` : `cast(${row}billing as json) ->> '${name}'`
    const customer = field('old.', 'customer_id')
    const name = 'usage_of_deleted_namespace'
    const body = `insert into usage_reports (subscription_id, tenant_id, customer_id, wanted, version, tries, due_at)
      values (coalesce(${field('old.', 'subscription_id')}, ${customer}), old.tenant_id, ${customer}, 'cancel', 1, 0, '')
      on conflict (subscription_id) do update set version = usage_reports.version + 1, wanted = 'cancel',
        customer_id = excluded.customer_id, due_at = '';`
    const when = `${customer} is not null`
    return [
      `alter table billing_attempts add column params ${text} not null default ''`,
      `alter table billing_attempts add column began_at ${text} not null default ''`,
      `alter table usage_reports add column customer_id ${text} not null default ''`,
      ...(dialect === 'sqlite'
        ? [
            `drop trigger ${name}`,
            `create trigger ${name} after delete on namespaces when ${when} begin ${body} end`,
          ]
        : [
            `drop trigger ${name} on namespaces`,
            `create or replace function ${name}() returns trigger language plpgsql as $$ begin ${body} return null; end $$`,
            `create trigger ${name} after delete on namespaces for each row when (${when}) execute function ${name}()`,
          ]),
    ]
  },
}
