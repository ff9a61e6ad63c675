// Composition of what says who did what: the audit log, refused sign-ins and logins, the timeline of devices,
// and what happened in sessions.
import { refusals, type Refusals } from '../domain/access/refusals.ts'
import { audit as audits, type Audit } from '../domain/audit/audit.ts'
import { auditLog, type AuditLog } from '../domain/audit/audit-log.ts'
import { auditSigner } from '../domain/audit/head-key.ts'
import { auditRefusals, type AuditRefusals } from '../domain/audit/refusals.ts'
import { timeline, type Timeline } from '../domain/devices/timeline.ts'
import { sessionEvents, type SessionEvents } from '../domain/sessions/session-events.ts'
import { iso } from '../kit/clock.ts'
import type { Foundation } from './foundation.ts'

export interface EvidenceRooms {
  readonly audit: Audit
  readonly auditLog: AuditLog
  /** Refusals on their way into the audit log. */
  readonly auditedRefusals: AuditRefusals
  /** Refused logins, by the references that people were shown. */
  readonly refusals: Refusals
  readonly timeline: Timeline
  /** What happens in sessions. */
  readonly sessionEvents: SessionEvents
}

export async function openEvidence(foundation: Foundation): Promise<EvidenceRooms> {
  const { stores, vault, clock, log, background } = foundation
  const audit = audits({ stores, clock })
  const signer = await auditSigner(stores.hostKeys, vault, () => iso(clock.now()))
  return {
    audit,
    auditLog: auditLog({ stores, audit, signer, clock }),
    auditedRefusals: background.own(
      auditRefusals({
        stores,
        audit,
        clock,
        onError: (err) => log.error({ event: 'audit.unwritten', err }),
      }),
    ),
    refusals: background.own(
      refusals({
        stores,
        clock,
        onError: (err) => log.error({ event: 'refusals.unwritten', err }),
        onDropped: (count) => log.warn({ event: 'refusals.dropped', refusals: count }),
      }),
    ),
    sessionEvents: background.own(
      sessionEvents({
        stores,
        audit,
        clock,
        onError: (err) => log.error({ event: 'session.events.unwritten', err }),
        onDropped: (events) => log.warn({ event: 'session.events.dropped', events }),
      }),
    ),
    timeline: background.own(
      timeline({
        stores,
        clock,
        onError: (err) => log.error({ event: 'timeline.unwritten', err }),
        onDropped: (events) => log.warn({ event: 'timeline.dropped', events }),
      }),
    ),
  }
}
