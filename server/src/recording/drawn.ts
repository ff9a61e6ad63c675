// The screen of a journal at one of its places: the last of what was shown before it is played into a terminal without a
// window. Reading begins at a place of the index, so that it takes as long for a large recording as for a small one.
import { shown } from './frames.ts'
import type { IndexEntry, JournalEvent, Size } from './journal.ts'
import type { Reading } from './keep/keep.ts'
import { events, placeBefore } from './reader.ts'
import { screen, unfinishedTail } from './screen.ts'

/** Of a long recording the end is enough: what was before has long scrolled away. */
const replayed_bytes = 1024 * 1024
const together_bytes = 64 * 1024

export interface Drawn {
  readonly size: Size
  /** They bring a terminal of that size to show the same, and to wait for what was not whole yet. */
  readonly bytes: Buffer
  /** Output that was shown by then. */
  readonly output_bytes: number
}

export interface Place {
  /** Of the terminal at the start. */
  readonly first: Size
  readonly index: readonly IndexEntry[]
  /** Whether the place of the index is not behind the one that is wanted. */
  isBefore(entry: IndexEntry): boolean
  /** Whether the event, with so much output before it, is behind the place. */
  isBehind(event: JournalEvent, output_bytes: number): boolean
}

export async function drawnAt(file: Reading, { first, index, isBefore, isBehind }: Place): Promise<Drawn> {
  const near = placeBefore(index, isBefore)
  const from = near && placeBefore(index, (entry) => entry.output_bytes <= near.output_bytes - replayed_bytes)
  using terminal = screen(from ?? first)
  let count = from?.output_bytes ?? 0
  let last: Buffer = Buffer.alloc(0)
  // Together: the terminal takes a turn of the event loop for whatever it is given.
  let pieces: Buffer[] = []
  let pieces_bytes = 0
  const show = async (): Promise<void> => {
    const bytes = Buffer.concat(pieces)
    pieces = []
    pieces_bytes = 0
    last = Buffer.concat([last.subarray(-4_096), bytes])
    await terminal.show(bytes)
  }
  for await (const event of events(file, from)) {
    if (isBehind(event, count)) break
    if (event.kind === 'resize') {
      await show()
      terminal.resize(event)
    }
    const bytes = shown(event)
    if (!bytes) continue
    count += bytes.length
    pieces.push(bytes)
    pieces_bytes += bytes.length
    if (pieces_bytes >= together_bytes) await show()
  }
  await show()
  return { size: terminal.size, bytes: Buffer.concat([terminal.drawn(), unfinishedTail(last)]), output_bytes: count }
}
