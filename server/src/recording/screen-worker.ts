// The thread that makes frames (screen-frame.ts) and looks into recordings. It keeps nothing: all that a
// frame is made of comes with the request, and journals are read by the server's thread, which knows where
// they are.
import { parentPort } from 'node:worker_threads'
import { Failure, invariant } from '@hawser/contract/failures'
import { calls, type Calls } from './calls.ts'
import { filmstripOf } from './filmstrip.ts'
import { JournalDamaged } from './journal.ts'
import { borrowed, type JournalReader } from './lent-journals.ts'
import { searchIn } from './search.ts'
import { nextFrame, type FrameRequest } from './screen-frame.ts'
import { giveWay } from './thread.ts'
import { unended } from './verify.ts'
import { partAt, partFrom, type Source } from './window.ts'

type Known = Omit<Source, 'file'>

/** Callers learn that a recording is damaged; where it is damaged is for the log. */
async function reading<T>(looking: Promise<T>): Promise<T> {
  try {
    return await looking
  } catch (error) {
    if (!(error instanceof JournalDamaged || error instanceof SyntaxError)) throw error
    throw new Failure('recordingDamaged', { cause: error })
  }
}
const source = (journal: number, known: Known): Source => ({ ...known, file: borrowed(server, journal) })

const offers = {
  async frame(request: FrameRequest) {
    const { frame, unfinished, ...rest } = await nextFrame(request)
    return { ...rest, frame: own(frame), unfinished: own(unfinished) }
  },
  unended: (journal: number) => reading(unended(borrowed(server, journal))),
  part: (journal: number, known: Known, where: { readonly at_ms: number } | { readonly from: number }) =>
    reading(
      'from' in where
        ? partFrom(source(journal, known), where.from)
        : partAt(source(journal, known), where.at_ms),
    ),
  filmstrip: (journal: number, known: Known, most: number) =>
    reading(filmstripOf(source(journal, known), most)),
  search: (journal: number, known: Known, text: string, from: number) =>
    reading(searchIn(source(journal, known), text, from)),
}
export type ScreenCalls = typeof offers

invariant(parentPort, 'this file is a worker')
giveWay()
const server: Calls<JournalReader> = calls<JournalReader>(parentPort, offers)

/** A copy: of bytes in shared memory, a session would hold all of that memory. */
function own(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}
