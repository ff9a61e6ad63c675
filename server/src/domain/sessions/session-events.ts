// What happened in sessions beside their terminals, for those who ask later: files, commands and forwarded
// connections. Events are written in batches, a quarter of a second late at most; the audit log gets its
// entries in the same transaction. People in sessions cause events, as many as they like, so of each
// session so many are kept, and so much text; the others are counted, and the end of the session says
// how many there were. The audit log has a summary of those that have no entry of their own, once a minute.
import { randomInt } from 'node:crypto'
import {
  sessionEvents_most,
  type SessionEventKind,
  type SessionEventOutcome,
} from '@hawser/contract/session-events'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'
import type { SessionEventRow } from '../../storage/session-events.ts'
import type { Stores } from '../../storage/stores.ts'
import type { Audit, AuditNote } from '../audit/audit.ts'

/** An event, as the gateway sees it; secrets are masked already. */
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

/** What becomes known of an event later. */
export type EventChange = Partial<Pick<SessionEventRow, 'outcome' | 'received' | 'sent' | 'why'>>

/** The events of one session. */
export interface SessionEventLog {
  /** Gives how to say more about it later. */
  add(happening: SessionHappening): (later: EventChange) => void
  /** The session is over. */
  end(): void
}

export interface SessionEvents extends AsyncDisposable {
  /** `after`: the number of its last event, if there were some before. */
  of(session: SessionAudit & { readonly uid: string; readonly after?: number }): SessionEventLog
}

/** What the entries of a session in the audit log have in common. */
export type SessionAudit = Pick<AuditNote, 'by'> & Pick<AuditNote['record'], 'target' | 'detail'>

export interface SessionEventParts {
  stores: Stores
  audit: Audit
  clock: Clock
  onError(error: unknown): void
  /** So many events were lost, because the database was away for long. */
  onDropped(events: number): void
}

const flush_every_ms = 250
const batch = 200
/** Text of one session that is kept. */
const mostText = 512 * 1024
/** Of a path, a command or a sentence. */
const longestText = 4_096
/** Entries in the audit log for each action in one session, at once; each minute allows another one. */
const mostAudited = 100
const refill_ms = minute_ms
/** Of the events without an entry of their own, a summary names so many. */
const mostNamed = 20
/** Of a text in a summary: its beginning and its end. All of them must fit into one entry. */
const longestNamed = { start: 40, end: 120 }
/** Addresses of one session that are remembered. */
const mostForwards = 2_000
/** Text that waits for the database, of all sessions. */
const mostWaiting = 16 * 1024 * 1024
/** What an event needs beside its text. */
const event_bytes = 512

/** What the audit log still takes of one action in a session. */
interface Allowance {
  entries: number
  at: number
  /** Events that have no entry, and some of them: by chance, so that nobody chooses which. */
  more: number
  some: Record<string, unknown>[]
}

type Row = Omit<SessionEventRow, 'tenant_id'>

export function sessionEvents(parts: SessionEventParts): SessionEvents {
  const { stores, audit, clock } = parts
  const waiting = new Map<string, Row>()
  let entries: { readonly entry: AuditNote; readonly bytes: number }[] = []
  /** What writes the summaries of sessions that have some to write. */
  const summaries = new Set<() => void>()
  let waiting_bytes = 0
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()

  function keep(row: Row): void {
    const key = `${row.session_uid} ${row.seq}`
    if (!waiting.has(key)) {
      if (waiting_bytes > mostWaiting) return void (dropped += 1)
      waiting_bytes += sizeOf(row)
    }
    waiting.set(key, row)
    soon()
  }

  function note(entry: AuditNote): void {
    if (waiting_bytes > mostWaiting) return void (dropped += 1)
    const bytes = event_bytes + 2 * JSON.stringify(entry.record.detail).length
    waiting_bytes += bytes
    entries.push({ entry, bytes })
    soon()
  }

  const soon = (): void =>
    void (timer ??= setTimeout(() => {
      timer = undefined
      writing = writing.then(write)
    }, flush_every_ms).unref())

  async function write(): Promise<void> {
    const lost = dropped
    dropped = 0
    if (lost > 0) parts.onDropped(lost)
    try {
      while (waiting.size > 0 || entries.length > 0) {
        const some = [...waiting].slice(0, batch)
        const notes = entries.slice(0, batch)
        await stores.transaction(async (inside) => {
          if (some.length > 0) await inside.sessionEventBatches.save(some.map(([, row]) => row))
          await audit.append(
            inside,
            notes.map(({ entry }) => entry),
          )
        })
        // A row that changed meanwhile is written again.
        for (const [key, row] of some)
          if (waiting.get(key) === row) {
            waiting.delete(key)
            waiting_bytes -= sizeOf(row)
          }
        entries = entries.slice(notes.length)
        for (const { bytes } of notes) waiting_bytes -= bytes
      }
    } catch (error) {
      parts.onError(error)
      if (waiting.size > 0 || entries.length > 0) soon()
    }
  }

  function summarise(): void {
    for (const write of summaries) write()
    summaries.clear()
  }
  const summarising = setInterval(summarise, refill_ms).unref()

  function of({
    uid,
    by,
    target,
    detail,
    after = 0,
  }: SessionAudit & { readonly uid: string; readonly after?: number }): SessionEventLog {
    let seq = after
    let text = 0
    let unkept = 0
    let isOver = false
    const allowances = new Map<AuditAction, Allowance>()
    /** Addresses that the audit log has for this session. */
    const forwards = new Set<string>()

    function allowanceOf(action: AuditAction): Allowance {
      const now = clock.now()
      const one = allowances.get(action) ?? { entries: mostAudited, at: now, more: 0, some: [] }
      one.entries = Math.min(mostAudited, one.entries + Math.max(0, now - one.at) / refill_ms)
      one.at = now
      allowances.set(action, one)
      return one
    }

    function leaveOut(allowance: Allowance, row: Row): void {
      const place = allowance.more < mostNamed ? allowance.more : randomInt(allowance.more + 1)
      if (place < mostNamed) allowance.some[place] = inShort(auditDetail(row))
      allowance.more += 1
      summaries.add(writeSummaries)
    }

    /** Each takes the place of an entry. */
    function writeSummaries(): void {
      for (const [action, { more, some }] of allowances) {
        if (more === 0) continue
        const allowance = allowanceOf(action)
        Object.assign(allowance, { entries: allowance.entries - 1, more: 0, some: [] })
        note({ by, record: { action, target, detail: { ...detail, more, some } } })
      }
    }

    function auditEvent(row: Row): void {
      const action = actionOf(row)
      if (!action || (action === 'forward.opened' && forwards.has(row.subject))) return
      const allowance = allowanceOf(action)
      if (allowance.entries < 1) return leaveOut(allowance, row)
      allowance.entries -= 1
      if (action === 'forward.opened') {
        if (forwards.size >= mostForwards) forwards.clear()
        forwards.add(row.subject)
      }
      note({ by, record: { action, target, detail: { ...detail, ...auditDetail(row) } } })
    }

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

    return {
      add(happening) {
        let row = rowOf(happening)
        auditEvent(row)
        text += row.subject.length + row.target.length + row.why.length
        if (seq >= sessionEvents_most - 1 || text > mostText) {
          unkept += 1
          return () => undefined
        }
        seq += 1
        row = { ...row, seq }
        keep(row)
        return (later) => {
          row = { ...row, ...later }
          keep(row)
        }
      },
      end() {
        if (isOver) return
        isOver = true
        seq += 1
        if (unkept > 0)
          keep(
            rowOf({ kind: 'more', subject: '', outcome: 'done', why: `${unkept} more events are not kept.` }),
          )
        writeSummaries()
        summaries.delete(writeSummaries)
      },
    }
  }

  return {
    of,
    async [Symbol.asyncDispose]() {
      clearInterval(summarising)
      summarise()
      clearTimeout(timer)
      timer = undefined
      await writing
      await write()
      clearTimeout(timer)
    },
  }
}

const sizeOf = ({ subject, target, why }: Row): number =>
  event_bytes + 2 * (subject.length + target.length + why.length)

/** Text that both databases take. */
function plain(text: string): string {
  const cut = text.length > longestText ? `${text.slice(0, longestText)}…` : text
  return cut.toWellFormed().replaceAll('\0', '\ufffd')
}

function actionOf({ kind, outcome }: Row): AuditAction | undefined {
  if (outcome === 'refused') return 'policy.refused'
  if (kind === 'upload' || kind === 'download') return 'file.transferred'
  if (kind === 'forward' || kind === 'listen') return 'forward.opened'
  return undefined
}

function auditDetail({ kind, subject, outcome, received, sent, sha256, why }: Row): Record<string, unknown> {
  if (outcome === 'refused') return { kind, subject, why }
  if (kind === 'forward' || kind === 'listen') return { kind, destination: subject }
  return { kind, path: subject, outcome, bytes: received + sent, ...(sha256 === '' ? {} : { sha256 }) }
}

/** The same with texts of a bounded length, however they are written in JSON. */
const inShort = (detail: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [name, typeof value === 'string' ? short(value) : value]),
  )

function short(text: string): string {
  const { start, end } = longestNamed
  const isLong = text.length > start + end
  return safeText(isLong ? `${text.slice(0, start)}…${text.slice(-end)}` : text, start + end + 1)
}
