// Watching a session while it goes on: first the screen as it is now, made from the journal, then everything
// that is written to the journal, as it comes. A viewer never slows the session down: what waits for one is
// bounded, and beyond that the viewer is let go.
import { drawnAt } from './screen-snapshot.ts'
import type { Size } from './journal.ts'
import type { Keep } from './storage/storage.ts'
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
    await using file = await keep.read(writer.name)
    const { size, bytes } = await drawnAt(file, {
      first: writer.first,
      index: writer.index,
      isBefore: (entry) => entry.output_bytes <= position,
      isBehind: (event, count) => count >= position && event.kind !== 'resize',
    })
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
