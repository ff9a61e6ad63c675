// The schema comes about once, whoever starts and however many start together, and a program does not touch a
// database that a much newer one has made. On both databases; "together" means processes of their own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { describe, expect, test, vi } from 'vitest'
import { openPostgres } from '../../server/src/storage/dialects/postgres.ts'
import { openSqlite } from '../../server/src/storage/dialects/sqlite.ts'
import { migrations } from '../../server/src/storage/migrations/index.ts'
import {
  databases,
  device,
  namespace,
  openAt,
  page,
  refusal,
  user,
  type Place,
  type Storage,
} from './databases.ts'

// Real databases and processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

/** Opens the database when told to, writes a user, and prints what it migrated. */
const program = `
  const { openAt, user } = await import(${JSON.stringify(import.meta.resolve('./databases.ts'))})
  const [url, folder, id] = process.argv.slice(1)
  process.stdout.write('ready\\n')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  process.stdin.pause()
  const { opened, stores } = await openAt({ url, folder })
  await stores.users.insert(user({ id }))
  await opened[Symbol.asyncDispose]()
  process.stdout.write(JSON.stringify(opened.migrated))`

async function migrateTogether(place: Place, processes: number): Promise<string[][]> {
  const children = Array.from({ length: processes }, (_, index) => {
    const child = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      program,
      place.url,
      place.folder,
      `user-${index}`,
    ])
    return {
      child,
      stdout: text(child.stdout.setEncoding('utf8').on('error', () => {})),
      stderr: text(child.stderr),
      ready: once(child.stdout, 'data'),
    }
  })
  await Promise.all(children.map(({ ready, child }) => Promise.race([ready, once(child, 'exit')])))
  for (const { child } of children) child.stdin.end('go\n')
  return Promise.all(
    children.map(async ({ stdout, stderr }) => {
      const printed = (await stdout).split('\n').at(-1)
      if (!printed) throw new Error(await stderr)
      return JSON.parse(printed) as string[]
    }),
  )
}

test('a migration imports no value and exports only itself: it does tomorrow what it does today', () => {
  const folder = path.join(import.meta.dirname, '../../server/src/storage/migrations')
  const files = globSync('[0-9]*.ts', { cwd: folder }).toSorted()
  expect(files).toHaveLength(migrations.length)
  for (const file of files) {
    const text = readFileSync(path.join(folder, file), 'utf8')
    const imports = text.match(/^import .*$/gm) ?? []
    expect(
      imports.filter((line) => !line.startsWith('import type ')),
      file,
    ).toEqual([])
    expect(text.match(/^export /gm), file).toHaveLength(1)
  }
})

test('a migration keeps its number, by which databases know what they have: a new one goes to the end', () => {
  const inOrder = `
  beginning, reaching devices, recordings, nodes, billing, unrecorded, connectors, agentless,
  unfinished recordings, certificate authorities, identity, ShellHub keys, accepted variables, agent
  updates, joining, certificates, identity conflicts, reconnect grace, ping intervals, device traffic,
  data budgets, audit, people, search, reasons, masked secrets, session events, audit streams, held
  sessions, audit-pages, search-people, shared sessions, budget-emails, session invitations, sign-ins,
  member invitations, session-filters, device notes, kept terminals, agent builds, traffic by
  day, billing once, container names, confirmed addresses, proved tokens, recording quota, services`
  expect(migrations.map(({ name }) => name)).toEqual(inOrder.trim().replaceAll(/\s+/g, ' ').split(', '))
})

/** The database with all migrations before this one. */
async function openBefore(place: Place, migration: string) {
  const opened = place.url
    ? openPostgres(place.url, () => undefined)
    : await openSqlite(path.join(place.folder, 'hawser.db'))
  const run = (statement: string) => sql.raw(statement).execute(opened.db)
  await run('create table schema_migrations (number integer primary key, name text, applied_at text)')
  const step = migrations.findIndex(({ name }) => name === migration)
  for (const [index, { name, statements }] of migrations.slice(0, step).entries()) {
    for (const statement of statements(opened.name)) await run(statement)
    await run(`insert into schema_migrations values (${index + 1}, '${name}', 'then')`)
  }
  return opened
}

/** Everything that makes up the schema, so that two can be compared. */
async function schemaOf({ opened }: Storage): Promise<unknown> {
  const query =
    opened.name === 'sqlite'
      ? sql`select type, name, sql from sqlite_schema where name not like 'sqlite_stat%' order by name`
      : sql`select table_name, column_name, data_type, collation_name from information_schema.columns where table_schema = 'public'
          union all select tablename, indexname, indexdef, null from pg_indexes where schemaname = 'public'
          union all select event_object_table, trigger_name, event_manipulation, action_condition from information_schema.triggers
          order by 1, 2, 3`
  return (await query.execute(opened.db)).rows
}

describe.each(databases)('$name', (database) => {
  test('the second opening finds everything done and loses nothing', async () => {
    using place = await database.fresh()
    const everything = migrations.map((migration) => migration.name)
    let schema: unknown
    let tenant_id: string
    {
      await using first = await openAt(place)
      expect(first.opened.migrated).toEqual(everything)
      schema = await schemaOf(first)
      tenant_id = (await namespace(first)).tenant_id
    }
    await using second = await openAt(place)
    expect(second.opened.migrated).toEqual([])
    expect(await schemaOf(second)).toEqual(schema)
    expect(await second.stores.namespaces.find(tenant_id)).toBeDefined()
    const done = await second.opened.db
      .selectFrom('schema_migrations')
      .select(['number', 'name'])
      .orderBy('number')
      .execute()
    expect(done).toEqual(everything.map((name, index) => ({ number: index + 1, name })))
  })

  test('of several processes that start on an empty database each step of the schema is made by one, and all work', async () => {
    using place = await database.fresh()
    const migrated = await migrateTogether(place, 4)
    expect(migrated.flat().toSorted()).toEqual(migrations.map((migration) => migration.name).toSorted())
    await using storage = await openAt(place)
    expect((await storage.stores.users.list()).map((row) => row.id)).toEqual([
      'user-0',
      'user-1',
      'user-2',
      'user-3',
    ])
  })

  test('a column that a newer node adds does not disturb those who are at work', async () => {
    using place = await database.fresh()
    await using here = await openAt(place)
    await using there = await openAt(place)
    const { tenant_id } = await namespace(here)
    const ask = async () => {
      // Several at once, so that every connection has been asked before.
      const points = Array.from({ length: 12 }, () => here.stores.namespaces.find(tenant_id))
      const lists = Array.from({ length: 6 }, () => here.stores.namespaces.list({ tenant_id }, [], page()))
      const inside = Array.from({ length: 12 }, () =>
        here.stores.transaction((trx) => trx.namespaces.find(tenant_id)),
      )
      for (const found of await Promise.all([...points, ...inside])) expect(found?.tenant_id).toBe(tenant_id)
      for (const found of await Promise.all(lists)) expect(found.total).toBe(1)
    }
    await ask()
    await sql`alter table namespaces add column motto text`.execute(there.opened.db)
    await ask()
    await ask()
  })

  test('users keep their members, tokens and namespaces when the table of users is made anew', async () => {
    using place = await database.fresh()
    {
      await using before = await openBefore(place, 'confirmed addresses')
      const run = (statement: string) => sql.raw(statement).execute(before.db)
      for (const [id, email, former] of [
        ['olga', 'olga@example.com', 'null'],
        ['adam', 'adam@new.example', `'adam@example.com'`],
        // Two requests at one moment could leave this behind.
        ['eve', 'adam@example.com', 'null'],
      ])
        await run(`insert into users (id, username, email, former_email, name, password, confirmed, epoch, email_marketing,
          max_namespaces, mfa_step, created_at, registered) values ('${id}', '${id}', '${email}', ${former}, '${id}', 'hash', 1,
          7, 0, -1, 0, 'then', 1)`)
      await run(`insert into namespaces (tenant_id, name, owner, session_record, connection_announcement, max_devices, created_at)
        values ('here', 'here', 'olga', 1, '', -1, 'then')`)
      await run(
        `insert into members (tenant_id, user_id, role, epoch, created_at) values ('here', 'olga', 'owner', '1', 'then')`,
      )
      await run(
        `insert into one_time_tokens (kind, hash, user_id, tries, expires_at) values ('recovery', 'x', 'adam', 0, 'z')`,
      )
    }
    await using storage = await openAt(place)
    expect(storage.opened.migrated[0]).toBe('confirmed addresses')
    const { stores, opened } = storage
    expect(await stores.users.find('olga')).toMatchObject({
      email: 'olga@example.com',
      epoch: 7,
      registered: 1,
    })
    expect((await stores.namespaces.members('here')).map(({ id }) => id)).toEqual(['olga'])
    expect(await stores.tokens.find('recovery', 'x', 'a')).toMatchObject({ user_id: 'adam', typed: null })
    expect((await stores.users.findByConfirmedEmail('adam@example.com'))?.id).toBe('adam')
    // References are followed again.
    await stores.users.remove('adam')
    expect(await stores.tokens.find('recovery', 'x', 'a')).toBeUndefined()
    await expect(stores.users.remove('olga')).rejects.toThrow()
    await expect(
      opened.db.insertInto('mfa_recovery_codes').values({ user_id: 'x', hash: 'y' }).execute(),
    ).rejects.toThrow()
  })

  test('the flag public_url of devices is a service afterwards', async () => {
    using place = await database.fresh()
    const address = 'a'.repeat(32)
    {
      await using before = await openBefore(place, 'services')
      const run = (statement: string) => sql.raw(statement).execute(before.db)
      await run(`insert into users (id, username, email, name, password, confirmed, epoch, email_marketing, max_namespaces,
        mfa_step, created_at, registered) values ('olga', 'olga', 'olga@example.com', 'olga', 'hash', 1, 7, 0, -1, 0, 'then', 1)`)
      await run(`insert into namespaces (tenant_id, name, owner, session_record, connection_announcement, max_devices, created_at)
        values ('here', 'here', 'olga', 1, '', -1, 'then')`)
      const all = [
        device({ uid: 'on', public_url: 1, public_url_address: address }),
        device({ uid: 'off', public_url: 0, public_url_address: 'b'.repeat(32) }),
        device({ uid: 'never' }),
      ]
      for (const one of all)
        await before.db
          .insertInto('devices')
          .values({ tenant_id: 'here', ...one })
          .execute()
    }
    await using storage = await openAt(place)
    const { services } = storage.stores.of('here')
    const { items } = await services.list(page(), {})
    expect(items).toMatchObject([
      { device_uid: 'on', address, host: '127.0.0.1', port: 80, audience: 'public', public_url: 1 },
    ])
    expect(items[0]!.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    expect(await services.publicUrlOf('on')).toEqual(items[0])
  })

  test('a schema that is one step ahead is served: the other node of an upgrade made it so', async () => {
    using place = await database.fresh()
    {
      await using storage = await openAt(place)
      await ahead(storage, 1)
    }
    await using again = await openAt(place)
    expect(again.opened.migrated).toEqual([])
    await again.stores.users.insert(user())
  })

  test('a schema that is two steps ahead is refused with a sentence, and left alone', async () => {
    using place = await database.fresh()
    {
      await using storage = await openAt(place)
      await ahead(storage, 1)
      await ahead(storage, 2)
    }
    const error = await refusal(openAt(place))
    expect((error as Error).message).toBe(
      `the database is at schema ${migrations.length + 2}, this program knows ${migrations.length}: it was upgraded by a newer version; start that one`,
    )
  })
})

async function ahead({ opened }: Storage, steps: number): Promise<void> {
  await opened.db
    .insertInto('schema_migrations')
    .values({
      number: migrations.length + steps,
      name: 'from the future',
      applied_at: '2030-01-01T00:00:00.000Z',
    })
    .execute()
}
