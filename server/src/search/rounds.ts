// Indexes due sessions. The database knows which are not indexed yet, so that a crash, a missing index or a
// lost node only delays them. A session that keeps failing is given up.
import { day_ms, hour_ms, iso, minute_ms, type Clock } from '../kit/clock.ts'
import type { JournalName } from '../recording/journal.ts'
import { ThreadEnded } from '../recording/thread.ts'
import type { IndexQueue } from './index-queue.ts'

export interface DueSession {
  readonly tenant_id: string
  readonly uid: string
  readonly device_uid: string
  readonly last_seen: string
  /** As of this moment. */
  readonly index_at: string | null
  /** How often indexing it has ended its thread. */
  readonly index_failures: number
}

export interface SearchQueue {
  /** Due sessions that have ended, longest due first; no other node gets them for a while. */
  due(now: string, until: string, limit: number): Promise<DueSession[]>
  /** Saves when the session is due next; undefined: never. Does nothing if it became due again in between. */
  save(session: DueSession, next: string | undefined, failures: number): Promise<unknown>
  noteFailures(uid: string, failures: number): Promise<unknown>
  /** Makes everything recorded due, or that of one namespace. */
  markAll(tenant_id?: string): Promise<unknown>
  isOn(tenant_id: string): Promise<boolean>
  /** The facts that hits are filtered by; undefined: the session is gone. */
  about(tenant_id: string, uid: string): Promise<{ device_uid: string; person_id: string } | undefined>
}

/** Sessions that a round reads at a time. */
const batch = 50
/** How long other nodes leave the sessions of a round to this one. */
const lease_ms = 10 * minute_ms
const retry_ms = 10 * minute_ms
/** A recording that cannot be found may be on a node that is away. */
const missing_ms = hour_ms
const missed_ms = 7 * day_ms
/** A recording that takes longer is given up, because it would delay all others. */
export const longestIndexing_ms = 30 * minute_ms
/** For a recording that is indexed alone, because the thread ended while it was being indexed. */
const longestAlone_ms = 10 * minute_ms
/** A session during which the thread ended this often is given up. */
const mostFailures = 3

interface RoundParts {
  queue: SearchQueue
  journals: { list(tenant_id: string, session_uid: string): Promise<JournalName[]> }
  clock: Clock
  recordings: Pick<IndexQueue, 'add'>
  known(tenant_id: string, uid: string): Promise<readonly { channel: number; device_uid: string }[]>
  isOver(): boolean
  /** Without room for the index, due sessions wait. */
  hasRoom(): boolean
  onError(error: unknown, name?: JournalName): void
  onGivenUp(session: DueSession): void
}

export function rounds(parts: RoundParts) {
  const { queue, journals, clock, recordings, known: knownOf, isOver, hasRoom, onError, onGivenUp } = parts
  let rounding: Promise<void> | undefined

  /** Indexes what the index does not have of a session. */
  async function complete(session: DueSession): Promise<void> {
    const { tenant_id, uid, device_uid, last_seen, index_failures: failures } = session
    const save = (next_ms: number | undefined, count: number) =>
      queue.save(session, next_ms === undefined ? undefined : iso(clock.now() + next_ms), count)
    let noted = failures
    try {
      const names = await journals.list(tenant_id, uid)
      if (names.length === 0) {
        const isOld = Date.parse(last_seen) < clock.now() - missed_ms
        return void (await save(isOld ? undefined : missing_ms, failures))
      }
      const known = await knownOf(tenant_id, uid)
      // Noted first: a crash of the whole process counts as well.
      await queue.noteFailures(uid, (noted = failures + 1))
      for (const name of names) {
        const isKnown = known.some((one) => one.channel === name.channel && one.device_uid === device_uid)
        if (isKnown) continue
        const queued = recordings.add(name, failures > 0 ? longestAlone_ms : longestIndexing_ms)
        if (!queued) return void (await queue.noteFailures(uid, failures))
        await queued
      }
      await save(undefined, 0)
    } catch (error) {
      // A failure of the database or the disk does not count against this session.
      const count = error instanceof ThreadEnded && !isOver() ? noted : failures
      if (isOver())
        return void (noted > failures && (await queue.noteFailures(uid, failures).catch(() => undefined)))
      onError(error, { tenant_id, session_uid: uid, channel: 0 })
      const isGivenUp = count >= mostFailures
      if (isGivenUp) onGivenUp(session)
      await save(isGivenUp ? undefined : retry_ms, count).catch(onError)
    }
  }

  async function allDue(): Promise<void> {
    for (;;) {
      if (isOver() || !hasRoom()) return
      const now = clock.now()
      const due = await queue.due(iso(now), iso(now + lease_ms), batch)
      await Promise.all(due.filter(({ index_failures }) => index_failures === 0).map(complete))
      // Any session being indexed when the thread ended may have ended it: they go one by one.
      for (const suspect of due.filter(({ index_failures }) => index_failures > 0)) await complete(suspect)
      if (due.length < batch) return
    }
  }

  return {
    /** Concurrent calls share one round. */
    run: (): Promise<void> =>
      (rounding ??= allDue()
        .catch(onError)
        .finally(() => (rounding = undefined))),
    ended: async (): Promise<void> => rounding,
  }
}
