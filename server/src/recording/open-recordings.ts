// The recordings that this process writes: each is begun, counted against the quota, shown to viewers and finished.
import { defined } from '@hawser/contract/defined'
import { iso, type Clock } from '../kit/clock.ts'
import { flushSchedule } from './flush-schedule.ts'
import { Block, type Header, type JournalName, type Mark, type Size } from './journal.ts'
import type { RecordingKey } from './key.ts'
import { audience, type Viewer } from './live.ts'
import type { RecordingQuota } from './quota.ts'
import type { Appending, JournalStorage } from './storage/storage.ts'
import type { TerminalScreen } from './terminal-screen.ts'
import { journalWriter, type JournalWriter } from './writer.ts'

export interface About extends Size {
  readonly tenant_id: string
  readonly session_uid: string
  readonly device_uid: string
  readonly username: string
  /** Absent: unknown. */
  readonly person?: string | undefined
  readonly term: string
}

export interface Recording {
  readonly name: JournalName
  /** Undefined: continue at once. Throws or rejects once writing has failed. */
  output(bytes: Uint8Array): Promise<void> | undefined
  resize(size: Size): void
  mark(mark: Mark): void
  finish(): Promise<void>
  watch(viewer: Viewer): Promise<Disposable>
}

export interface OpenRecording extends Recording {
  readonly posted: boolean
  readonly writer: Pick<
    JournalWriter,
    'index' | 'interruptions' | 'duration_ms' | 'output_bytes' | 'unwritten_bytes'
  >
  flush(): Promise<void>
  failed: boolean
}

export interface OpenRecordingParts {
  storage: JournalStorage
  key: RecordingKey
  clock: Clock
  /** Absent: recordings may fill the disk. */
  quota?: RecordingQuota | undefined
  onFailed(error: Error, name: JournalName): void
  onEnded?(name: JournalName): void
}

export const unlimited: RecordingQuota = {
  begin: () => Promise.resolve(),
  take: () => undefined,
  freed: () => undefined,
  usage: () => Promise.resolve({ used_bytes: 0, quota_bytes: 0 }),
}

/** Counts the events against the quota, but not the end, so that the recorded part is whole. */
function within(quota: RecordingQuota, file: Appending): Appending {
  return {
    ...file,
    append(bytes) {
      const isEnd = bytes[0]?.[4] === Block.end
      if (!isEnd)
        quota.take(
          file.name.tenant_id,
          bytes.reduce((sum, piece) => sum + piece.length, 0),
        )
      return file.append(bytes)
    },
  }
}

export type OpenRecordings = ReturnType<typeof openRecordings>

export function openRecordings(parts: OpenRecordingParts) {
  const { storage, key, clock, quota = unlimited, onFailed } = parts
  const schedule = flushSchedule()
  const open = new Set<OpenRecording>()
  const finishing = new Set<Promise<void>>()

  async function begin(
    about: About,
    isPosted: boolean,
    onFailure: (error: Error) => void = () => undefined,
    screen?: () => TerminalScreen | undefined,
  ): Promise<OpenRecording> {
    const { tenant_id, session_uid } = about
    await quota.begin(tenant_id)
    const file = within(quota, await storage.create({ tenant_id, session_uid, channel: 0 }, isPosted))
    const { name } = file
    const failed = (error: Error): void => {
      one.failed = true
      viewers?.end('The session is no longer recorded.')
      onFailed(error, name)
      onFailure(error)
    }
    const writer = await journalWriter({
      file,
      header: headerOf(about, name, parts),
      key,
      clock,
      schedule,
      onFailed: failed,
    }).catch(async (error: unknown) => {
      await file.close(false).catch(() => undefined)
      await storage.discard(name).catch(() => undefined)
      throw error
    })
    const viewers = screen && audience(screen)
    let finished: Promise<void> | undefined
    const one: OpenRecording = {
      name,
      posted: isPosted,
      writer,
      failed: false,
      output(bytes) {
        const full = writer.output(bytes)
        viewers?.output(bytes)
        return full
      },
      resize(size) {
        writer.resize(size)
        viewers?.resize(size)
      },
      mark(mark) {
        writer.mark(mark)
        if (mark.type === 'announcement') viewers?.output(Buffer.from(mark.text))
      },
      flush: () => writer.flush(),
      finish() {
        finished ??= writer.finish().finally(() => {
          open.delete(one)
          finishing.delete(finished!)
          parts.onEnded?.(name)
        })
        finishing.add(finished)
        viewers?.end('The session is over.')
        return finished
      },
      async watch(viewer) {
        if (viewers) return viewers.join(viewer)
        viewer.end('The session cannot be shown.')
        return { [Symbol.dispose]: () => undefined }
      },
    }
    open.add(one)
    one.mark({ type: 'start' })
    return one
  }

  const of = (tenant_id: string, session_uid: string): OpenRecording[] =>
    [...open].filter(({ name }) => name.session_uid === session_uid && name.tenant_id === tenant_id)

  return {
    begin,
    of,
    find: (name: JournalName): OpenRecording | undefined =>
      of(name.tenant_id, name.session_uid).find((one) => one.name.channel === name.channel),
    get count() {
      return open.size
    },
    get unwritten_bytes() {
      return [...open].reduce((sum, { writer }) => sum + writer.unwritten_bytes, 0)
    },
    async [Symbol.asyncDispose]() {
      for (const one of open) void one.finish()
      await Promise.all(finishing)
      schedule[Symbol.dispose]()
    },
  }
}

const headerOf = (about: About, name: JournalName, { key, clock }: OpenRecordingParts): Header => ({
  version: 1,
  ...name,
  started_at: iso(clock.now()),
  device_uid: about.device_uid,
  username: about.username,
  ...defined({ person: about.person }),
  term: about.term,
  width: about.width,
  height: about.height,
  key: key.public_key,
})
