// Composition of what says who did what: the audit log, refused sign-ins and logins, the timeline of devices,
// and what happened in sessions.
import { refusals } from '../domain/access/refusals.ts'
import { audit as audits } from '../domain/audit/audit.ts'
import { auditLog } from '../domain/audit/audit-log.ts'
import { auditSigner } from '../domain/audit/head-key.ts'
import { auditRefusals } from '../domain/audit/refusals.ts'
import { timeline } from '../domain/devices/timeline.ts'
import { sessionEvents } from '../domain/sessions/session-events.ts'
import { neighbourhood } from '../kit/address.ts'
import { iso } from '../kit/clock.ts'
import { writeReport } from '../kit/write-behind.ts'
import type { Foundation } from './foundation.ts'

export async function openEvidence(foundation: Foundation) {
  const { stores, vault, clock, log, lines, background } = foundation
  const audit = audits({ stores, clock })
  const signer = await auditSigner(stores.hostKeys, vault, () => iso(clock.now()))
  const auditedRefusals = background.own(
    auditRefusals({ stores, audit, clock, ...writeReport(log, 'audit') }),
  )
  return {
    audit,
    auditLog: auditLog({ stores, audit, signer, clock }),
    auditedRefusals,
    refusals: background.own(
      refusals({
        stores,
        clock,
        audited: auditedRefusals,
        onRefused(login, event, keys_tried) {
          if (lines.allows(neighbourhood(login.source))) log.info({ event, ...login, keys_tried })
        },
        ...writeReport(log, 'refusals', 'refusals'),
      }),
    ),
    sessionEvents: background.own(
      sessionEvents({ stores, audit, clock, ...writeReport(log, 'session.events', 'events') }),
    ),
    timeline: background.own(timeline({ stores, clock, ...writeReport(log, 'timeline', 'events') })),
  }
}

export type EvidenceRooms = Awaited<ReturnType<typeof openEvidence>>
