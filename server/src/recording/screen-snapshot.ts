// A snapshot of the screen at one position of a journal: the output before that position is replayed in a
// headless terminal. Reading begins at an entry of the index, so that a large recording takes as long as a
// small one. Terminals are slow: where the last output is nothing but lines that scroll by, only the visible
// ones are replayed.
import { shown } from './frames.ts'
import type { IndexEntry, JournalEvent, Size } from './journal.ts'
import type { Reading } from './storage/storage.ts'
import { events, placeBefore } from './reader.ts'
import { screen, unfinishedTail } from './screen.ts'

/** How much output before the position is replayed: full-screen programs redraw more often than that. */
const replayed_bytes = 512 * 1024
/** How much of the end is searched for plain lines; twice a screen of them is enough. */
const lines_bytes = 64 * 1024

export interface ScreenSnapshot {
  readonly size: Size
  /** Makes a terminal of that size show the same, and wait for the rest of an unfinished sequence. */
  readonly bytes: Buffer
  /** The output before the position. */
  readonly output_bytes: number
}

export interface SnapshotPosition {
  /** The size of the terminal at the start. */
  readonly first: Size
  readonly index: readonly IndexEntry[]
  /** Whether an entry of the index is at or before the position. */
  isBefore(entry: IndexEntry): boolean
  /** Whether an event, with this much output before it, is behind the position. */
  isBehind(event: JournalEvent, output_bytes: number): boolean
}

export async function snapshotAt(
  file: Reading,
  { first, index, isBefore, isBehind }: SnapshotPosition,
): Promise<ScreenSnapshot> {
  const near = placeBefore(index, isBefore)
  const from = near && placeBefore(index, (entry) => entry.output_bytes <= near.output_bytes - replayed_bytes)
  let start: Size = from ?? first
  let size = start
  let count = from?.output_bytes ?? 0
  let kept_bytes = 0
  let steps: (Buffer | Size)[] = []
  for await (const event of events(file, from)) {
    if (isBehind(event, count)) break
    if (event.kind === 'resize') {
      size = { width: event.width, height: event.height }
      // Where sizes follow each other without output between them, only the last one counts.
      const last = steps.at(-1)
      if (last && !Buffer.isBuffer(last)) steps.pop()
      steps.push(size)
    }
    const bytes = shown(event)
    if (!bytes) continue
    count += bytes.length
    kept_bytes += bytes.length
    steps.push(bytes)
    if (kept_bytes < 2 * replayed_bytes) continue
    // Old steps are dropped now and then, not with every event.
    for (let dropped = 0; dropped < steps.length; dropped++) {
      const step = steps[dropped]!
      if (!Buffer.isBuffer(step)) start = step
      else if (kept_bytes - step.length < replayed_bytes) {
        steps = steps.slice(dropped)
        break
      } else kept_bytes -= step.length
    }
  }
  const resized = steps.findLastIndex((step) => !Buffer.isBuffer(step))
  const latest = Buffer.concat(steps.slice(resized + 1).filter((step) => Buffer.isBuffer(step)))
  const lines = lastLines(latest, size.height)
  using terminal = screen(lines ? size : start)
  if (lines) await terminal.show(lines)
  else {
    for (const step of joined(steps)) {
      if (Buffer.isBuffer(step)) await terminal.show(step)
      else terminal.resize(step)
    }
  }
  return {
    size: terminal.size,
    bytes: Buffer.concat([terminal.snapshot(), unfinishedTail(latest.subarray(-4_096))]),
    output_bytes: count,
  }
}

/** Joins consecutive outputs: the terminal takes a turn of the event loop for each write. */
function* joined(steps: readonly (Buffer | Size)[]): Generator<Buffer | Size> {
  let pieces: Buffer[] = []
  for (const step of steps) {
    if (Buffer.isBuffer(step)) pieces.push(step)
    else {
      yield Buffer.concat(pieces)
      pieces = []
      yield step
    }
  }
  yield Buffer.concat(pieces)
}

/**
 * The end of the output from which on nothing was done but to write lines below each other, if that is more
 * than a screen and colours were set back before the first line that can be seen; undefined: the screen may
 * show something older.
 */
function lastLines(output: Buffer, height: number): Buffer | undefined {
  if (output.length < 2 * lines_bytes) return undefined
  const end = output.subarray(-lines_bytes)
  const tail = end.subarray(end.indexOf(0x0a) + 1)
  const text = tail.toString('latin1')
  if (text.replaceAll(lineSequences, '').includes('\u001b')) return undefined
  // The first of those that can be seen stands behind this line feed.
  let visible = text.length
  for (let line = 0; line <= 2 * height && visible >= 0; line++) visible = text.lastIndexOf('\n', visible - 1)
  if (visible <= 0) return undefined
  if (!resets.test(text.slice(0, visible))) return undefined
  // Lines that scroll in a part of the screen, or on the other screen, leave something else as it is.
  return parted.test(output.toString('latin1')) ? undefined : tail
}

/**
 * Colours, what stays within its line, and what a terminal does not show: of these, and text, lines are made.
 */
const lineSequences =
  // eslint-disable-next-line no-control-regex
  /\x1b\[[\d;:]*[mKCDPX@]|\x1b\[\?(?:25|12|2004)[hl]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[?[\d;]*$/g
// eslint-disable-next-line no-control-regex
const resets = /\x1b\[0?m/
// eslint-disable-next-line no-control-regex
const parted = /\x1b\[(?:\d*;\d+r|\?(?:47|1047|1049|6|69)[hl]|4h)/
