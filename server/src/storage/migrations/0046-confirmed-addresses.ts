// An e-mail address is somebody's once it is confirmed. Until then any number of accounts may claim it, so the
// column of addresses is no longer unique: the index of confirmed addresses is. A sign-in that waits for its second
// factor remembers the name that was typed. And the addresses from which people logged in are kept over a restart.
//
// SQLite cannot drop the constraint of a column, so the table is made anew. That takes foreign keys that are off, or
// dropping the former table would delete all that belongs to users (`rebuilds`).
import type { Opened } from '../dialects/dialect.ts'

export const confirmedAddresses = {
  name: 'confirmed addresses',
  rebuilds: true,
  statements(dialect: Opened['name']): string[] {
    const text = dialect === 'sqlite' ? 'text' : 'text collate "C"'
    const columns = `id, username, email, name, recovery_email, password, confirmed, epoch, email_marketing, max_namespaces,
      preferred_tenant, mfa_secret, mfa_step, created_at, last_login_at, kept_token, registered, former_email,
      former_recovery_email`
    const withoutConstraint =
      dialect === 'sqlite'
        ? [
            `create table users_anew (id text primary key, username text not null unique, email text not null, name text not null,
              recovery_email text, password text not null, confirmed integer not null, epoch integer not null,
              email_marketing integer not null, max_namespaces integer not null, preferred_tenant text, mfa_secret text,
              mfa_step bigint not null, created_at text not null, last_login_at text, kept_token text,
              registered integer not null default 0, former_email text, former_recovery_email text)`,
            `insert into users_anew (${columns}) select ${columns} from users`,
            'drop table users',
            'alter table users_anew rename to users',
            'create index users_by_preferred_tenant on users (preferred_tenant)',
            'create index users_founders on users (id) where registered = 0',
            'create unique index users_by_former_email on users (former_email) where former_email is not null',
          ]
        : ['alter table users drop constraint users_email_key']
    return [
      ...withoutConstraint,
      'create index users_by_email on users (email)',
      // Two requests at one moment may have left an address with two people. It stays with the one who had it first.
      `update users set confirmed = 0 where confirmed = 1 and former_email is null
        and exists (select 1 from users as other where other.former_email = users.email and other.id <> users.id)`,
      'create unique index users_by_confirmed_email on users (coalesce(former_email, email)) where confirmed = 1',
      'create index users_unconfirmed on users (created_at) where confirmed = 0',
      `alter table one_time_tokens add column typed ${text}`,
      `create table known_sources (source ${text} primary key, logged_in_at ${text} not null)`,
      'create index known_sources_by_time on known_sources (logged_in_at)',
    ]
  },
}
