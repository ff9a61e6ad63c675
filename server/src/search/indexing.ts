// Indexes one recording: reads its journal, plays it, and adds its passages a few at a time, so that neither
// memory nor a transaction grows with the recording. A damaged recording is indexed up to the damage. Its
// cost is bounded.
import type { Reading } from '../recording/storage/storage.ts'
import { JournalDamaged } from '../recording/journal.ts'
import { events, readHeader } from '../recording/reader.ts'
import { transcriptOf } from '../recording/transcript.ts'
import type { IndexedRecording, NewPassage, SearchIndex } from '../storage/search/search-index.ts'
import { PassageMaker } from './passages.ts'

/** Output that is played; an hour of a busy session has ten to twenty megabytes. */
const most_bytes = 512 * 1024 * 1024
const mostLines = 2_000_000
/** Passages in one transaction. */
const batch = 16

export interface IndexedLines {
  readonly lines: number
  readonly chars: number
  /** `cut`: the recording is damaged or too large, and not all of it is indexed; `gone`: it was removed. */
  readonly result: 'whole' | 'cut' | 'gone'
}

export async function indexRecording(
  index: SearchIndex,
  recording: IndexedRecording,
  file: Reading,
): Promise<IndexedLines> {
  const id = await index.begin(recording)
  if (id === undefined) return { lines: 0, chars: 0, result: 'gone' }
  const maker = new PassageMaker()
  let passages: NewPassage[] = []
  let [lines, chars] = [0, 0]
  let cut = false
  const add = async (least: number): Promise<boolean> => {
    if (passages.length < least) return true
    const some = passages
    passages = []
    return index.add(id, some)
  }
  try {
    const header = await readHeader(file)
    for await (const some of transcriptOf(header, events(file), { most_bytes })) {
      for (const line of some) {
        lines++
        chars += line.text.length
        const full = maker.add(line)
        if (full) passages.push(full)
      }
      if (!(await add(batch))) return { lines, chars, result: 'gone' }
      if (lines < mostLines) continue
      cut = true
      break
    }
  } catch (error) {
    if (!(error instanceof JournalDamaged || error instanceof SyntaxError)) throw error
    cut = true
  }
  const last = maker.take()
  if (last) passages.push(last)
  if (!(await add(1))) return { lines, chars, result: 'gone' }
  await index.finish(id)
  return { lines, chars, result: cut ? 'cut' : 'whole' }
}
