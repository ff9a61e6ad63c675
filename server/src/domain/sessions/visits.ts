// Who watches which session, in the audit log: an entry when they come, and one when they have left. All
// windows of a person at once are one visit. Somebody who comes and goes all the time must not fill the log:
// after a few visits to a session, the next one lasts until they have stayed away for a while, and its end
// has the count of visits.
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import type { Audit, AuditRecord } from '../audit/audit.ts'
import type { MemberCaller } from '../callers/callers.ts'

/** Visits of one person to one session that have entries of their own. */
const usual = { max: 5, window_ms: 10 * minute_ms }
/** Time away after which a visit of somebody who came often is over. */
export const away_ms = 10 * minute_ms
/** Addresses of one visit that are told. */
const mostSources = 10

interface Visit {
  /** Windows that are open now. */
  windows: number
  /** How often they came. */
  count: number
  last_at: number
  readonly sources: Set<string>
  /** Resolves when the log has the entry. */
  readonly written: Promise<void>
  /** While they are away: the time after which the visit is over, and its end. */
  away: { readonly timer: NodeJS.Timeout; readonly end: () => Promise<void> } | undefined
}

interface VisitParts {
  audit: Pick<Audit, 'event'>
  clock: Clock
  /** Runs work that nobody waits for; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
}

type About = Pick<AuditRecord, 'target' | 'detail'>

/** A server that stops ends the visits of those who are away. */
export interface Visits extends AsyncDisposable {
  /** Somebody comes to watch the session, until this is disposed of. */
  begin(session_uid: string, caller: MemberCaller, about: About): Disposable & { written: Promise<void> }
}

export function visits({ audit, clock, later }: VisitParts): Visits {
  /** Who watches what on this node. */
  const going = new Map<string, Visit>()
  const often = limiter(clock, usual)

  async function end(key: string, visit: Visit, caller: MemberCaller, about: About): Promise<void> {
    going.delete(key)
    const { count, last_at, sources } = visit
    const many = count === 1 ? {} : { visits: count, last_at: iso(last_at), sources: [...sources] }
    const isWritten = await visit.written.then(
      () => true,
      () => false,
    )
    const record = { ...about, action: 'session.unwatched', detail: { ...about.detail, ...many } } as const
    if (isWritten) await audit.event(caller, record)
  }

  return {
    begin(session_uid, caller, about) {
      const who = [caller.kind, caller.kind === 'key' ? caller.name : caller.id, session_uid]
      const restless = JSON.stringify(who)
      const calm = JSON.stringify([...who, caller.source])
      const known = [calm, restless].find((one) => going.has(one))
      const key = known ?? (often.take(restless) > 0 ? restless : calm)
      const visit = going.get(key) ?? {
        windows: 0,
        count: 0,
        last_at: 0,
        sources: new Set(),
        written: audit.event(caller, { action: 'session.watched', ...about }),
        away: undefined,
      }
      going.set(key, visit)
      clearTimeout(visit.away?.timer)
      visit.away = undefined
      if (visit.windows === 0) visit.count += 1
      visit.windows += 1
      visit.last_at = clock.now()
      if (visit.sources.size < mostSources) visit.sources.add(caller.source)
      // The next one writes again what could not be written.
      visit.written.catch(() => going.get(key) === visit && going.delete(key))
      return {
        written: visit.written,
        [Symbol.dispose]() {
          visit.windows -= 1
          if (visit.windows > 0) return
          const ended = () => end(key, visit, caller, about)
          const over = () => later('session.unwatched', ended)
          if (key === calm) over()
          else visit.away = { timer: setTimeout(over, away_ms).unref(), end: ended }
        },
      }
    },
    async [Symbol.asyncDispose]() {
      const away = [...going.values()].flatMap((visit) => visit.away ?? [])
      for (const { timer } of away) clearTimeout(timer)
      await Promise.all(away.map(({ end }) => end()))
    },
  }
}
