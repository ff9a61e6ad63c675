// Live viewers of a terminal. A viewer first gets the screen, and then everything that is recorded. A viewer never
// slows the session down: the memory that waits for each viewer is bounded, and a viewer that exceeds it is
// disconnected.
import { sessionLimits } from '@hawser/contract/limits'
import type { Size } from './journal.ts'
import type { TerminalScreen } from './terminal-screen.ts'

/** One viewer. None of its methods may throw. */
export interface Viewer {
  /** Called once, before anything else. */
  screen(size: Size, bytes: Buffer): void
  output(bytes: Buffer): void
  resize(size: Size): void
  end(sentence: string): void
  /** The memory of all messages that wait for the viewer: small messages take far more than their bytes. */
  waiting(): number
  /** Came to type, or by an invitation: supervisors cannot take this place. */
  readonly isGuest?: boolean
  /** The viewer has left: drawing for it stops. */
  readonly gone?: AbortSignal
}

export interface Audience {
  output(bytes: Uint8Array): void
  resize(size: Size): void
  end(sentence: string): void
  join(viewer: Viewer): Promise<Disposable>
}

export const mostWaiting_bytes = 4 * 1024 * 1024
/** Bounds what arrives while the snapshot is made; beyond it, another snapshot is tried. */
const mostMissed_bytes = 1024 * 1024
/** The memory of a change, without its bytes of output. */
const change_bytes = 256
const tries = 4

export const slow = 'Your connection was too slow to watch this session; try again.'

type Change = { readonly bytes: Buffer } | { readonly size: Size }

interface Seat {
  readonly viewer: Viewer
  /** Undefined once the viewer has the snapshot. */
  missed: Change[] | undefined
  missed_bytes: number
}

/** `screen`: the first thing that viewers see; undefined: there is none any longer. */
export function audience(screen: () => TerminalScreen | undefined): Audience {
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

  /** Sends the screen and the changes since; false: there were too many. */
  async function sendScreen(seat: Seat): Promise<boolean> {
    seat.missed = []
    seat.missed_bytes = 0
    // A copy: the terminal's own screen continues while this one is drawn.
    using shown = screen()?.fork()
    if (!shown) return false
    const { size } = shown
    const bytes = await shown.redraw(size, false, seat.viewer.gone)
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
      if (alike.length >= sessionLimits.viewers.max) {
        viewer.end(sessionLimits.viewers.message)
        return { [Symbol.dispose]: () => undefined }
      }
      const seat: Seat = { viewer, missed: [], missed_bytes: 0 }
      seats.add(seat)
      try {
        let ready = false
        for (let attempt = 0; attempt < tries && !ready; attempt++) ready = await sendScreen(seat)
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
