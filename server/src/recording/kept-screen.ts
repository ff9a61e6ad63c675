// The screen of a terminal, kept so that somebody who comes back can see it: a frame (screen-frame.ts) and
// the output since. While the session goes on this costs a copy of each byte. When much output has come, the
// thread makes the next frame of it. Lines that only scroll by are dropped without that, once there are more
// of them than are kept. The thread never slows a session down: when it falls behind, the oldest output is
// dropped, and full-screen programs are asked to draw anew by whoever brings the person back.
import type { Size } from './journal.ts'
import { bounded, isOutput, scrollback, type Frame, type ScreenStep } from './screen-frame.ts'
import type { FairShare } from '../kit/fair-share.ts'
import type { ScreenThread } from './screen-thread.ts'

export interface KeptScreen extends Disposable {
  /** Output; the caller may use the memory again. */
  show(bytes: Uint8Array): void
  resize(size: Size): void
  /**
   * Bytes that make a terminal of this size show the same, with the lines that scrolled by
   * if they are wanted.
   */
  redraw(size: Size, scrollback: boolean): Promise<Buffer>
  /** Makes the frame now, so that less memory is held and a redraw is quick. */
  settle(): Promise<void>
  /** Some output was dropped: the screen may lack something that was drawn long ago. */
  readonly isPartial: boolean
  readonly held_bytes: number
}

/**
 * What the screens of all terminals of this process take together, of live sessions as well as of held ones: room
 * for more than 900 terminals of one namespace, each with as much as one may keep when it is quiet.
 */
export const screens_bytes = 256 * 1024 * 1024

/** Output since the frame; more of it goes into the next frame. */
const most_bytes = 96 * 1024
const first_bytes = 2 * 1024
/** The largest frame. */
const mostFrame_bytes = 96 * 1024
/** Every screen may keep this much of the last output, however much all of them keep. */
const least_bytes = 4 * 1024
/** How much is kept of lines that only scroll by, beside the screen. */
const mostLines_bytes = 32 * 1024
/** A size counts as so much output. */
const resize_bytes = 256

export interface KeptScreenParts {
  readonly tenant_id: string
  readonly thread: Pick<ScreenThread, 'frame' | 'hasRoom'>
  /** Shared by all screens. */
  readonly memory: FairShare
}

export function keptScreen(first: Size, { tenant_id, thread, memory }: KeptScreenParts): KeptScreen {
  let frame: Buffer | undefined
  /** The size of the terminal when the frame was made, and its size now. */
  let frameSize = bounded(first)
  let size = frameSize
  /** Output and sizes that came before `tail`, oldest first. */
  let steps: ScreenStep[] = []
  let steps_bytes = 0
  let tail: Buffer = Buffer.alloc(0)
  let used = 0
  let making: Promise<void> | undefined
  /** The bytes that the next frame is being made of. */
  let making_bytes = 0
  let isPartial = false
  const over = new AbortController()
  /** Held memory, as far as it is counted. */
  let counted_bytes = 0

  /** All of the memory that is kept, not only the part of it that is used. */
  const held = (): number => heldBy([...(frame ? [frame] : []), tail, ...steps]) + making_bytes

  /** Counts what is held now; where there is no room for it, nothing is kept but the last output. */
  function count(): void {
    const more_bytes = held() - counted_bytes
    if (more_bytes > 0 && memory.take(tenant_id, more_bytes)) counted_bytes += more_bytes
    else if (more_bytes > 0 && held() > least_bytes) forget()
    const rest_bytes = held() - counted_bytes
    memory.count(tenant_id, rest_bytes)
    counted_bytes += rest_bytes
  }

  function forget(): void {
    isPartial = true
    frame = undefined
    frameSize = size
    steps = []
    steps_bytes = 0
    const last = Buffer.allocUnsafeSlow(Math.min(used, least_bytes / 2))
    tail.copy(last, 0, used - last.length, used)
    tail = last
    used = last.length
  }

  const sealTail = (): void => {
    if (used === 0) return
    const filled = tail.subarray(0, used)
    // A small part would keep all of the memory, which nobody counts then; and so would one in shared memory.
    steps.push(used > tail.length / 2 ? filled : new Uint8Array(filled))
    steps_bytes += used
    tail = Buffer.alloc(0)
    used = 0
  }

  /** Makes the next frame of all that has come so far. */
  async function make(): Promise<void> {
    sealTail()
    const taken = steps
    making_bytes = heldBy(taken)
    steps = []
    steps_bytes = 0
    try {
      const request = { size: frameSize, steps: taken, withScrollback: true, most_bytes: mostFrame_bytes }
      accept(await thread.frame(tenant_id, { ...request, frame }, { signal: over.signal }))
    } catch {
      // The thread failed: what was drawn before is lost.
      isPartial = true
    } finally {
      making = undefined
      making_bytes = 0
      count()
    }
  }
  function accept(made: Frame): void {
    if (over.signal.aborted) return
    if (made.isPartial) isPartial = true
    frame = made.frame
    frameSize = made.size
    if (made.unfinished.length === 0) return
    steps.unshift(made.unfinished)
    steps_bytes += made.unfinished.length
  }

  function makeRoom(): void {
    if (dropLines()) return
    if (!making && thread.hasRoom(tenant_id)) making = make()
    else if (steps_bytes + used > 2 * most_bytes) {
      isPartial = true
      sealTail()
      while (steps_bytes > most_bytes) {
        const [oldest] = steps.splice(0, 1)
        if (oldest && isOutput(oldest)) steps_bytes -= oldest.length
        else steps_bytes -= resize_bytes
      }
    }
  }

  /** Drops lines that scrolled out of all that is kept; false: the output does more than to write lines. */
  function dropLines(): boolean {
    const text = tail.toString('latin1', 0, used)
    if (beyondLines.test(text)) return false
    let from = used
    for (let lines = 0; from > 0 && lines <= scrollback + size.height; lines++) {
      if (used - from > mostLines_bytes && lines > 2 * size.height) break
      from = text.lastIndexOf('\r\n', from - 1)
    }
    // Much of it has to go, or this would be done again soon.
    if (from < used / 4) return false
    const colours = text.slice(0, from + 2).match(colour) ?? []
    const kept = colours
      .slice(
        Math.max(
          0,
          colours.findLastIndex((one) => resets.test(one)),
        ),
      )
      .join('')
    if (kept.length > mostColours) return false
    const rest = Buffer.concat([Buffer.from(kept, 'latin1'), tail.subarray(from + 2, used)])
    used = rest.copy(tail)
    return true
  }

  const append = (bytes: Uint8Array): void => {
    if (used + bytes.length > tail.length) {
      const grown = Buffer.allocUnsafeSlow(
        Math.max(first_bytes, Math.min(most_bytes, Math.max(2 * tail.length, used + bytes.length))),
      )
      tail.copy(grown, 0, 0, used)
      tail = grown
      tail.set(bytes, used)
      used += bytes.length
      return count()
    }
    tail.set(bytes, used)
    used += bytes.length
  }

  return {
    show(bytes) {
      if (over.signal.aborted) return
      for (let at = 0; at < bytes.length; at += most_bytes / 4) {
        const piece = bytes.subarray(at, at + most_bytes / 4)
        if (used + piece.length > most_bytes) makeRoom()
        if (used + piece.length > most_bytes) sealTail()
        append(piece)
      }
    },
    resize(to) {
      const next = bounded(to)
      if (over.signal.aborted) return
      if (next.width === size.width && next.height === size.height) return
      size = next
      sealTail()
      const last = steps.at(-1)
      // Where sizes follow each other without output between them, only the last one counts.
      if (last && !isOutput(last)) steps.pop()
      else steps_bytes += resize_bytes
      steps.push(next)
      if (steps_bytes > most_bytes) makeRoom()
      count()
    },
    async redraw(to, withScrollback) {
      await making
      sealTail()
      const resized = bounded(to)
      const drawn = {
        size: frameSize,
        steps: [...steps, resized],
        withScrollback,
        most_bytes: mostFrame_bytes,
      }
      const made = await thread.frame(tenant_id, { ...drawn, frame }, { first: true, signal: over.signal })
      if (made.isPartial) isPartial = true
      return made.frame
    },
    async settle() {
      await making
      if ((steps.length > 0 || used > 0) && thread.hasRoom(tenant_id)) await (making ??= make())
    },
    get isPartial() {
      return isPartial
    },
    get held_bytes() {
      return held()
    },
    [Symbol.dispose]() {
      over.abort(new Error('the screen is no longer needed'))
      frame = undefined
      steps = []
      steps_bytes = used = 0
      tail = Buffer.alloc(0)
      count()
    },
  }
}

const heldBy = (steps: readonly ScreenStep[]): number =>
  steps.reduce((sum, step) => sum + (isOutput(step) ? step.buffer.byteLength : resize_bytes), 0)

/** Finds anything but text, tabs, lines and colours. */
// eslint-disable-next-line no-control-regex
const beyondLines = /[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\x1b(?!\[[\d;:]*m)/
// eslint-disable-next-line no-control-regex
const colour = /\x1b\[[\d;:]*m/g
// eslint-disable-next-line no-control-regex
const resets = /\x1b\[0?m/
const mostColours = 1_024
