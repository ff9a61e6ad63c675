// The contents of a whole database: to see whether a call has changed anything, and to put everything back
// after one that has, which is far quicker than a fresh server for each. It works through the server's own
// connection, so it waits for its transactions, and on either database. What triggers derive (device_tags,
// device_search) comes back by the triggers; the tallies are written last, because what was counted down to
// zero is a row too.
import { sql } from 'kysely'
import type { Rooms } from '../../server/src/compose/rooms.ts'
import type { Tables as Schema } from '../../server/src/storage/tables.ts'

/** In an order in which rows can be inserted. Signing keys and the list of migrations never change. */
const kept = [
  'users',
  'sign_ins',
  'mfa_recovery_codes',
  'mfa_drafts',
  'identity_changes',
  'one_time_tokens',
  'attempts',
  'namespaces',
  'members',
  'member_invitations',
  'devices',
  'device_notes',
  'services',
  'public_keys',
  'enrolment_keys',
  'enrolment_tokens',
  'accept_rules',
  'data_budgets',
  'login_keys',
  'shellhub_keys',
  'firewall_rules',
  'api_keys',
  'sessions',
  'session_invitations',
  'announcements',
  'connectors',
  'pairings',
  'update_waves',
  'audit_entries',
  'audit_heads',
  'audit_streams',
  'audit_dead_letters',
  'login_refusals',
  'tallies',
] as const satisfies readonly (keyof Schema)[]

type Row = Record<string, unknown>
export type Contents = Record<(typeof kept)[number], readonly Row[]>

export interface Tables {
  /** The same object as long as SQLite counts no further change. */
  read(): Promise<Contents>
  /** Makes the database hold exactly this. */
  write(contents: Contents): Promise<void>
}

export function tablesOf({ database, background }: Rooms): Tables {
  const { db } = database
  let last: { readonly changes: number; readonly contents: Contents } | undefined

  /** How many rows the server has ever changed; undefined: PostgreSQL does not say. */
  async function changed(): Promise<number | undefined> {
    if (database.name !== 'sqlite') return undefined
    const { rows } = await sql<{ changes: number }>`select total_changes() as changes`.execute(db)
    return rows[0]?.changes
  }

  return {
    async read() {
      // Letters and their tokens are written after the answer.
      await background.settled()
      const changes = await changed()
      if (changes !== undefined && last?.changes === changes) return last.contents
      const tables: [string, Row[]][] = []
      for (const table of kept) tables.push([table, await db.selectFrom(table).selectAll().execute()])
      const contents = Object.fromEntries(tables) as unknown as Contents
      if (changes !== undefined && changes === (await changed())) last = { changes, contents }
      return contents
    },
    write: (contents) =>
      db.transaction().execute(async (trx) => {
        for (const table of kept.toReversed()) await trx.deleteFrom(table).execute()
        for (const table of kept) {
          if (table === 'tallies') await trx.deleteFrom(table).execute()
          if (contents[table].length > 0) await trx.insertInto(table).values(contents[table]).execute()
        }
      }),
  }
}

/**
 * As one text, the same for the same rows in whatever order; without what goes on by itself: attempts and
 * presence.
 */
export function fingerprint(contents: Contents): string {
  const { attempts: _, devices, tallies, ...others } = contents
  const lasting: Record<string, readonly Row[]> = {
    ...others,
    devices: devices.map((row) => ({ ...row, last_seen: undefined, online: undefined })),
    tallies: tallies.filter((row) => !String(row.subject).startsWith('online.')),
  }
  return Object.entries(lasting)
    .flatMap(([table, rows]) => rows.map((row) => `${table} ${JSON.stringify(row)}`).toSorted())
    .join('\n')
}
