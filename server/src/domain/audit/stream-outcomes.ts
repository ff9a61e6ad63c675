// The outcome of a delivery attempt: the stream moves on, waits longer for the next attempt, or gives entries
// up as a dead letter.
import { giveUp_days, mostDeadLetters, mostUnsent } from '@hawser/contract/audit-streams'
import { day_ms, iso, minute_ms, second_ms } from '../../kit/clock.ts'
import { Counter } from '../../kit/counter.ts'
import type { Receiver, Receivers } from '../../receivers/receivers.ts'
import type { AuditHeadRow } from '../../storage/audit.ts'
import type { AuditStreamRow, DeadLetterRow } from '../../storage/audit-streams.ts'
import { theServer } from './audit.ts'
import type { With } from './parts.ts'

/** A stream fails, recovers, or has given up entries. */
export interface StreamEvent {
  readonly event: 'failing' | 'recovered' | 'gave-up'
  readonly stream: string
  readonly tenant_id: string
  readonly receiver: string
  readonly error?: string
  readonly from_seq?: number
  readonly to_seq?: number
}

export interface StreamOutcomeParts extends With<'stores' | 'audit' | 'clock'> {
  receivers: Receivers
  onEvent(event: StreamEvent): void
  random?: () => number
}

const wait_ms = { first: 5 * second_ms, longest: 15 * minute_ms }

export type StreamOutcomes = ReturnType<typeof streamOutcomes>

export function streamOutcomes(parts: StreamOutcomeParts) {
  const { stores, audit, receivers, clock, onEvent, random = Math.random } = parts
  const batches = new Counter(['sent', 'failed'] as const)
  const entries = new Counter(['sent', 'given-up'] as const)

  function report(
    row: AuditStreamRow,
    receiver: Receiver,
    about: Pick<StreamEvent, 'event'> & Partial<StreamEvent>,
  ) {
    const { address } = receivers.describe(receiver.url)
    onEvent({ ...about, stream: row.uid, tenant_id: row.tenant_id, receiver: address })
  }

  async function succeeded(row: AuditStreamRow, receiver: Receiver, count: number, sent_seq: number) {
    batches.add('sent')
    entries.add('sent', count)
    if (row.failures > 0) report(row, receiver, { event: 'recovered' })
    return stores.of(row.tenant_id).auditStreams.saveAttempt(row, {
      sent_seq,
      sent_at: iso(clock.now()),
      failures: 0,
      error: '',
      failing_since: '',
      retry_at: '',
    })
  }

  async function failed(row: AuditStreamRow, receiver: Receiver, error: string): Promise<boolean> {
    batches.add('failed')
    if (row.failures === 0) report(row, receiver, { event: 'failing', error })
    const longest = Math.min(wait_ms.longest, wait_ms.first * 2 ** Math.min(row.failures, 20))
    const now = clock.now()
    return stores.of(row.tenant_id).auditStreams.saveAttempt(row, {
      failures: row.failures + 1,
      error,
      failing_since: row.failing_since || iso(now),
      // Half of the wait is random, so that streams to one receiver do not retry all at once.
      retry_at: iso(now + longest * (0.5 + random() / 2)),
    })
  }

  /** Makes a dead letter of everything up to `to_seq`, with an entry unless it continues the last one. */
  async function bury(
    row: AuditStreamRow,
    receiver: Receiver,
    to_seq: number,
    reason: DeadLetterRow['reason'],
    error: string,
  ): Promise<boolean> {
    const { uid, tenant_id } = row
    const from_seq = row.sent_seq + 1
    const done = await audit.change({ ...theServer, tenant_id }, async (inside, record) => {
      const mine = inside.of(tenant_id).auditStreams
      if (!(await mine.saveAttempt(row, { sent_seq: to_seq }))) return false
      const last = await mine.newestLetter(uid)
      if (last?.to_seq === row.sent_seq && last.reason === reason && last.queued === 0) {
        await mine.saveLetter(last.id, { to_seq, error })
        return true
      }
      const at = iso(clock.now())
      await mine.addLetter({ stream: uid, from_seq, to_seq, reason, error, at }, mostDeadLetters)
      record({
        action: 'audit-stream.gave-up',
        target: { kind: 'audit stream', id: uid, name: row.name },
        detail: { from_seq, to_seq, reason, error },
      })
      return true
    })
    if (!done) return false
    entries.add('given-up', to_seq - row.sent_seq)
    report(row, receiver, { event: 'gave-up', from_seq, to_seq, error })
    return true
  }

  async function giveUp(row: AuditStreamRow, receiver: Receiver, head: AuditHeadRow, error: string) {
    const old = await stores.auditLogs.lastBefore(row.tenant_id, iso(clock.now() - giveUp_days * day_ms))
    const to_seq = Math.max(old?.seq ?? 0, head.seq - mostUnsent)
    if (to_seq > row.sent_seq) await bury(row, receiver, to_seq, 'unsent', error)
  }

  return { batches, entries, succeeded, failed, bury, giveUp }
}
