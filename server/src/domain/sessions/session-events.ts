// Records files, commands and forwarded connections of sessions, for later investigations. Events are written in batches, at most a quarter of a second late, in one
// transaction with their audit entries (session-audit.ts). People cause as many events as they like, so
// events and text of a session are bounded; further ones are counted and reported at its end. Sessions cost
// nothing, so a person has an hourly share as well. While the database is slow, each namespace has a share of
// what waits, so that no flood displaces the evidence of others.
import {
  sessionEvents_most,
  type SessionEventKind,
  type SessionEventOutcome,
} from '@hawser/contract/session-events'
import { sessionLimits } from '@hawser/contract/limits'
import { iso, type Clock } from '../../kit/clock.ts'
import { fairShare } from '../../kit/fair-share.ts'
import { limiter, type Limiter } from '../../kit/limiter.ts'
import { WriteBehind, type WriteReport } from '../../kit/write-behind.ts'
import type { SessionEventRow } from '../../storage/session-events.ts'
import type { AuditNote } from '../audit/audit.ts'
import type { With } from '../audit/parts.ts'
import {
  inShort,
  leaveOut,
  refill_ms,
  SessionAuditLog,
  type EntryQueue,
  type EventRow as Row,
  type DroppedSample,
  type SessionAudit,
} from './session-audit.ts'

/** Secrets are masked already. */
export interface SessionHappening {
  readonly kind: SessionEventKind
  readonly subject: string
  readonly target?: string | undefined
  readonly outcome: SessionEventOutcome
  readonly received?: number
  readonly sent?: number
  readonly sha256?: string | undefined
  readonly why?: string | undefined
}

/** A change of an event that is known later. */
export type EventChange = Partial<Pick<SessionEventRow, 'outcome' | 'received' | 'sent' | 'why'>>

export interface SessionEventLog {
  /** Returns a function that updates the event later. */
  add(happening: SessionHappening): (later: EventChange) => void
  end(): void
}

export interface SessionEvents extends AsyncDisposable {
  /** `after`: the number of its last event, if there were some before. */
  of(session: SessionAudit & { readonly uid: string; readonly after?: number }): SessionEventLog
}

export type SessionEventParts = WriteReport & With<'stores' | 'audit' | 'clock'>

const flush_every_ms = 250
/** Per transaction: others wait for it. */
const batch = { rows: 200, bytes: 256 * 1024 }
/** Per session. Beyond half of it, long texts are shortened, so that what comes late has room. */
const mostText = 512 * 1024
const longestText = 4_096
const mostWaiting = 16 * 1024 * 1024
const event_bytes = 512

/** A row or an entry that waits for the database, and its share of the namespace's memory. */
type Waiting = ({ readonly row: Row } | { readonly entry: AuditNote }) & {
  readonly tenant_id: string
  readonly bytes: number
}

interface EvidenceQueue extends AsyncDisposable, EntryQueue {
  /** False: no room, except for what reports how much is missing. */
  keep(row: Row, tenant_id: string, isLast?: boolean): boolean
}

function evidenceQueue({ stores, audit, ...report }: SessionEventParts): EvidenceQueue {
  const share = fairShare(mostWaiting)
  const release = ({ tenant_id, bytes }: Waiting): void => share.count(tenant_id, -bytes)
  const waiting = new WriteBehind<Waiting>({
    ...report,
    delay_ms: flush_every_ms,
    batch: batch.bytes,
    weight: ({ bytes }) => Math.max(bytes, batch.bytes / batch.rows),
    merge(older, newer) {
      release(older)
      return newer
    },
    async write(some) {
      const rows = some.flatMap((one) => ('row' in one ? [one.row] : []))
      const entries = some.flatMap((one) => ('entry' in one ? [one.entry] : []))
      await stores.transaction(async (inside) => {
        if (rows.length > 0) await inside.sessionEventBatches.save(rows)
        await audit.append(inside, entries)
      })
      for (const one of some) release(one)
    },
  })

  function hasRoom({ tenant_id, bytes }: Waiting, isLast: boolean): boolean {
    if (isLast) share.count(tenant_id, bytes)
    return isLast || share.take(tenant_id, bytes)
  }

  return {
    keep(row, tenant_id, isLast = false) {
      const key = `${row.session_uid} ${row.seq}`
      const one = { row, tenant_id, bytes: sizeOf(row) }
      const may = hasRoom(one, isLast || waiting.has(key))
      if (may) waiting.put(key, one)
      else waiting.drop(1)
      return may
    },
    note(entry, isLast = false) {
      const bytes = event_bytes + 2 * JSON.stringify(entry.record.detail).length
      const one = { entry, tenant_id: entry.by.tenant_id, bytes }
      const may = hasRoom(one, isLast)
      if (may) waiting.add(one)
      return may
    },
    [Symbol.asyncDispose]: () => waiting[Symbol.asyncDispose](),
  }
}

export function sessionEvents(
  parts: SessionEventParts,
  ofPerson: number = sessionLimits.events.max,
): SessionEvents {
  const queue = evidenceQueue(parts)
  // By user and namespace: a user's events in one hide nothing in another. People without an account count
  // together.
  const caused_bytes = limiter(parts.clock, { ...sessionLimits.events, max: ofPerson })
  const summaries = new Set<SessionAuditLog>()

  function summarise(): void {
    for (const entries of summaries) entries.summarise()
    summaries.clear()
  }
  const summarising = setInterval(summarise, refill_ms).unref()

  return {
    of: (session) => sessionLog(session, { clock: parts.clock, queue, caused_bytes, summaries }),
    async [Symbol.asyncDispose]() {
      clearInterval(summarising)
      summarise()
      await queue[Symbol.asyncDispose]()
    },
  }
}

interface LogParts {
  readonly clock: Clock
  readonly queue: EvidenceQueue
  readonly caused_bytes: Limiter
  readonly summaries: Set<SessionAuditLog>
}

function sessionLog(
  { uid, after = 0, ...audited }: Parameters<SessionEvents['of']>[0],
  { clock, queue, caused_bytes, summaries }: LogParts,
): SessionEventLog {
  let seq = after
  let text = 0
  const unkept: DroppedSample<Row> = { more: 0, some: [] }
  let isOver = false
  const { tenant_id, actor, id } = audited.by
  const causer = `${tenant_id} ${actor === 'user' ? id : ''}`
  const isTooMuch = (): boolean => caused_bytes.peek(causer) > 0
  const wrote = (row: Row): void => caused_bytes.add(causer, sizeOf(row))
  const entries = new SessionAuditLog(audited, queue, clock)

  const rowOf = (happening: SessionHappening): Row => ({
    session_uid: uid,
    seq,
    at: iso(clock.now()),
    kind: happening.kind,
    subject: plain(happening.subject),
    target: plain(happening.target ?? ''),
    outcome: happening.outcome,
    received: happening.received ?? 0,
    sent: happening.sent ?? 0,
    sha256: happening.sha256 ?? '',
    why: plain(happening.why ?? ''),
  })

  function auditEvent(row: Row): void {
    const done = entries.add(row, isTooMuch())
    if (done === 'written') wrote(row)
    if (done === 'left out') summaries.add(entries)
  }

  return {
    add(happening) {
      const whole = { ...rowOf(happening), seq: seq + 1 }
      auditEvent(whole)
      let row = text > mostText / 2 ? inShort(whole) : whole
      const hasRoom = seq < sessionEvents_most - 1 && text + textOf(row) <= mostText
      if (!hasRoom || isTooMuch() || !queue.keep(row, tenant_id)) {
        leaveOut(unkept, inShort(row))
        return () => undefined
      }
      seq += 1
      text += textOf(row)
      wrote(row)
      return (later) => {
        row = { ...row, ...later }
        if (!queue.keep(row, tenant_id)) leaveOut(unkept, inShort(row))
      }
    },
    end() {
      if (isOver) return
      isOver = true
      seq += 1
      const why = sentenceOf(unkept)
      if (unkept.more > 0)
        queue.keep(rowOf({ kind: 'more', subject: '', outcome: 'done', why }), tenant_id, true)
      entries.summarise()
      summaries.delete(entries)
    },
  }
}

const textOf = ({ subject, target, why }: Row): number => subject.length + target.length + why.length
const sizeOf = (row: Row): number => event_bytes + 2 * textOf(row)

function sentenceOf({ more, some }: DroppedSample<Row>): string {
  const names = some.map(({ kind, subject }) => `${kind} ${subject}`)
  return `${more} more events are not kept, among them: ${names.join('; ')}`
}

/** Text that both databases take. */
function plain(text: string): string {
  const cut = text.length > longestText ? `${text.slice(0, longestText)}…` : text
  return cut.toWellFormed().replaceAll('\0', '\ufffd')
}
