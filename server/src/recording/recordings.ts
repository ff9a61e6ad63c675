// The public interface of this folder: callers begin recordings here, read them in several forms, watch live
// ones and remove them. It contains no rule: callers decide what is recorded and who may see it.
import { concurrencyByKey } from '../kit/concurrency.ts'
import type { RecordingMoment } from './filmstrip.ts'
import type { PlayedFrame } from './frames.ts'
import type { Ending, JournalName, Size } from './journal.ts'
import { journalReads, type Facts } from './journal-reads.ts'
import {
  openRecordings,
  unlimited,
  type About,
  type OpenRecordingParts,
  type Recording,
} from './open-recordings.ts'
import { postedFrames, type Posted } from './posted-frames.ts'
import type { RecordingQuota } from './quota.ts'
import type { Searched } from './search.ts'
import type { Reading } from './storage/storage.ts'
import type { TerminalScreen } from './terminal-screen.ts'
import { closeJournal } from './verify.ts'
import type { Part } from './window.ts'

export type { About, Recording } from './open-recordings.ts'

export interface Recordings extends AsyncDisposable {
  /** `onFailed`: writing has failed. `screen`: what viewers see first, no later than it is recorded. */
  begin(
    about: About,
    onFailed?: (error: Error) => void,
    screen?: () => TerminalScreen | undefined,
  ): Promise<Recording>
  post(about: Omit<About, keyof Size>, frame: Posted): Promise<void>
  channels(tenant_id: string, session_uid: string): Promise<JournalName[]>
  /** With everything recorded so far. */
  read(name: JournalName): Promise<Reading>
  frames(name: JournalName): AsyncIterable<PlayedFrame>
  cast(name: JournalName): AsyncIterable<string>
  facts(name: JournalName): Promise<Facts>
  /** From a moment, with the screen as it was then, or from a position. */
  part(
    name: JournalName,
    where: { readonly at_ms: number } | { readonly from: number },
    signal?: AbortSignal,
  ): Promise<Part>
  /** At most `most` moments of a recording, for small pictures. */
  filmstrip(name: JournalName, most: number, signal?: AbortSignal): Promise<RecordingMoment[]>
  search(name: JournalName, text: string, from: number, signal?: AbortSignal): Promise<Searched>
  /** Newest last, without posted frames. */
  live(tenant_id: string, session_uid: string): Recording[]
  remove(tenant_id: string, session_uid: string): Promise<void>
  usage: RecordingQuota['usage']
  recover(onClosed: (name: JournalName, ending: Ending) => Promise<void>): Promise<void>
  /** Closes journals of lost nodes, as far as this node can read them. One round at a time. */
  inherit(onClosed: (name: JournalName, ending: Ending) => Promise<void>): Promise<void>
  readonly count: number
  readonly unwritten_bytes: number
}

export interface RecordingParts extends OpenRecordingParts {
  onRemoved?(tenant_id: string, session_uid: string): Promise<void>
}

type OnClosed = (name: JournalName, ending: Ending) => Promise<void>

const mostFrames = 1_000

export function recordings(parts: RecordingParts): Recordings {
  const { storage, quota = unlimited } = parts
  const open = openRecordings(parts)
  const posted = postedFrames(open)
  const reads = journalReads(storage, open)
  const bySession = concurrencyByKey(mostFrames)

  async function inTurn(session_uid: string, work: () => Promise<void>): Promise<void> {
    const done = bySession.run(session_uid, work)
    if (!done) throw new Error('too many frames of one session wait')
    await done
  }

  let inheriting = false

  return {
    get unwritten_bytes() {
      return open.unwritten_bytes
    },
    get count() {
      return open.count
    },
    begin: (about, onFailure, screen) => open.begin(about, false, onFailure, screen),
    usage: (tenant_id) => quota.usage(tenant_id),
    post: (about, frame) => inTurn(about.session_uid, () => posted.add(about, frame)),
    channels: (tenant_id, session_uid) => storage.list(tenant_id, session_uid),
    ...reads,
    live: (tenant_id, session_uid) =>
      open.of(tenant_id, session_uid).filter((one) => !one.posted && !one.failed),
    remove: (tenant_id, session_uid) =>
      inTurn(session_uid, async () => {
        await posted.close({ tenant_id, session_uid })
        reads.forget(session_uid)
        await storage.remove(tenant_id, session_uid)
        await parts.onRemoved?.(tenant_id, session_uid)
        quota.freed(tenant_id)
      }),
    async recover(onClosed) {
      for (const name of await storage.unfinished()) if (!open.find(name)) await close(parts, name, onClosed)
      await storage.resume?.()
    },
    async inherit(onClosed) {
      if (inheriting || !storage.inherited) return
      inheriting = true
      try {
        for (const name of await storage.inherited()) await close(parts, name, onClosed)
      } finally {
        inheriting = false
      }
    },
    async [Symbol.asyncDispose]() {
      await posted[Symbol.asyncDispose]()
      await open[Symbol.asyncDispose]()
      await reads[Symbol.asyncDispose]()
    },
  }
}

async function close(
  { storage, key, clock, onEnded, onFailed }: RecordingParts,
  name: JournalName,
  onClosed: OnClosed,
): Promise<void> {
  try {
    const file = await storage.reopen(name)
    const closed = await closeJournal(file, key, clock)
    if (!closed) {
      await file.close(false)
      await storage.discard(name)
    } else {
      await onClosed(name, closed.ending)
      onEnded?.(name)
    }
  } catch (error) {
    // The journal was removed in between; only its mark is left.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') await storage.discard(name)
    else onFailed(error as Error, name)
  }
}
