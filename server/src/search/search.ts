// Search over everything that recorded sessions showed. A recording is indexed when it ends; a round every
// half minute indexes what is still due. Threads of their own do all of the work (worker.ts).
import { Failure } from '@hawser/contract/failures'
import { beyond, sessionLimits } from '@hawser/contract/limits'
import { Counter } from '../kit/counter.ts'
import type { Clock } from '../kit/clock.ts'
import { concurrencyByKey } from '../kit/concurrency.ts'
import { thread, ThreadEnded } from '../recording/thread.ts'
import type { JournalName } from '../recording/journal.ts'
import { lentJournals } from '../recording/lent-journals.ts'
import { readHeader } from '../recording/reader.ts'
import type { Reading } from '../recording/storage/storage.ts'
import type { FoundLines, LineQuery } from './finding.ts'
import { indexQueue } from './index-queue.ts'
import { longestIndexing_ms, rounds, type DueSession, type SearchQueue } from './rounds.ts'
import type { IndexPlace, SearchThread } from './worker.ts'

export interface SearchParts {
  place: IndexPlace
  queue: SearchQueue
  journals: {
    read(name: JournalName): Promise<Reading>
    list(tenant_id: string, session_uid: string): Promise<JournalName[]>
  }
  clock: Clock
  /** Without room for the index, what is due waits. */
  hasRoom(): boolean
  onIndexed(name: JournalName, about: { lines: number; chars: number; result: string; ms: number }): void
  onError(error: unknown, name?: JournalName): void
  onGivenUp(session: DueSession): void
}

export interface Search extends AsyncDisposable {
  /** A recording has ended. */
  ended(name: JournalName): void
  /** Indexes what is due, now and regularly. */
  start(): void
  /** Indexes what is due now; resolves when it is done. */
  round(): Promise<void>
  remove(tenant_id: string, session_uid?: string): Promise<void>
  namespaceChanged(tenant_id: string): Promise<void>
  /** Indexes everything again, where this process indexes; the old index can be searched until then. */
  reindex(tenant_id?: string): Promise<void>
  /** `signal`: the caller has left. */
  find(query: LineQuery, signal?: AbortSignal): Promise<FoundLines>
  /** Recordings that wait for their turn. */
  readonly waiting: number
  readonly indexed: Counter<IndexResult>
}

export const indexResults = ['whole', 'cut', 'gone', 'failed', 'given up'] as const
export type IndexResult = (typeof indexResults)[number]

const round_ms = 30_000
const soon_ms = 1_000
const longestQuery_ms = 5_000
/**
 * Concurrent queries, and namespaces whose next query waits. They take turns, and the time of a query counts
 * from its turn.
 */
const queriesAtOnce = 2
const waitingNamespaces = 64

export function search(parts: SearchParts): Search {
  const { place, queue, journals, hasRoom, onIndexed, onError } = parts
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
  const questions = concurrencyByKey(sessionLimits.questions.max, {
    atOnce: queriesAtOnce,
    keys: waitingNamespaces,
  })
  const indexed = new Counter(indexResults)
  let over = false
  let timer: NodeJS.Timeout | undefined
  let later: NodeJS.Timeout | undefined

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

  /** Waits for the records of sessions that have just ended. */
  function soon(): void {
    clearTimeout(later)
    later = setTimeout(() => void due.run(), soon_ms)
    later.unref()
  }

  const recordings = indexQueue({
    index,
    onFailed: () => indexed.add('failed'),
    onIdle() {
      if (timer) soon()
    },
  })
  const due = rounds({
    ...parts,
    recordings,
    known: (tenant_id, uid) => indexing.call(longestIndexing_ms, 'known', tenant_id, uid),
    isOver: () => over,
    onGivenUp(session) {
      indexed.add('given up')
      parts.onGivenUp(session)
    },
  })

  return {
    get waiting() {
      return recordings.waiting
    },
    indexed,
    ended(name) {
      if (hasRoom())
        recordings.add(name, longestIndexing_ms)?.catch((error: unknown) => over || onError(error, name))
    },
    start() {
      timer ??= setInterval(() => void due.run(), round_ms)
      timer.unref()
      void due.run()
    },
    round: due.run,
    async remove(tenant_id, session_uid) {
      recordings.remove(tenant_id, session_uid)
      await indexing.call(longestIndexing_ms, 'remove', tenant_id, session_uid)
      const played = recordings.playing(tenant_id, session_uid)
      if (!played) return
      // The thread notices the removal, but it may have begun the recording a moment later.
      await played
      await indexing.call(longestIndexing_ms, 'remove', tenant_id, session_uid)
    },
    async namespaceChanged(tenant_id) {
      if (!(await queue.isOn(tenant_id))) await this.remove(tenant_id)
      else if (timer) void due.run()
    },
    async reindex(tenant_id) {
      await indexing.call(longestIndexing_ms, 'expire', tenant_id)
      await queue.markAll(tenant_id)
      if (timer) void due.run()
    },
    async find(query, signal) {
      const ask = () => asking.call(longestQuery_ms, 'find', query)
      const asked = questions.run(query.tenant_id, ask, { signal })
      if (!asked) throw beyond(sessionLimits.questions)
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
      // Their sessions stay due.
      const ended = new ThreadEnded('the search has ended')
      recordings.end(ended)
      await asking[Symbol.asyncDispose]()
      await indexing[Symbol.asyncDispose]()
      await due.ended()
    },
  }
}
