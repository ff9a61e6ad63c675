// Journals of frames that an agent has recorded itself and posts one by one. A journal is closed after a while
// without a frame; the next frame begins another.
import { BoundedMap } from '../kit/bounded-map.ts'
import { minute_ms } from '../kit/clock.ts'
import type { Size } from './journal.ts'
import type { About, OpenRecording, OpenRecordings } from './open-recordings.ts'

export interface Posted extends Size {
  readonly message: string
}

/** How long a journal stays open without a frame. */
const idle_ms = 5 * minute_ms
const mostPosted = 500

interface PostedRecording {
  readonly recording: OpenRecording
  size: Size
  readonly idle: NodeJS.Timeout
}

const idOf = ({ tenant_id, session_uid }: Pick<About, 'tenant_id' | 'session_uid'>): string =>
  `${tenant_id}.${session_uid}`

export function postedFrames({ begin }: Pick<OpenRecordings, 'begin'>) {
  const posted = new BoundedMap<string, PostedRecording>(mostPosted)

  async function close(id: string): Promise<void> {
    const found = posted.get(id)
    posted.delete(id)
    await finish(found)
  }

  async function finish(found: PostedRecording | undefined): Promise<void> {
    clearTimeout(found?.idle)
    await found?.recording.finish()
  }

  async function add(about: Omit<About, keyof Size>, { message, width, height }: Posted): Promise<void> {
    const id = idOf(about)
    let found = posted.get(id)
    if (found?.recording.failed) {
      await close(id)
      found = undefined
    }
    if (!found) {
      const idle = setTimeout(() => void close(id), idle_ms)
      idle.unref()
      try {
        found = { recording: await begin({ ...about, width, height }, true), size: { width, height }, idle }
      } catch (error) {
        clearTimeout(idle)
        throw error
      }
    }
    await finish(posted.set(id, found))
    found.idle.refresh()
    if (found.size.width !== width || found.size.height !== height)
      found.recording.resize((found.size = { width, height }))
    await found.recording.output(Buffer.from(message))
    // The caller may read the frame as soon as this resolves.
    await found.recording.flush()
  }

  return {
    add,
    close: (session: Pick<About, 'tenant_id' | 'session_uid'>) => close(idOf(session)),
    async [Symbol.asyncDispose]() {
      for (const id of posted.keys()) await close(id)
    },
  }
}
