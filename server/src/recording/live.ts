// Live viewers of a session. A viewer first gets a snapshot of the screen, made from the journal, and then
// everything that is written to the journal. A viewer never slows the session down: the memory that waits for
// each viewer is bounded, and a viewer that exceeds it is disconnected.
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
  /** The memory of all messages that wait to be sent to the viewer: far more than their bytes if they are small. */
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
/** The most memory that may wait for one viewer. */
export const mostWaiting_bytes = 4 * 1024 * 1024
/** The most memory of what arrives while the snapshot is made; after more of it, another snapshot is tried. */
const mostMissed_bytes = 1024 * 1024
/** The memory of a change, beside the bytes of output in it. */
const change_bytes = 256
const tries = 4

export const slow = 'You were too slow to watch this session; try again.'

type Change = { readonly bytes: Buffer } | { readonly size: Size }

/** A viewer and what it has missed so far. */
interface Seat {
  readonly viewer: Viewer
  /** Changes since the snapshot was begun; undefined once the viewer has the snapshot. */
  missed: Change[] | undefined
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

  /** Everything for a viewer passes through here, so that all of it counts. */
  function show(seat: Seat, send: (viewer: Viewer) => void): void {
    if (!seats.has(seat)) return
    send(seat.viewer)
    if (seat.viewer.waiting() > mostWaiting_bytes) drop(seat, slow)
  }

  /** Shows a change now, or keeps it until the snapshot is made. */
  function tell(seat: Seat, change: Change): void {
    const { missed } = seat
    if (!missed)
      return show(seat, (viewer) => {
        if ('bytes' in change) viewer.output(change.bytes)
        else viewer.resize(change.size)
      })
    const last = missed.at(-1)
    // Where sizes follow each other without output between them, only the last one counts.
    if (last && 'size' in last && 'size' in change) missed.pop()
    else seat.missed_bytes += change_bytes + ('bytes' in change ? change.bytes.length : 0)
    if (seat.missed_bytes <= mostMissed_bytes) missed.push(change)
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
    show(seat, (viewer) => viewer.screen(size, bytes))
    const { missed } = seat
    seat.missed = undefined
    for (const change of missed) tell(seat, change)
    return true
  }

  return {
    output(bytes) {
      if (seats.size === 0) return
      // The caller may reuse the memory.
      const copy = Buffer.from(bytes)
      for (const seat of seats) tell(seat, { bytes: copy })
    },
    resize(size) {
      for (const seat of seats) tell(seat, { size })
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
