// Journals that wait for their upload, a few at a time. A failed upload is retried with growing pauses.
import type { JournalName } from '../journal.ts'
import { isGone } from './s3.ts'

/** Fails an upload because another node finishes the journal. */
export class NotOwner extends Error {}

const uploadsAtOnce = 2
const firstWait_ms = 1_000
const longestWait_ms = 5 * 60_000
/** The pause between two checks whether another node has finished a journal. */
const theirs_ms = 10_000
/** The time limit of running uploads when the server stops. */
const farewell_ms = 5_000

export interface UploadQueueParts {
  /** Throws when the bucket does not have all of it afterwards. */
  send(name: JournalName, abort: AbortController): Promise<void>
  /** An upload failed and is retried. */
  onDelayed(error: Error, name: JournalName, again_ms: number): void
}

export const idOf = ({ tenant_id, session_uid, channel }: JournalName): string =>
  `${tenant_id}/${session_uid}/${channel}`

export function uploadQueue({ send, onDelayed }: UploadQueueParts) {
  const waiting = new Map<string, JournalName>()
  const sending = new Map<string, { abort: AbortController; done: Promise<void> }>()
  let wait_ms = firstWait_ms
  let timer: NodeJS.Timeout | undefined
  let over = false

  function start(id: string, name: JournalName): void {
    const abort = new AbortController()
    const done = send(name, abort).then(
      () => {
        waiting.delete(id)
        wait_ms = firstWait_ms
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        waiting.delete(id)
        // The journal was removed in between.
        if (isGone(error)) return
        if (error instanceof NotOwner) {
          setTimeout(() => add(name), theirs_ms).unref()
          return
        }
        onDelayed(error as Error, name, wait_ms)
        // The journal goes to the end of the queue: one that can never be uploaded must not delay the others.
        waiting.set(id, name)
        timer ??= setTimeout(resume, wait_ms)
        timer.unref()
        wait_ms = Math.min(longestWait_ms, wait_ms * 2)
      },
    )
    sending.set(id, { abort, done })
    void done.finally(() => {
      sending.delete(id)
      pump()
    })
  }

  function pump(): void {
    for (const [id, name] of waiting) {
      // After a failure all uploads wait: the bucket is down for all of them.
      if (over || timer !== undefined || sending.size >= uploadsAtOnce) return
      if (!sending.has(id)) start(id, name)
    }
  }

  function resume(): void {
    timer = undefined
    pump()
  }

  function add(name: JournalName): void {
    waiting.set(idOf(name), name)
    pump()
  }

  return {
    add,
    get waiting() {
      return waiting.size
    },
    async cancel(tenant_id: string, session_uid: string): Promise<void> {
      for (const [id, name] of waiting)
        if (name.session_uid === session_uid && name.tenant_id === tenant_id) waiting.delete(id)
      for (const [id, { abort, done }] of sending) {
        if (!id.startsWith(`${tenant_id}/${session_uid}/`)) continue
        abort.abort()
        await done
      }
    },
    async [Symbol.asyncDispose]() {
      over = true
      clearTimeout(timer)
      const impatience = setTimeout(() => {
        for (const { abort } of sending.values()) abort.abort()
      }, farewell_ms)
      await Promise.all([...sending.values()].map(({ done }) => done))
      clearTimeout(impatience)
    },
  }
}
