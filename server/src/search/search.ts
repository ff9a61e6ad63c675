// Search over everything that recorded sessions showed: which recordings are to be indexed and when, and
// questions to the index. A recording is indexed when it ends. The database knows which sessions are not
// indexed yet, so that a crash, a missing index or a lost node only delays that: a round every half minute
// does what is due. Namespaces take turns; none has more than one recording played at a time. All of the work
// is done by threads of their own (worker.ts).
import { Failure } from '@hawser/contract/failures'
import { Counter } from '../kit/counter.ts'
import { hour_ms, iso, minute_ms, day_ms, type Clock } from '../kit/clock.ts'
import { concurrencyByKey } from '../kit/concurrency.ts'
import { thread, ThreadEnded } from '../recording/thread.ts'
import type { JournalName } from '../recording/journal.ts'
import { lentJournals } from '../recording/lent-journals.ts'
import { readHeader } from '../recording/reader.ts'
import type { Reading } from '../recording/storage/storage.ts'
import type { FoundLines, LineQuery } from './finding.ts'
import type { IndexPlace, SearchThread } from './worker.ts'

/** A session whose recordings are to be looked at. */
export interface DueSession {
  readonly tenant_id: string
  readonly uid: string
  readonly device_uid: string
  readonly last_seen: string
  /** When it is due, by the database at this moment. */
  readonly index_at: string | null
  /** How often indexing it has ended its thread. */
  readonly index_failures: number
}

/** The list in the database of what is not indexed. */
export interface SearchQueue {
  /**
   * Sessions that are due and over, the longest due first; on several nodes, no other one
   * gets them for a while.
   */
  due(now: string, until: string, limit: number): Promise<DueSession[]>
  /** Undefined: nothing more is to be done. Not if it became due again meanwhile. */
  save(session: DueSession, next: string | undefined, failures: number): Promise<unknown>
  noteFailures(uid: string, failures: number): Promise<unknown>
  /** Everything recorded, or that of one namespace, is due. */
  markAll(tenant_id?: string): Promise<unknown>
  /** Whether the namespace wants to be searched. */
  isOn(tenant_id: string): Promise<boolean>
  /** The facts that hits are filtered by; undefined: the session is gone. */
  about(tenant_id: string, uid: string): Promise<{ device_uid: string; person_id: string } | undefined>
}

export interface SearchParts {
  place: IndexPlace
  queue: SearchQueue
  journals: {
    read(name: JournalName): Promise<Reading>
    list(tenant_id: string, session_uid: string): Promise<JournalName[]>
  }
  clock: Clock
  /** Whether there is room for the index; without it, what is due waits. */
  hasRoom(): boolean
  onIndexed(name: JournalName, about: { lines: number; chars: number; result: string; ms: number }): void
  onError(error: unknown, name?: JournalName): void
  /** A session is given up. */
  onGivenUp(session: DueSession): void
}

export interface Search extends AsyncDisposable {
  /** A recording has ended. */
  ended(name: JournalName): void
  /** Does what is due, now and from time to time. */
  start(): void
  /** Does what is due now; resolves when it is done. */
  round(): Promise<void>
  /** Removes a session, or a namespace, from the index. */
  remove(tenant_id: string, session_uid?: string): Promise<void>
  /** The settings of a namespace have changed. */
  namespaceChanged(tenant_id: string): Promise<void>
  /** Indexes everything again, where this process indexes; what is there can be found meanwhile. */
  reindex(tenant_id?: string): Promise<void>
  /** `signal`: whoever asks has left. */
  find(query: LineQuery, signal?: AbortSignal): Promise<FoundLines>
  /** Recordings that wait for their turn. */
  readonly waiting: number
  /** Recordings by what came of indexing them. */
  readonly indexed: Counter<IndexResult>
}

export const indexResults = ['whole', 'cut', 'gone', 'failed', 'given up'] as const
export type IndexResult = (typeof indexResults)[number]

const round_ms = 30_000
const soon_ms = 1_000
/** Sessions of one part of a round. */
const batch = 50
/** Recordings that are played side by side; one of a namespace. */
const atOnce = 3
/** Recordings that wait; the rest is left to the next round. */
const mostWaiting = 5_000
/** How long another node leaves alone what this one took. */
const lease_ms = 10 * minute_ms
const retry_ms = 10 * minute_ms
/** A recording that cannot be found may be on a node that is away. */
const missing_ms = hour_ms
const missed_ms = 7 * day_ms
/** A recording that takes longer is given up, because it would hold up all others. */
const longestIndexing_ms = 30 * minute_ms
/** The same for a recording that is indexed alone, because it was being indexed when the thread ended. */
const longestAlone_ms = 10 * minute_ms
/** A session during which the thread ended so often is given up. */
export const mostFailures = 3
const longestQuery_ms = 5_000
/** Questions of one namespace that wait. */
const waitingQueries = 8
/**
 * Questions that the thread has at a time, and namespaces whose next question waits. They take turns, and the
 * time of a question counts from its turn.
 */
const queriesAtOnce = 2
const waitingNamespaces = 64

interface Job {
  readonly name: JournalName
  /** How long it may take. */
  readonly most_ms: number
  readonly done: PromiseWithResolvers<void>
}

export function search(parts: SearchParts): Search {
  const { place, queue, journals, clock, hasRoom, onIndexed, onError, onGivenUp } = parts
  const lent = lentJournals()
  const searchThread = () =>
    thread<SearchThread>({
      file: new URL('./worker.ts', import.meta.url),
      data: place,
      offers: lent.reader,
      most_mb: 512,
      name: 'the search',
    })
  const indexing = searchThread()
  const asking = searchThread()
  const questions = concurrencyByKey(waitingQueries, { atOnce: queriesAtOnce, keys: waitingNamespaces })
  const indexed = new Counter(indexResults)
  /** Recordings that wait, by namespace. */
  const waiting = new Map<string, Job[]>()
  /** Namespaces whose recording is being played, with its session. */
  const playing = new Map<string, { readonly session_uid: string; readonly done: Promise<void> }>()
  let count = 0
  let over = false
  let timer: NodeJS.Timeout | undefined
  let later: NodeJS.Timeout | undefined
  let rounding: Promise<void> | undefined

  async function index(name: JournalName, most_ms: number): Promise<void> {
    const { tenant_id, session_uid, channel } = name
    const session = await queue.about(tenant_id, session_uid)
    if (!session || !(await queue.isOn(tenant_id))) return
    const started = performance.now()
    await using file = await journals.read(name)
    const { username, started_at } = await readHeader(file)
    const journal = lent.lend(file)
    try {
      const recording = {
        tenant_id,
        session_uid,
        channel,
        ...session,
        username,
        started_ms: Date.parse(started_at),
      }
      const about = await indexing.call(most_ms, 'index', recording, journal)
      indexed.add(about.result)
      onIndexed(name, { ...about, ms: Math.round(performance.now() - started) })
    } finally {
      lent.takeBack(journal)
    }
  }

  /** A round after a moment, when the records of the sessions that have just ended are written. */
  function soon(): void {
    clearTimeout(later)
    later = setTimeout(() => void round(), soon_ms)
    later.unref()
  }

  function pump(): void {
    for (const [tenant_id, jobs] of waiting) {
      if (over || playing.size >= atOnce) return
      if (playing.has(tenant_id)) continue
      const job = jobs.shift()
      // The next turn of this namespace comes after all others.
      waiting.delete(tenant_id)
      if (jobs.length > 0) waiting.set(tenant_id, jobs)
      if (!job) continue
      count--
      const done = index(job.name, job.most_ms)
        .catch((error: unknown) => {
          if (isGone(error)) return
          indexed.add('failed')
          throw error
        })
        .then(job.done.resolve, job.done.reject)
        .finally(() => {
          playing.delete(tenant_id)
          pump()
          if (count === 0 && playing.size === 0 && timer) soon()
        })
      playing.set(tenant_id, { session_uid: job.name.session_uid, done })
    }
  }

  /** Undefined: too many wait. */
  function enqueue(name: JournalName, most_ms = longestIndexing_ms): Promise<void> | undefined {
    if (over || count >= mostWaiting) return undefined
    const job: Job = { name, most_ms, done: Promise.withResolvers<void>() }
    const jobs = waiting.get(name.tenant_id) ?? []
    jobs.push(job)
    waiting.set(name.tenant_id, jobs)
    count++
    pump()
    return job.done.promise
  }

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
      const known = await indexing.call(longestIndexing_ms, 'known', tenant_id, uid)
      // Noted first: what ends the whole process counts as well.
      await queue.noteFailures(uid, (noted = failures + 1))
      for (const name of names) {
        const isKnown = known.some((one) => one.channel === name.channel && one.device_uid === device_uid)
        if (isKnown) continue
        const queued = enqueue(name, failures > 0 ? longestAlone_ms : longestIndexing_ms)
        if (!queued) return void (await queue.noteFailures(uid, failures))
        await queued
      }
      await save(undefined, 0)
    } catch (error) {
      // A trouble of the database or the disk does not count against this session.
      const count = error instanceof ThreadEnded && !over ? noted : failures
      if (over)
        return void (noted > failures && (await queue.noteFailures(uid, failures).catch(() => undefined)))
      onError(error, { tenant_id, session_uid: uid, channel: 0 })
      const isGivenUp = count >= mostFailures
      if (isGivenUp) {
        indexed.add('given up')
        onGivenUp(session)
      }
      await save(isGivenUp ? undefined : retry_ms, count).catch(onError)
    }
  }

  async function allDue(): Promise<void> {
    for (;;) {
      if (over || !hasRoom()) return
      const now = clock.now()
      const due = await queue.due(iso(now), iso(now + lease_ms), batch)
      await Promise.all(due.filter(({ index_failures }) => index_failures === 0).map(complete))
      // One of those that were there when the thread ended may have ended it: now they go one by one.
      for (const suspect of due.filter(({ index_failures }) => index_failures > 0)) await complete(suspect)
      if (due.length < batch) return
    }
  }

  const round = (): Promise<void> =>
    (rounding ??= allDue()
      .catch(onError)
      .finally(() => (rounding = undefined)))

  return {
    get waiting() {
      return count
    },
    indexed,
    ended(name) {
      if (hasRoom()) enqueue(name)?.catch((error: unknown) => over || onError(error, name))
    },
    start() {
      timer ??= setInterval(() => void round(), round_ms)
      timer.unref()
      void round()
    },
    round,
    async remove(tenant_id, session_uid) {
      const jobs = waiting.get(tenant_id) ?? []
      const left =
        session_uid === undefined ? [] : jobs.filter(({ name }) => name.session_uid !== session_uid)
      for (const job of jobs) if (!left.includes(job)) job.done.resolve()
      count -= jobs.length - left.length
      if (left.length > 0) waiting.set(tenant_id, left)
      else waiting.delete(tenant_id)
      await indexing.call(longestIndexing_ms, 'remove', tenant_id, session_uid)
      const played = playing.get(tenant_id)
      if (!played || (session_uid !== undefined && played.session_uid !== session_uid)) return
      // The thread notices that it was removed; it may have begun the recording a moment later.
      await played.done
      await indexing.call(longestIndexing_ms, 'remove', tenant_id, session_uid)
    },
    async namespaceChanged(tenant_id) {
      if (!(await queue.isOn(tenant_id))) await this.remove(tenant_id)
      else if (timer) void round()
    },
    async reindex(tenant_id) {
      await indexing.call(longestIndexing_ms, 'expire', tenant_id)
      await queue.markAll(tenant_id)
      if (timer) void round()
    },
    async find(query, signal) {
      const ask = () => asking.call(longestQuery_ms, 'find', query)
      const asked = questions.run(query.tenant_id, ask, { signal })
      if (!asked) throw new Failure('tooMany')
      try {
        return await asked
      } catch (cause) {
        if (!(cause instanceof ThreadEnded)) throw cause
        throw new Failure('unavailable', { message: 'The search took too long.', retryAfter: 5, cause })
      }
    },
    async [Symbol.asyncDispose]() {
      over = true
      clearInterval(timer)
      clearTimeout(later)
      // Not done: their sessions stay due.
      const ended = new ThreadEnded('the search has ended')
      for (const jobs of waiting.values()) for (const job of jobs) job.done.reject(ended)
      waiting.clear()
      await asking[Symbol.asyncDispose]()
      await indexing[Symbol.asyncDispose]()
      await rounding
    },
  }
}

/** The recording was removed meanwhile. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'
