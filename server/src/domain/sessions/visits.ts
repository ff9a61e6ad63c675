// Who watches which session, in the audit log: an entry when they come, and one when they have left. All
// windows of a person at one address are one visit. The first visits of a person to a session in ten minutes have entries of their
// own. The next one ends only when the person was away for ten minutes, and its last entry has the number of visits.
import { sessionLimits } from '@hawser/contract/limits'
import { iso, minute_ms, type Clock } from '../../kit/clock.ts'
import { limiter } from '../../kit/limiter.ts'
import type { Audit, AuditRecord } from '../audit/audit.ts'
import type { MemberCaller } from '../callers/callers.ts'

/** Time away after which a frequent viewer's visit is over. */
export const away_ms = 10 * minute_ms
const mostSources = 10

interface Visit {
  windows: number
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
  /** Runs background work; the name appears in the log if it fails. */
  later(name: string, work: () => Promise<void>): void
}

type About = Pick<AuditRecord, 'target' | 'detail'>

/** Disposing ends the visits of those who are away. */
export interface Visits extends AsyncDisposable {
  /** Somebody watches the session until this is disposed. */
  begin(session_uid: string, caller: MemberCaller, about: About): Disposable & { written: Promise<void> }
}

export function visits({ audit, clock, later }: VisitParts): Visits {
  const going = new Map<string, Visit>()
  const often = limiter(clock, sessionLimits.visits)

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
      const ofFrequent = JSON.stringify(who)
      const ofAddress = JSON.stringify([...who, caller.source])
      const known = [ofAddress, ofFrequent].find((one) => going.has(one))
      const key = known ?? (often.take(ofFrequent) > 0 ? ofFrequent : ofAddress)
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
      // If the entry could not be written, the next visit writes one.
      visit.written.catch(() => going.get(key) === visit && going.delete(key))
      return {
        written: visit.written,
        [Symbol.dispose]() {
          visit.windows -= 1
          if (visit.windows > 0) return
          const ended = () => end(key, visit, caller, about)
          const over = () => later('session.unwatched', ended)
          if (key === ofAddress) over()
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
