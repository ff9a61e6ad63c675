// Live viewers of a session. A viewer first gets a snapshot of the screen, made from the journal, and then
// everything that is written to the journal. A viewer never slows the session down: the buffer of each viewer
// is bounded, and a viewer that exceeds it is disconnected.
import type { ScreenSnapshot } from './screen-snapshot.ts'
import type { Size } from './journal.ts'
import type { JournalWriter } from './writer.ts'

/** One viewer. None of its methods may throw. */
export interface Viewer {
  /** The present screen; called once, before anything else. */
  screen(size: Size, bytes: Buffer): void
  output(bytes: Buffer): void
  resize(size: Size): void
  /** The session is over, or the viewer is disconnected. */
  end(sentence: string): void
  /** Bytes that wait to be sent to the viewer. */
  waiting(): number
  /** Came to type, or by an invitation: those who supervise cannot take this place. */
  readonly isGuest?: boolean
  /** The viewer has left: nothing more is drawn for it. */
  readonly gone?: AbortSignal
}

/** All viewers of one journal. */
export interface Audience {
  output(bytes: Uint8Array): void
  resize(size: Size): void
  end(sentence: string): void
  join(viewer: Viewer): Promise<Disposable>
}

/** The most viewers of one journal; and the most guests beside them. */
const mostViewers = 16
/** The most that may wait for one viewer. */
const mostWaiting_bytes = 4 * 1024 * 1024
/** Output that may arrive while the snapshot is made; after more of it, another snapshot is tried. */
const mostMissed_bytes = 1024 * 1024
const tries = 4

export const slow = 'You were too slow to watch this session; try again.'

type Missed = { readonly bytes: Buffer } | { readonly size: Size }

/** A viewer and what it has missed so far. */
interface Seat {
  readonly viewer: Viewer
  /** Events since the snapshot was begun; undefined once the viewer has the snapshot. */
  missed: Missed[] | undefined
  missed_bytes: number
}

/** `snapshot`: the journal's screen after this many bytes of output. */
export function audience(
  writer: JournalWriter,
  snapshot: (output_bytes: number, gone: AbortSignal | undefined) => Promise<ScreenSnapshot>,
): Audience {
  const seats = new Set<Seat>()
  let over: string | undefined

  const drop = (seat: Seat, sentence: string): void => {
    if (seats.delete(seat)) seat.viewer.end(sentence)
  }

  /** Sends a snapshot and what came since; false: too much came meanwhile. */
  async function sendSnapshot(seat: Seat): Promise<boolean> {
    seat.missed = []
    seat.missed_bytes = 0
    const position = writer.output_bytes
    await writer.flush()
    const { size, bytes } = await snapshot(position, seat.viewer.gone)
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
      // The caller may reuse the memory.
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
      const isGuest = viewer.isGuest === true
      const alike = [...seats].filter((seat) => (seat.viewer.isGuest === true) === isGuest)
      if (alike.length >= mostViewers) {
        viewer.end('Too many watch this session already.')
        return { [Symbol.dispose]: () => undefined }
      }
      const seat: Seat = { viewer, missed: [], missed_bytes: 0 }
      seats.add(seat)
      try {
        let ready = false
        for (let attempt = 0; attempt < tries && !ready; attempt++) ready = await sendSnapshot(seat)
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
