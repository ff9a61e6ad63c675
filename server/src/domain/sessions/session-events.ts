// What happened in sessions beside their terminals, for those who ask later: files, commands and forwarded
// connections. Events are written in batches, a quarter of a second late at most; the audit log gets its
// entries in the same transaction. People in sessions cause events, as many as they like, so of each
// session so many are kept, and so much text; the others are counted, and the end of the session says
// how many there were. The audit log has a summary of those that have no entry of their own, once a minute.
// Sessions cost nothing, so a person has a share for an hour as well; and while the database is slow a namespace
// has a share of what waits for it, so that nobody's flood takes the evidence of others.
import { randomInt } from 'node:crypto'
import {
  sessionEvents_most,
  type SessionEventKind,
  type SessionEventOutcome,
} from '@hawser/contract/session-events'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { hour_ms, iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { fairShare } from '../../kit/fair-share.ts'
import { limiter } from '../../kit/limiter.ts'
import { safeText } from '../../kit/log.ts'
import type { SessionEventRow } from '../../storage/session-events.ts'
import type { Stores } from '../../storage/stores.ts'
import { auditText, type Audit, type AuditNote } from '../audit/audit.ts'

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
  /** So many events were not kept, because the database was away for long, or was given too much to write. */
  onDropped(events: number): void
}

const flush_every_ms = 250
/** What one transaction writes: others wait for it. */
const batch = { rows: 200, bytes: 256 * 1024 }
/** Text of one session that is kept. Beyond half of it, long texts are shortened, so that what comes late has room. */
const mostText = 512 * 1024
/** Of a path, a command or a sentence. */
const longestText = 4_096
/** Entries in the audit log for each action in one session, at once; each minute allows another one. */
const mostAudited = 100
const refill_ms = minute_ms
/** The most events without an entry of their own, or that are not kept, that a summary names. */
const mostNamed = 20
/** Of a text that is shortened: its beginning and its end. All that a summary names must fit into one entry. */
const longestNamed = { start: 40, end: 120 }
/** Addresses of one session that are remembered. */
const mostForwards = 2_000
/** Text that waits for the database, of all sessions. */
const mostWaiting = 16 * 1024 * 1024
/**
 * Bytes that are written in an hour on a node for one user in one namespace, or for all other people in its sessions.
 * Beyond it, each session has a summary only. What a user does in one namespace hides nothing in another.
 */
const ofPerson_bytes = 32 * 1024 * 1024
/** What an event needs beside its text. */
const event_bytes = 512

/** Events that are left out, and some of them: by chance, so that nobody chooses which. */
interface LeftOut<T> {
  more: number
  some: T[]
}

/** What the audit log still takes of one action in a session. */
interface Allowance extends LeftOut<Record<string, unknown>> {
  entries: number
  at: number
}

type Row = Omit<SessionEventRow, 'tenant_id'>

/** What waits for the database, and the memory that it takes of its namespace's share. */
interface Waiting<T> {
  readonly what: T
  readonly tenant_id: string
  readonly bytes: number
}

export function sessionEvents(parts: SessionEventParts, ofPerson = ofPerson_bytes): SessionEvents {
  const { stores, audit, clock } = parts
  const rows = new Map<string, Waiting<Row>>()
  let entries: Waiting<AuditNote>[] = []
  const share = fairShare(mostWaiting)
  const caused_bytes = limiter(clock, { max: ofPerson, window_ms: hour_ms })
  /** What writes the summaries of sessions that have some to write. */
  const summaries = new Set<() => void>()
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()

  /** Whether there is room for it; what says how much is missing has room in any case. */
  function hasRoom({ tenant_id, bytes }: Waiting<unknown>, isLast: boolean): boolean {
    if (isLast) share.count(tenant_id, bytes)
    else if (!share.take(tenant_id, bytes)) return false
    soon()
    return true
  }

  function keep(what: Row, tenant_id: string, isLast = false): boolean {
    const key = `${what.session_uid} ${what.seq}`
    const row = { what, tenant_id, bytes: sizeOf(what) }
    const before = rows.get(key)
    if (before) share.count(tenant_id, row.bytes - before.bytes)
    else if (!hasRoom(row, isLast)) {
      dropped += 1
      return false
    }
    rows.set(key, row)
    return true
  }

  function note(what: AuditNote, isLast = false): boolean {
    const bytes = event_bytes + 2 * JSON.stringify(what.record.detail).length
    const entry = { what, tenant_id: what.by.tenant_id, bytes }
    if (!hasRoom(entry, isLast)) return false
    entries.push(entry)
    return true
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
      while (rows.size > 0 || entries.length > 0) {
        const some = firstOf(rows)
        const notes = firstOf(entries.entries())
        await stores.transaction(async (inside) => {
          if (some.length > 0) await inside.sessionEventBatches.save(some.map(([, { what }]) => what))
          await audit.append(
            inside,
            notes.map(([, { what }]) => what),
          )
        })
        // A row that changed meanwhile is written again.
        for (const [key, row] of some)
          if (rows.get(key) === row) {
            rows.delete(key)
            share.count(row.tenant_id, -row.bytes)
          }
        entries = entries.slice(notes.length)
        for (const [, { tenant_id, bytes }] of notes) share.count(tenant_id, -bytes)
      }
    } catch (error) {
      parts.onError(error)
      if (rows.size > 0 || entries.length > 0) soon()
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
    const unkept: LeftOut<Row> = { more: 0, some: [] }
    let isOver = false
    const { tenant_id } = by
    const causer = `${tenant_id} ${by.actor === 'user' ? by.id : ''}`
    const isTooMuch = (): boolean => caused_bytes.peek(causer) > 0
    const wrote = (row: Row): void => caused_bytes.add(causer, sizeOf(row))
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

    /** Each takes the place of an entry. */
    function writeSummaries(): void {
      for (const [action, { more, some }] of allowances) {
        if (more === 0) continue
        const allowance = allowanceOf(action)
        Object.assign(allowance, { entries: allowance.entries - 1, more: 0, some: [] })
        note({ by, record: { action, target, detail: { ...detail, more, some } } }, true)
      }
    }

    function auditEvent(row: Row): void {
      const action = actionOf(row)
      if (!action || (action === 'forward.opened' && forwards.has(row.subject))) return
      const allowance = allowanceOf(action)
      const entry = { by, record: { action, target, detail: { ...detail, ...auditDetail(row) } } }
      if (allowance.entries < 1 || isTooMuch() || !note(entry)) {
        leaveOut(allowance, inShort(auditDetail(row)))
        return void summaries.add(writeSummaries)
      }
      wrote(row)
      allowance.entries -= 1
      if (action !== 'forward.opened') return
      if (forwards.size >= mostForwards) forwards.clear()
      forwards.add(row.subject)
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
        const whole = { ...rowOf(happening), seq: seq + 1 }
        auditEvent(whole)
        let row = text > mostText / 2 ? inShort(whole) : whole
        const hasRoom = seq < sessionEvents_most - 1 && text + textOf(row) <= mostText
        if (!hasRoom || isTooMuch() || !keep(row, tenant_id)) {
          leaveOut(unkept, inShort(row))
          return () => undefined
        }
        seq += 1
        text += textOf(row)
        wrote(row)
        return (later) => {
          row = { ...row, ...later }
          if (!keep(row, tenant_id)) leaveOut(unkept, inShort(row))
        }
      },
      end() {
        if (isOver) return
        isOver = true
        seq += 1
        if (unkept.more > 0)
          keep(
            rowOf({ kind: 'more', subject: '', outcome: 'done', why: sentenceOf(unkept) }),
            tenant_id,
            true,
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

const textOf = ({ subject, target, why }: Row): number => subject.length + target.length + why.length
const sizeOf = (row: Row): number => event_bytes + 2 * textOf(row)

/** Counts an event that is left out, and names it if chance wants so. */
function leaveOut<T>(left: LeftOut<T>, event: T): void {
  const place = left.more < mostNamed ? left.more : randomInt(left.more + 1)
  if (place < mostNamed) left.some[place] = event
  left.more += 1
}

function sentenceOf({ more, some }: LeftOut<Row>): string {
  const names = some.map(({ kind, subject }) => `${kind} ${subject}`)
  return `${more} more events are not kept, among them: ${names.join('; ')}`
}

/** As many as one transaction takes, one at least. */
function firstOf<K, T>(all: Iterable<[K, Waiting<T>]>): [K, Waiting<T>][] {
  const some: [K, Waiting<T>][] = []
  let bytes = 0
  for (const one of all) {
    bytes += one[1].bytes
    if (some.length > 0 && (bytes > batch.bytes || some.length >= batch.rows)) break
    some.push(one)
  }
  return some
}

/** Text that both databases take. */
function plain(text: string): string {
  const cut = text.length > longestText ? `${text.slice(0, longestText)}…` : text
  return cut.toWellFormed().replaceAll('\0', '\ufffd')
}

function actionOf({ kind, outcome }: Row): AuditAction | undefined {
  if (outcome === 'refused') return 'policy.refused'
  // Files of a channel that cannot be read may have been transferred.
  if (kind === 'upload' || kind === 'download' || kind === 'unread') return 'file.transferred'
  if (kind === 'forward' || kind === 'listen') return 'forward.opened'
  return undefined
}

function auditDetail({ kind, outcome, received, sent, sha256, ...row }: Row): Record<string, unknown> {
  // No longer than the audit log keeps them, because they wait.
  const [subject, why] = [auditText(row.subject), auditText(row.why)]
  if (outcome === 'refused') return { kind, subject, why }
  if (kind === 'forward' || kind === 'listen') return { kind, destination: subject }
  if (kind === 'unread') return { kind, path: subject, outcome, why }
  return { kind, path: subject, outcome, bytes: received + sent, ...(sha256 === '' ? {} : { sha256 }) }
}

/** The same with texts of a bounded length, however they are written in JSON. */
const inShort = <T extends object>(event: T): T =>
  Object.fromEntries(
    Object.entries(event).map(([name, value]) => [name, typeof value === 'string' ? short(value) : value]),
  ) as T

function short(text: string): string {
  const { start, end } = longestNamed
  const isLong = text.length > start + end
  return safeText(isLong ? `${text.slice(0, start)}…${text.slice(-end)}` : text, start + end + 1)
}
