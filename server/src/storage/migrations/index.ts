// Migrations: numbered without gaps, forward only, each in one transaction. A database that is ahead of this
// program by one step is served (the other node of a rolling upgrade made it so); further ahead is refused. A
// migration stands alone: it imports no value and exports nothing but itself, so that no later change of the
// program changes what it does.
import { sql, type Kysely } from 'kysely'
import type { Opened } from '../dialects/dialect.ts'
import type { Tables } from '../tables.ts'
import { beginning } from './0001-beginning.ts'
import { reachingDevices } from './0002-reaching-devices.ts'
import { recordings } from './0003-recordings.ts'
import { nodes } from './0004-nodes.ts'
import { billing } from './0005-billing.ts'
import { unrecorded } from './0006-unrecorded.ts'
import { connectors } from './0007-connectors.ts'
import { agentless } from './0008-agentless.ts'
import { unfinishedRecordings } from './0009-unfinished-recordings.ts'
import { certificateAuthorities } from './0010-certificate-authorities.ts'
import { identity } from './0011-identity.ts'
import { shellHubKeys } from './0012-shellhub-keys.ts'
import { acceptedVariables } from './0013-accepted-variables.ts'
import { agentUpdates } from './0014-agent-updates.ts'
import { joining } from './0015-joining.ts'
import { certificates } from './0016-certificates.ts'
import { identityConflicts } from './0017-identity-conflicts.ts'

export interface Migration {
  readonly name: string
  /** The statements, in order. */
  readonly statements: (dialect: Opened['name']) => string[]
}

export const migrations: readonly Migration[] = [
  beginning,
  reachingDevices,
  recordings,
  nodes,
  billing,
  unrecorded,
  connectors,
  agentless,
  unfinishedRecordings,
  certificateAuthorities,
  identity,
  shellHubKeys,
  acceptedVariables,
  agentUpdates,
  joining,
  certificates,
  identityConflicts,
]

/** Brings the schema up to date; gives the names of what was done. */
export async function migrate(opened: Opened, now: () => string): Promise<string[]> {
  return opened.exclusively(async () => {
    await sql`create table if not exists schema_migrations (number integer primary key, name text not null, applied_at text not null)`.execute(
      opened.db,
    )
    const done = await opened.db.selectFrom('schema_migrations').select('number').execute()
    const present = Math.max(0, ...done.map((row) => row.number))
    if (present > migrations.length + 1)
      throw new Error(
        `the database is at schema ${present}, this program knows ${migrations.length}: it was upgraded by a newer version; start that one`,
      )
    const applied: string[] = []
    for (const [index, migration] of migrations.entries()) {
      if (index + 1 <= present) continue
      await opened.db.transaction().execute(async (trx) => {
        // Two processes on one SQLite file: the second waited at `begin` and finds the work done.
        const there = await trx
          .selectFrom('schema_migrations')
          .select('number')
          .where('number', '=', index + 1)
          .executeTakeFirst()
        if (there) return
        await run(trx, migration.statements(opened.name))
        await trx
          .insertInto('schema_migrations')
          .values({ number: index + 1, name: migration.name, applied_at: now() })
          .execute()
        applied.push(migration.name)
      })
    }
    return applied
  })
}

async function run(trx: Kysely<Tables>, statements: string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(trx)
}
