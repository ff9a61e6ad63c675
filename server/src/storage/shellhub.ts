// Reads the PostgreSQL of a ShellHub, in its later versions, in one read-only transaction, so that everything
// is of one moment while ShellHub goes on working. Rows come by a cursor; tables and columns that a version
// lacks read as empty.
import { Failure } from '@hawser/contract/failures'
import pg from 'pg'

export type ForeignRow = Readonly<Record<string, unknown>>

export interface ShellHubTables extends AsyncDisposable {
  users(): AsyncIterable<ForeignRow>
  namespaces(): AsyncIterable<ForeignRow>
  devices(): AsyncIterable<ForeignRow>
  publicKeys(): AsyncIterable<ForeignRow>
  firewallRules(): AsyncIterable<ForeignRow>
  apiKeys(): AsyncIterable<ForeignRow>
  filled(): Promise<string[]>
}

const rows_at_a_time = 500
const connect_ms = 10_000
const needed = ['users', 'namespaces', 'memberships', 'devices']

/** bigint columns hold numbers far below 2^53. */
const parsers: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (oid === 20 ? Number : pg.types.getTypeParser(oid, format)) as (text: string) => unknown,
}

export async function openShellHub(url: string): Promise<ShellHubTables> {
  const client = new pg.Client({
    connectionString: url,
    types: parsers,
    connectionTimeoutMillis: connect_ms,
    application_name: 'hawser',
  })
  client.on('error', () => undefined)
  const ask = async (sql: string): Promise<ForeignRow[]> => {
    try {
      return (await client.query<ForeignRow>(sql)).rows
    } catch (cause) {
      throw away(cause)
    }
  }
  try {
    await client.connect().catch((cause: unknown) => {
      throw away(cause)
    })
    await ask('begin transaction isolation level repeatable read read only')
    const found = await ask(`select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE' order by table_name`)
    const tables = found.map((row) => String(row['name']))
    const missing = needed.filter((name) => !tables.includes(name))
    if (missing.length > 0)
      throw new Failure('invalid', {
        message: `This is not the database of a ShellHub: it has no table ${missing.join(', ')}.`,
      })
    return reading(client, ask, tables)
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

function away(cause: unknown): Failure {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Failure('unavailable', { message: `The database of ShellHub cannot be read: ${why}`, cause })
}

function reading(
  client: pg.Client,
  ask: (sql: string) => Promise<ForeignRow[]>,
  tables: readonly string[],
): ShellHubTables {
  let cursors = 0
  async function* rows(table: string, sql: string): AsyncGenerator<ForeignRow> {
    if (!tables.includes(table)) return
    const cursor = `hawser_${++cursors}`
    await ask(`declare ${cursor} no scroll cursor for ${sql}`)
    let read: ForeignRow[]
    do {
      read = await ask(`fetch ${rows_at_a_time} from ${cursor}`)
      yield* read
    } while (read.length === rows_at_a_time)
    await ask(`close ${cursor}`)
  }

  const tagNames = (table: string, match: string): string =>
    tables.includes(table) && tables.includes('tags')
      ? `(select json_agg(t.name order by x.created_at, t.name) from ${table} x join tags t on t.id = x.tag_id where ${match})`
      : 'null::json'
  const settings = tables.includes('namespace_settings')
    ? `, s.record_sessions as its_record_sessions, s.connection_announcement as its_announcement
       from namespaces n left join namespace_settings s on s.namespace_id = n.id`
    : 'from namespaces n'

  return {
    users: () => rows('users', 'select * from users order by created_at, id'),
    namespaces: () =>
      rows(
        'namespaces',
        `select n.*, (select json_agg(json_build_object('id', m.user_id, 'role', m.role, 'added_at', m.created_at) order by m.created_at, m.user_id)
          from memberships m where m.namespace_id = n.id) as members ${settings} order by n.created_at, n.id`,
      ),
    devices: () =>
      rows(
        'devices',
        `select d.*, ${tagNames('device_tags', 'x.device_id = d.id')} as tag_names from devices d order by d.created_at, d.id`,
      ),
    publicKeys: () =>
      rows(
        'public_keys',
        `select k.*, ${tagNames('public_key_tags', 'x.public_key_fingerprint = k.fingerprint and x.public_key_namespace_id = k.namespace_id')}
          as tag_names from public_keys k order by k.created_at, k.fingerprint, k.namespace_id`,
      ),
    firewallRules: () => rows('firewall_rules', 'select * from firewall_rules'),
    apiKeys: () => rows('api_keys', 'select * from api_keys order by created_at, key_digest, namespace_id'),

    async filled() {
      const filled: string[] = []
      for (const name of tables) {
        const [answer] = await ask(`select exists (select from ${pg.escapeIdentifier(name)}) as filled`)
        if (answer?.['filled'] === true) filled.push(name)
      }
      return filled
    },

    [Symbol.asyncDispose]: () => client.end(),
  }
}
