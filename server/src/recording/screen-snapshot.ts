// A snapshot of the screen at one moment of a journal: the output before that moment is replayed in a
// headless terminal. Reading begins at an entry of the index, so that a large recording takes as long as a
// small one. Terminals are slow: where the last output is nothing but lines that scroll by, only the visible
// ones are replayed.
import { shown } from './frames.ts'
import type { IndexEntry, Size } from './journal.ts'
import type { Reading } from './storage/storage.ts'
import { events, placeBefore } from './reader.ts'
import { screen, unfinishedTail } from './screen.ts'

/** How much output before the moment is replayed: full-screen programs redraw more often than that. */
const replayed_bytes = 512 * 1024
/** A new size counts as this much output. */
const resize_bytes = 256
/** When there are more, steps without a new size between them are joined. */
const mostSteps = 8_192
/** How much of the end is searched for plain lines; twice a screen of them is enough. */
const lines_bytes = 64 * 1024

export interface ScreenSnapshot {
  readonly size: Size
  /** Makes a terminal of that size show the same, and wait for the rest of an unfinished sequence. */
  readonly bytes: Buffer
  readonly output_bytes: number
}

/** `first`: the size of the terminal at the start. */
export async function snapshotAt(
  file: Reading,
  first: Size,
  index: readonly IndexEntry[],
  at_ms: number,
): Promise<ScreenSnapshot> {
  const near = placeBefore(index, (entry) => entry.time_ms <= at_ms)
  const from = near && placeBefore(index, (entry) => entry.output_bytes <= near.output_bytes - replayed_bytes)
  let start: Size = from ?? first
  let size = start
  let count = from?.output_bytes ?? 0
  let kept_bytes = 0
  let steps: (Buffer | Size)[] = []
  for await (const event of events(file, from)) {
    if (event.time_ms > at_ms) break
    if (event.kind === 'resize') {
      size = { width: event.width, height: event.height }
      // Where sizes follow each other without output between them, only the last one counts.
      const last = steps.at(-1)
      if (last && !Buffer.isBuffer(last)) steps.pop()
      else kept_bytes += resize_bytes
      steps.push(size)
    }
    const bytes = shown(event)
    if (!bytes) continue
    count += bytes.length
    kept_bytes += bytes.length
    steps.push(bytes)
    if (steps.length > mostSteps) steps = [...joined(steps)]
    if (kept_bytes < 2 * replayed_bytes) continue
    // Old steps are dropped now and then, not with every event.
    let dropped = 0
    for (; dropped < steps.length; dropped++) {
      const step = steps[dropped]!
      const step_bytes = Buffer.isBuffer(step) ? step.length : resize_bytes
      if (kept_bytes - step_bytes < replayed_bytes) break
      kept_bytes -= step_bytes
      if (!Buffer.isBuffer(step)) start = step
    }
    steps = steps.slice(dropped)
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
      if (pieces.length > 0) yield Buffer.concat(pieces)
      pieces = []
      yield step
    }
  }
  if (pieces.length > 0) yield Buffer.concat(pieces)
}

/**
 * The end of the output in which only lines were written below each other, if it is more than a screen and
 * colours were reset before the first visible line; undefined: the screen may show something older.
 */
function lastLines(output: Buffer, height: number): Buffer | undefined {
  if (output.length < 2 * lines_bytes) return undefined
  const end = output.subarray(-lines_bytes)
  const tail = end.subarray(end.indexOf(0x0a) + 1)
  const text = tail.toString('latin1')
  if (text.replaceAll(lineSequences, '').includes('\u001b')) return undefined
  // The first visible line stands behind this line feed.
  let visible = text.length
  for (let line = 0; line <= 2 * height && visible >= 0; line++) visible = text.lastIndexOf('\n', visible - 1)
  if (visible <= 0) return undefined
  if (!resets.test(text.slice(0, visible))) return undefined
  // Lines that scroll in a part of the screen, or on the other screen, leave something else as it is.
  return parted.test(output.toString('latin1')) ? undefined : tail
}

/**
 * The sequences that lines consist of besides text: colours, what stays within a line, and what does not
 * show.
 */
const lineSequences =
  // eslint-disable-next-line no-control-regex
  /\x1b\[[\d;:]*[mKCDPX@]|\x1b\[\?(?:25|12|2004)[hl]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[?[\d;]*$/g
// eslint-disable-next-line no-control-regex
const resets = /\x1b\[0?m/
// eslint-disable-next-line no-control-regex
const parted = /\x1b\[(?:\d*;\d+r|\?(?:47|1047|1049|6|69)[hl]|4h)/
