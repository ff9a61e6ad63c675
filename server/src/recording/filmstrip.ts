// Some moments of a recording for small pictures: half of them by time, half by how much was shown, so that
// neither a long pause nor a flood of output takes all of them. A moment comes with the end of the output
// before it, which the browser plays into a terminal of its own; the server plays nothing. Programs that drew
// their screen long before lack some of it in the picture.
import { shown } from './frames.ts'
import type { IndexEntry, JournalEvent, Size } from './journal.ts'
import { events, placeBefore } from './reader.ts'
import type { Source } from './window.ts'

export interface RecordingMoment {
  readonly time_ms: number
  readonly size: Size
  /** The end of the output up to this moment. */
  readonly output: Buffer
}

/** For each moment: enough for some screens of coloured text. */
const output_bytes = 12 * 1024
/** How far into it a line or a sequence must begin, so that it does not begin within one. */
const within_bytes = 1024

interface Target {
  isBefore(entry: IndexEntry): boolean
  isBehind(event: JournalEvent, output_bytes: number): boolean
}

/** At most `most` moments, in order; fewer where nothing was shown between two of them. */
export async function filmstripOf(source: Source, most: number): Promise<RecordingMoment[]> {
  const byTime = Math.floor(most / 2)
  const targets: Target[] = []
  for (let number = 1; number <= byTime; number++) {
    const until_ms = (source.duration_ms * number) / byTime
    targets.push({
      isBefore: (entry) => entry.time_ms <= until_ms,
      isBehind: (event) => event.time_ms > until_ms,
    })
  }
  for (let number = 1; number <= most - byTime; number++) {
    const until = (source.output_bytes * number) / (most - byTime + 1)
    targets.push({ isBefore: (entry) => entry.output_bytes <= until, isBehind: (_, count) => count >= until })
  }
  /** Moments by the bytes of output before them: where nothing was shown between two, they are one. */
  const found = new Map<number, RecordingMoment>()
  for (const target of targets) {
    const { count, ...moment } = await momentAt(source, target)
    const known = found.get(count)
    if (moment.output.length > 0 && !(known && known.time_ms <= moment.time_ms)) found.set(count, moment)
  }
  return [...found.entries()].toSorted(([a], [b]) => a - b).map(([, moment]) => moment)
}

async function momentAt(
  { file, header, index }: Source,
  { isBefore, isBehind }: Target,
): Promise<RecordingMoment & { count: number }> {
  const near = placeBefore(index, isBefore)
  const from = near && placeBefore(index, (entry) => entry.output_bytes <= near.output_bytes - output_bytes)
  let size: Size = from ?? header
  let count = from?.output_bytes ?? 0
  let time_ms = from?.time_ms ?? 0
  let pieces: Buffer[] = []
  let kept = 0
  for await (const event of events(file, from)) {
    if (isBehind(event, count)) break
    if (event.kind === 'resize') size = { width: event.width, height: event.height }
    const bytes = shown(event)
    if (!bytes) continue
    time_ms = event.time_ms
    count += bytes.length
    // A copy: a slice would hold the memory of its whole block.
    pieces.push(Buffer.from(bytes.subarray(-output_bytes)))
    kept += Math.min(bytes.length, output_bytes)
    if (kept < 4 * output_bytes) continue
    pieces = [Buffer.concat(pieces).subarray(-output_bytes)]
    kept = output_bytes
  }
  return { time_ms, size, output: ending(Buffer.concat(pieces)), count }
}

function ending(output: Buffer): Buffer {
  if (output.length <= output_bytes) return output
  const last = output.subarray(-output_bytes)
  const head = last.subarray(0, within_bytes)
  const [line, sequence] = [head.indexOf(0x0a), head.indexOf(0x1b)]
  if (line >= 0) return last.subarray(line + 1)
  return sequence >= 0 ? last.subarray(sequence) : last
}
