// Composition of sessions: those that are live or detached, what a change ends in them, and the operations on them.
import { sessionLimits } from '@hawser/contract/limits'
import type { Audit } from '../domain/audit/audit.ts'
import type { Budgets } from '../domain/devices/budgets.ts'
import { invitationStanding, sessionInvitations } from '../domain/sessions/invitations.ts'
import { detachedSessions } from '../domain/sessions/detached-sessions.ts'
import { closeLost, liveSessions, sessionName } from '../domain/sessions/live-sessions.ts'
import { recordingRules } from '../domain/sessions/recordings.ts'
import { rechecks, revocation, type Revocation } from '../domain/sessions/revocation.ts'
import { searchRules } from '../domain/sessions/search.ts'
import { sessions, type SessionParts } from '../domain/sessions/sessions.ts'
import { terminals } from '../domain/sessions/terminals.ts'
import { visits } from '../domain/sessions/visits.ts'
import { watchTickets } from '../domain/sessions/watch-tickets.ts'
import { iso } from '../kit/clock.ts'
import { writeReport } from '../kit/write-behind.ts'
import { emptyCast } from '../recording/frames.ts'
import { parseQuery } from '../search/query.ts'
import { deviceName } from '../tunnel/registry.ts'
import { keyReader } from './access.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'
import type { RecordingRooms } from './recordings.ts'

export async function openLiveSessions(
  foundation: Foundation,
  { audit, sessionEvents }: Pick<EvidenceRooms, 'audit' | 'sessionEvents'>,
) {
  const { database, stores, clock, node, register, bus, background, log } = foundation
  // Live sessions of a SQLite file were this process's; on PostgreSQL they may be another node's.
  if (database.name === 'sqlite') {
    const now = iso(clock.now())
    await closeLost({ stores, audit }, { last_seen: now, now })
  }
  const parts = { stores, audit, clock, node, ...writeReport(log, 'session') }
  const live = background.own(liveSessions({ ...parts, events: sessionEvents, register }))
  const isElsewhere = async (uid: string): Promise<boolean> =>
    (await bus.seek(sessionName(uid))) !== undefined
  return { live, detached: background.own(detachedSessions({ ...parts, live, isElsewhere })) }
}

export type LiveSessionRooms = Awaited<ReturnType<typeof openLiveSessions>>

export function openRevocation(
  { database, bus, stores, clock, clustered, background }: Foundation,
  { sweepRecordings }: RecordingRooms,
  { stopsRecordings }: Budgets,
): Revocation {
  return background.own(
    revocation({
      bus,
      stores,
      later: background.later,
      sweepRecordings,
      clock,
      stopsRecordings,
      recheck: database.name === 'postgres' ? rechecks(bus, clustered) : undefined,
    }),
  )
}

export function openSessions(
  { stores, bus, clock, vault, limiter, background, register, isHeld }: Foundation,
  audit: Audit,
  { recordings, search }: RecordingRooms,
  parts: Pick<SessionParts, 'stopsRecordings' | 'view'>,
) {
  const given = { stores, audit, bus, clock }
  const tickets = watchTickets({ stores, vault, clock, invited: invitationStanding({ stores, clock }) })
  const watching = sessions({
    ...parts,
    ...given,
    recordings,
    isConnected: (uid) => isHeld(deviceName(uid)),
    tickets,
    emptyCast,
    visits: background.own(visits({ audit, clock, later: background.later })),
  })
  const invitations = sessionInvitations({
    ...given,
    tickets,
    made: limiter('session invitations', sessionLimits.invitations),
    wrong: limiter('wrong session invitations', sessionLimits.wrongInvitations),
  })
  const terminalRules = terminals({ stores, clock, bus, register, keys: keyReader })
  return {
    rules: {
      sessions: { ...watching, ...invitations },
      terminals: terminalRules,
      recordings: {
        ...recordingRules({ stores, audit, recordings }),
        ...searchRules({ stores, audit, search, parse: parseQuery }),
      },
    },
    watching,
    watchTickets: tickets,
    tickets: terminalRules.tickets,
  }
}

export type SessionRooms = ReturnType<typeof openSessions>
