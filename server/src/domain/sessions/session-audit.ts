// A session's entries in the audit log. Each action has a bounded number of entries, which grows with time.
// Once a minute, a summary counts the events that have no entry of their own, and names some of them.
import { randomInt } from 'node:crypto'
import type { AuditAction } from '@hawser/contract/audit-actions'
import { minute_ms, type Clock } from '../../kit/clock.ts'
import { safeText } from '../../kit/log.ts'
import type { SessionEventRow } from '../../storage/session-events.ts'
import { auditText, type AuditNote } from '../audit/audit.ts'

export type SessionAudit = Pick<AuditNote, 'by'> & Pick<AuditNote['record'], 'target' | 'detail'>

export type EventRow = Omit<SessionEventRow, 'tenant_id'>

/** Left-out events, and a random sample, so that nobody chooses which are named. */
export interface DroppedSample<T> {
  more: number
  some: T[]
}

export interface EntryQueue {
  /** False: no room, except for an entry that reports how much is missing. */
  note(entry: AuditNote, isLast?: boolean): boolean
}

/** Entries for each action, at once; each `refill_ms` allows another one. */
const mostAudited = 100
export const refill_ms = minute_ms
const mostNamed = 20
/** Beginning and end of a shortened text. All names of a summary must fit into one entry. */
const longestNamed = { start: 40, end: 120 }
const mostForwards = 2_000

/** The room that the audit log still has for one action of a session. */
interface Allowance extends DroppedSample<Record<string, unknown>> {
  entries: number
  at: number
}

export class SessionAuditLog {
  readonly #session: SessionAudit
  readonly #queue: EntryQueue
  readonly #clock: Clock
  readonly #allowances = new Map<AuditAction, Allowance>()
  readonly #forwards = new Set<string>()

  constructor(session: SessionAudit, queue: EntryQueue, clock: Clock) {
    this.#session = session
    this.#queue = queue
    this.#clock = clock
  }

  /** Undefined: the event needs no entry. */
  add(row: EventRow, isTooMuch: boolean): 'written' | 'left out' | undefined {
    const action = actionOf(row)
    if (!action || (action === 'forward.opened' && this.#forwards.has(row.subject))) return undefined
    const allowance = this.#allowanceOf(action)
    const detail = auditDetail(row)
    if (allowance.entries < 1 || isTooMuch || !this.#note(action, detail)) {
      leaveOut(allowance, inShort(detail))
      return 'left out'
    }
    allowance.entries -= 1
    if (action === 'forward.opened') {
      if (this.#forwards.size >= mostForwards) this.#forwards.clear()
      this.#forwards.add(row.subject)
    }
    return 'written'
  }

  /** Each summary takes the place of an entry. */
  summarise(): void {
    for (const [action, { more, some }] of this.#allowances) {
      if (more === 0) continue
      const allowance = this.#allowanceOf(action)
      Object.assign(allowance, { entries: allowance.entries - 1, more: 0, some: [] })
      this.#note(action, { more, some }, true)
    }
  }

  #note(action: AuditAction, about: Readonly<Record<string, unknown>>, isLast = false): boolean {
    const { by, target, detail } = this.#session
    return this.#queue.note({ by, record: { action, target, detail: { ...detail, ...about } } }, isLast)
  }

  #allowanceOf(action: AuditAction): Allowance {
    const now = this.#clock.now()
    const one = this.#allowances.get(action) ?? { entries: mostAudited, at: now, more: 0, some: [] }
    one.entries = Math.min(mostAudited, one.entries + Math.max(0, now - one.at) / refill_ms)
    one.at = now
    this.#allowances.set(action, one)
    return one
  }
}

/** Chance decides whether an event that is left out is named. */
export function leaveOut<T>(left: DroppedSample<T>, event: T): void {
  const place = left.more < mostNamed ? left.more : randomInt(left.more + 1)
  if (place < mostNamed) left.some[place] = event
  left.more += 1
}

function actionOf({ kind, outcome }: EventRow): AuditAction | undefined {
  if (outcome === 'refused') return 'policy.refused'
  // Unread channels may have transferred files.
  if (kind === 'upload' || kind === 'download' || kind === 'unread') return 'file.transferred'
  if (kind === 'forward' || kind === 'listen') return 'forward.opened'
  return undefined
}

function auditDetail({ kind, outcome, received, sent, sha256, ...row }: EventRow): Record<string, unknown> {
  // Cut already while they wait, to what the audit log stores.
  const [subject, why] = [auditText(row.subject), auditText(row.why)]
  if (outcome === 'refused') return { kind, subject, why }
  if (kind === 'forward' || kind === 'listen') return { kind, destination: subject }
  if (kind === 'unread') return { kind, path: subject, outcome, why }
  return { kind, path: subject, outcome, bytes: received + sent, ...(sha256 === '' ? {} : { sha256 }) }
}

/** Texts of bounded length, however they are written in JSON. */
export const inShort = <T extends object>(event: T): T =>
  Object.fromEntries(
    Object.entries(event).map(([name, value]) => [name, typeof value === 'string' ? short(value) : value]),
  ) as T

function short(text: string): string {
  const { start, end } = longestNamed
  const isLong = text.length > start + end
  return safeText(isLong ? `${text.slice(0, start)}…${text.slice(-end)}` : text, start + end + 1)
}
