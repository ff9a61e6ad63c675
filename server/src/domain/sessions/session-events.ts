// What happened in sessions beside their terminals, for those who ask later: files, commands and forwarded
// connections. Events are written in batches, a quarter of a second late at most; the audit log gets its
// entries in the same transaction. People in sessions cause events, as many as they like, so of each
// session so many are kept, and so much text; the others are counted, and the end of the session says
// how many there were.
import {
  sessionEvents_most,
  type SessionEventKind,
  type SessionEventOutcome,
} from '@hawser/contract/session-events'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { iso, type Clock } from '../../kit/clock.ts'
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
/** Entries in the audit log for each action in one session; the last one counts the others. */
const mostAudited = 100
/** Text that waits for the database, of all sessions. */
const mostWaiting = 16 * 1024 * 1024
/** What an event needs beside its text. */
const event_bytes = 512

type Row = Omit<SessionEventRow, 'tenant_id'>

export function sessionEvents(parts: SessionEventParts): SessionEvents {
  const { stores, audit, clock } = parts
  const waiting = new Map<string, Row>()
  let entries: AuditNote[] = []
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
    waiting_bytes += event_bytes
    entries.push(entry)
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
          await audit.append(inside, notes)
        })
        // A row that changed meanwhile is written again.
        for (const [key, row] of some)
          if (waiting.get(key) === row) {
            waiting.delete(key)
            waiting_bytes -= sizeOf(row)
          }
        entries = entries.slice(notes.length)
        waiting_bytes -= notes.length * event_bytes
      }
    } catch (error) {
      parts.onError(error)
      if (waiting.size > 0 || entries.length > 0) soon()
    }
  }

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
    const audited = new Map<AuditAction, number>()
    /** Addresses that the audit log has for this session. */
    const forwards = new Set<string>()

    function auditEvent(row: Row): void {
      const action = actionOf(row)
      if (!action || (action === 'forward.opened' && forwards.has(row.subject))) return
      const count = (audited.get(action) ?? 0) + 1
      audited.set(action, count)
      if (count > mostAudited) return
      if (action === 'forward.opened') forwards.add(row.subject)
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
        for (const [action, count] of audited)
          if (count > mostAudited)
            note({ by, record: { action, target, detail: { ...detail, more: count - mostAudited } } })
      },
    }
  }

  return {
    of,
    async [Symbol.asyncDispose]() {
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
