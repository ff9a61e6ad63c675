// Composition of sessions: those that are live or kept, and the operations on them.
import type { Audit } from '../domain/audit/audit.ts'
import type { AllRules } from '../domain/callers/rules.ts'
import { invitationStanding, sessionInvitations } from '../domain/sessions/invitations.ts'
import { keptSessions, type KeptSessions } from '../domain/sessions/kept-sessions.ts'
import { liveSessions, sessionName, type LiveSessions } from '../domain/sessions/live-sessions.ts'
import { sessions, type SessionParts, type SessionWatching } from '../domain/sessions/sessions.ts'
import { visits } from '../domain/sessions/visits.ts'
import { watchTickets, type WatchTickets } from '../domain/sessions/watch-tickets.ts'
import { minute_ms } from '../kit/clock.ts'
import { emptyCast } from '../recording/frames.ts'
import type { EvidenceRooms } from './evidence.ts'
import type { Foundation } from './foundation.ts'

export interface LiveSessionRooms {
  readonly live: LiveSessions
  readonly kept: KeptSessions
}

export function openLiveSessions(
  foundation: Foundation,
  { audit, sessionEvents }: Pick<EvidenceRooms, 'audit' | 'sessionEvents'>,
): LiveSessionRooms {
  const { stores, clock, node, register, bus, clustered, background, log } = foundation
  const onError = (err: unknown): void => log.error({ event: 'session.unwritten', err })
  const parts = { stores, audit, clock, node, onError }
  const live = background.own(liveSessions({ ...parts, events: sessionEvents, register }))
  const isElsewhere = async (uid: string): Promise<boolean> =>
    clustered && (await bus.seek(sessionName(uid))) !== undefined
  return { live, kept: background.own(keptSessions({ ...parts, live, isElsewhere })) }
}

export interface SessionRooms {
  readonly rules: AllRules['sessions']
  readonly watching: SessionWatching
  readonly watchTickets: WatchTickets
}

export function openSessions(
  { stores, bus, clock, vault, limiter, background }: Foundation,
  parts: { readonly audit: Audit } & Pick<
    SessionParts,
    'stopsRecordings' | 'isConnected' | 'view' | 'recordings'
  >,
): SessionRooms {
  const tickets = watchTickets({ stores, vault, clock, invited: invitationStanding({ stores, clock }) })
  const watched = background.own(visits({ audit: parts.audit, clock, later: background.later }))
  const watching = sessions({ ...parts, stores, bus, clock, tickets, emptyCast, visits: watched })
  const often = { max: 30, window_ms: 10 * minute_ms }
  const invitations = sessionInvitations({
    stores,
    audit: parts.audit,
    bus,
    clock,
    tickets,
    made: limiter('session invitations', often),
    wrong: limiter('wrong session invitations', often),
  })
  return { rules: { ...watching, ...invitations }, watching, watchTickets: tickets }
}
