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
import { reconnectGrace } from './0018-reconnect-grace.ts'
import { pingIntervals } from './0020-ping-intervals.ts'
import { deviceTraffic } from './0021-device-traffic.ts'
import { dataBudgets } from './0022-data-budgets.ts'
import { audit } from './0023-audit.ts'
import { people } from './0024-people.ts'
import { search } from './0025-search.ts'
import { reasons } from './0026-reasons.ts'
import { maskedSecrets } from './0027-masked-secrets.ts'
import { sessionEvents } from './0028-session-events.ts'
import { auditStreams } from './0029-audit-streams.ts'
import { heldSessions } from './0030-held-sessions.ts'
import { auditPages } from './0031-audit-pages.ts'
import { searchPeople } from './0032-search-people.ts'
import { sharedSessions } from './0033-shared-sessions.ts'
import { budgetEmails } from './0034-budget-emails.ts'
import { sessionInvitations } from './0035-session-invitations.ts'
import { signIns } from './0037-sign-ins.ts'
import { memberInvitations } from './0038-member-invitations.ts'
import { sessionFilters } from './0039-session-filters.ts'
import { deviceNotes } from './0040-device-notes.ts'
import { keptTerminals } from './0041-kept-terminals.ts'
import { agentBuilds } from './0042-agent-builds.ts'
import { trafficByDay } from './0043-traffic-by-day.ts'
import { billingOnce } from './0044-billing-once.ts'
import { containerNames } from './0045-container-names.ts'
import { confirmedAddresses } from './0046-confirmed-addresses.ts'
import { provedTokens } from './0047-proved-tokens.ts'
import { recordingQuota } from './0048-recording-quota.ts'
import { services } from './0049-services.ts'

export interface Migration {
  readonly name: string
  /** The statements, in order. */
  readonly statements: (dialect: Opened['name']) => string[]
  /** Drops a table that others refer to and makes it anew, on SQLite, which must then not follow the references. */
  readonly rebuilds?: boolean
}

/** A database remembers how many of these it has: a new one goes to the end. */
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
  reconnectGrace,
  pingIntervals,
  deviceTraffic,
  dataBudgets,
  audit,
  people,
  search,
  reasons,
  maskedSecrets,
  sessionEvents,
  auditStreams,
  heldSessions,
  auditPages,
  searchPeople,
  sharedSessions,
  budgetEmails,
  sessionInvitations,
  signIns,
  memberInvitations,
  sessionFilters,
  deviceNotes,
  keptTerminals,
  agentBuilds,
  trafficByDay,
  billingOnce,
  containerNames,
  confirmedAddresses,
  provedTokens,
  recordingQuota,
  services,
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
      const detached = migration.rebuilds === true && opened.name === 'sqlite'
      // SQLite takes this setting outside of transactions only.
      if (detached) await sql`pragma foreign_keys = off`.execute(opened.db)
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
      if (detached) await sql`pragma foreign_keys = on`.execute(opened.db)
    }
    return applied
  })
}

async function run(trx: Kysely<Tables>, statements: string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(trx)
}
