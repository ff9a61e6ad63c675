// Watching a session while it goes on: first the screen as it is now, made from the journal, then everything that is written
// to the journal, as it comes. A viewer never slows the session down: what waits for one is bounded, and beyond that the
// viewer is let go.
import type { JournalEvent, JournalName, Size } from './journal.ts'
import type { Keep } from './keep/keep.ts'
import { shown } from './frames.ts'
import { events, placeBefore } from './reader.ts'
import { screen, unfinishedTail } from './screen.ts'
import type { JournalWriter } from './writer.ts'

/** Somebody who watches; nothing of it may throw. */
export interface Viewer {
  /** The terminal as it is now; comes once, first. */
  screen(size: Size, bytes: Buffer): void
  output(bytes: Buffer): void
  resize(size: Size): void
  /** The last word. */
  end(sentence: string): void
  /** Bytes that were given and have not left yet. */
  waiting(): number
}

/** All who watch one journal. */
export interface Audience {
  output(bytes: Uint8Array): void
  resize(size: Size): void
  end(sentence: string): void
  join(viewer: Viewer): Promise<Disposable>
}

/** Viewers of one journal. */
const mostViewers = 16
/** What may wait for one viewer. */
const mostWaiting_bytes = 4 * 1024 * 1024
/** What may come while the screen is drawn; with more it is drawn again, a few times. */
const mostMissed_bytes = 1024 * 1024
const tries = 4
/** Of a long recording the end is enough: what was before has long scrolled away. */
const replayed_bytes = 1024 * 1024
const together_bytes = 64 * 1024

export const slow = 'You were too slow to watch this session; look again.'

type Missed = { readonly bytes: Buffer } | { readonly size: Size }

interface Seat {
  readonly viewer: Viewer
  /** While the screen is drawn. */
  missed: Missed[] | undefined
  missed_bytes: number
}

export function audience(writer: JournalWriter, keep: Keep): Audience {
  const seats = new Set<Seat>()
  let over: string | undefined

  const drop = (seat: Seat, sentence: string): void => {
    if (seats.delete(seat)) seat.viewer.end(sentence)
  }

  /** False: more has come meanwhile than is kept. */
  async function draw(seat: Seat): Promise<boolean> {
    seat.missed = []
    seat.missed_bytes = 0
    const position = writer.output_bytes
    await writer.flush()
    const { size, bytes } = await drawn(keep, writer.name, writer, position)
    if (!seats.has(seat)) return true
    if (seat.missed_bytes > mostMissed_bytes) return false
    seat.viewer.screen(size, bytes)
    const { missed } = seat
    seat.missed = undefined
    for (const one of missed) {
      if ('bytes' in one) seat.viewer.output(one.bytes)
      else seat.viewer.resize(one.size)
    }
    return true
  }

  return {
    output(bytes) {
      if (seats.size === 0) return
      // Whoever called us may use its memory again.
      const copy = Buffer.from(bytes)
      for (const seat of seats) {
        if (!seat.missed) {
          seat.viewer.output(copy)
          if (seat.viewer.waiting() > mostWaiting_bytes) drop(seat, slow)
          continue
        }
        seat.missed_bytes += copy.length
        if (seat.missed_bytes <= mostMissed_bytes) seat.missed.push({ bytes: copy })
      }
    },
    resize(size) {
      for (const seat of seats) {
        if (seat.missed) seat.missed.push({ size })
        else seat.viewer.resize(size)
      }
    },
    end(sentence) {
      over = sentence
      for (const seat of seats) if (!seat.missed) drop(seat, sentence)
    },
    async join(viewer) {
      if (seats.size >= mostViewers) {
        viewer.end('Too many watch this session already.')
        return { [Symbol.dispose]: () => undefined }
      }
      const seat: Seat = { viewer, missed: [], missed_bytes: 0 }
      seats.add(seat)
      try {
        let ready = false
        for (let attempt = 0; attempt < tries && !ready; attempt++) ready = await draw(seat)
        if (!ready) drop(seat, slow)
        else if (over !== undefined) drop(seat, over)
      } catch (error) {
        seats.delete(seat)
        throw error
      }
      return { [Symbol.dispose]: () => void seats.delete(seat) }
    },
  }
}

/** The screen after the first `position` bytes of output. */
async function drawn(
  keep: Keep,
  name: JournalName,
  writer: Pick<JournalWriter, 'index'> & { readonly first: Size },
  position: number,
): Promise<{ size: Size; bytes: Buffer }> {
  const from = placeBefore(writer.index, (entry) => entry.output_bytes <= position - replayed_bytes)
  await using file = await keep.read(name)
  using terminal = screen(from ?? writer.first)
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
    if (count >= position && !isSize(event)) break
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
  return { size: terminal.size, bytes: Buffer.concat([terminal.drawn(), unfinishedTail(last)]) }
}

const isSize = (event: JournalEvent): boolean => event.kind === 'resize'
