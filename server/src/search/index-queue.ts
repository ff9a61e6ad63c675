// Recordings that wait to be indexed. Namespaces take turns; none has more than one recording played at a
// time.
import type { JournalName } from '../recording/journal.ts'

/** At most one of a namespace. */
const atOnce = 3
/** The next round takes the rest. */
const mostWaiting = 5_000

interface Job {
  readonly name: JournalName
  readonly most_ms: number
  readonly done: PromiseWithResolvers<void>
}

export interface IndexQueueParts {
  index(name: JournalName, most_ms: number): Promise<void>
  onFailed(): void
  /** Nothing waits and nothing is played. */
  onIdle(): void
}

export type IndexQueue = ReturnType<typeof indexQueue>

export function indexQueue({ index, onFailed, onIdle }: IndexQueueParts) {
  /** By namespace. */
  const waiting = new Map<string, Job[]>()
  /** Namespaces whose recording is being played, with its session. */
  const playing = new Map<string, { readonly session_uid: string; readonly done: Promise<void> }>()
  let count = 0
  let over = false

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
          onFailed()
          throw error
        })
        .then(job.done.resolve, job.done.reject)
        .finally(() => {
          playing.delete(tenant_id)
          pump()
          if (count === 0 && playing.size === 0) onIdle()
        })
      playing.set(tenant_id, { session_uid: job.name.session_uid, done })
    }
  }

  /** Undefined: too many wait. */
  function add(name: JournalName, most_ms: number): Promise<void> | undefined {
    if (over || count >= mostWaiting) return undefined
    const job: Job = { name, most_ms, done: Promise.withResolvers<void>() }
    const jobs = waiting.get(name.tenant_id) ?? []
    jobs.push(job)
    waiting.set(name.tenant_id, jobs)
    count++
    pump()
    return job.done.promise
  }

  return {
    add,
    get waiting() {
      return count
    },
    remove(tenant_id: string, session_uid?: string): void {
      const jobs = waiting.get(tenant_id) ?? []
      const left =
        session_uid === undefined ? [] : jobs.filter(({ name }) => name.session_uid !== session_uid)
      for (const job of jobs) if (!left.includes(job)) job.done.resolve()
      count -= jobs.length - left.length
      if (left.length > 0) waiting.set(tenant_id, left)
      else waiting.delete(tenant_id)
    },
    /** Resolves when the recording being played, of the session or of the namespace, has ended. */
    playing(tenant_id: string, session_uid?: string): Promise<void> | undefined {
      const played = playing.get(tenant_id)
      return session_uid === undefined || played?.session_uid === session_uid ? played?.done : undefined
    },
    end(why: Error): void {
      over = true
      for (const jobs of waiting.values()) for (const job of jobs) job.done.reject(why)
      waiting.clear()
    },
  }
}

/** The recording was removed in between. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'
