// The screen of a terminal, for its person when they reattach and for viewers when they come: a frame
// (screen-frame.ts) and the output since. While output passes this costs a copy of each byte. When much output has
// come, the thread makes the next frame of it. Lines that only scroll by are dropped without that, once there are more
// of them than are kept. The thread never slows a session down: when it falls behind, the oldest output is dropped,
// and the screen is partial until full-screen programs have drawn anew.
import type { Size } from './journal.ts'
import { bounded, isOutput, scrollback, type Frame, type ScreenStep } from './screen-frame.ts'
import type { FairShare } from '../kit/fair-share.ts'
import type { ScreenThread } from './screen-thread.ts'

export interface TerminalScreen extends Disposable {
  /** Output; the caller may use the memory again. */
  show(bytes: Uint8Array): void
  resize(size: Size): void
  /**
   * Bytes that make a terminal of this size show the same, with scrolled lines if wanted. The signal drops
   * the work.
   */
  redraw(size: Size, scrollback: boolean, signal?: AbortSignal): Promise<Buffer>
  /** Another screen with the same content. */
  fork(): TerminalScreen
  /** An empty screen of this size. */
  blank(): TerminalScreen
  readonly size: Size
  /** Makes the frame now, so that less memory is held and a redraw is quick. */
  settle(): Promise<void>
  /** Some output was dropped: the screen may lack something that was drawn long ago. */
  readonly isPartial: boolean
  readonly held_bytes: number
}

/**
 * For the screens of all terminals of this process, live and held: room for more than 900 terminals of one
 * namespace, each with as much as a quiet one may hold.
 */
export const screens_bytes = 256 * 1024 * 1024

/** Output since the frame; more of it goes into the next frame. */
const most_bytes = 96 * 1024
const first_bytes = 2 * 1024
const mostFrame_bytes = 96 * 1024
/** For every screen, however much all of them hold. */
const least_bytes = 4 * 1024
/** For lines that only scroll by, without the screen. */
const mostLines_bytes = 32 * 1024
/** A new size counts as this much output. */
const resize_bytes = 256

export interface TerminalScreenParts {
  readonly tenant_id: string
  readonly thread: Pick<ScreenThread, 'frame' | 'hasRoom'>
  /** Shared by all screens. */
  readonly memory: FairShare
}

/** The held form of a screen. */
interface Shown {
  readonly frame: Buffer | undefined
  readonly frameSize: Size
  readonly steps: readonly ScreenStep[]
  readonly isPartial: boolean
}

export const terminalScreen = (size: Size, parts: TerminalScreenParts): TerminalScreen =>
  new Screen(size, parts)

class Screen implements TerminalScreen {
  readonly #parts: TerminalScreenParts
  #frame: Buffer | undefined
  /** The size of the terminal when the frame was made, and its size now. */
  #frameSize: Size
  #size: Size
  /** Output and sizes before the tail, oldest first. */
  #steps: ScreenStep[]
  #steps_bytes: number
  #tail: Buffer = Buffer.alloc(0)
  #used = 0
  #making: Promise<void> | undefined
  /** The steps of the next frame. */
  #taken: ScreenStep[] = []
  #isPartial: boolean
  readonly #over = new AbortController()
  /** Held memory, as far as it is counted. */
  #counted_bytes = 0

  constructor(size: Size, parts: TerminalScreenParts, shown?: Shown) {
    this.#parts = parts
    this.#size = bounded(size)
    this.#frame = shown?.frame
    this.#frameSize = shown?.frameSize ?? this.#size
    this.#steps = [...(shown?.steps ?? [])]
    this.#steps_bytes = heldBy(this.#steps)
    this.#isPartial = shown?.isPartial ?? false
    this.#count()
  }

  show(bytes: Uint8Array): void {
    if (this.#over.signal.aborted) return
    for (let at = 0; at < bytes.length; at += most_bytes / 4) {
      const piece = bytes.subarray(at, at + most_bytes / 4)
      if (this.#used + piece.length > most_bytes) this.#makeRoom()
      if (this.#used + piece.length > most_bytes) this.#sealTail()
      this.#append(piece)
    }
  }

  resize(to: Size): void {
    const next = bounded(to)
    if (this.#over.signal.aborted) return
    if (next.width === this.#size.width && next.height === this.#size.height) return
    this.#size = next
    this.#sealTail()
    const last = this.#steps.at(-1)
    // Where sizes follow each other without output between them, only the last one counts.
    if (last && !isOutput(last)) this.#steps.pop()
    else this.#steps_bytes += resize_bytes
    this.#steps.push(next)
    if (this.#steps_bytes > most_bytes) this.#makeRoom()
    this.#count()
  }

  async redraw(size: Size, withScrollback: boolean, gone?: AbortSignal): Promise<Buffer> {
    await this.#making
    this.#sealTail()
    const steps = [...this.#steps, bounded(size)]
    const signal = gone ? AbortSignal.any([this.#over.signal, gone]) : this.#over.signal
    const made = await this.#draw(steps, withScrollback, { first: true, signal })
    if (made.isPartial) this.#isPartial = true
    // The rest of an unfinished sequence is still to come.
    return Buffer.concat([made.frame, made.unfinished])
  }

  fork(): TerminalScreen {
    this.#sealTail()
    return new Screen(this.#size, this.#parts, {
      frame: this.#frame,
      frameSize: this.#frameSize,
      steps: [...this.#taken, ...this.#steps],
      isPartial: this.#isPartial,
    })
  }

  blank(): TerminalScreen {
    return new Screen(this.#size, this.#parts)
  }

  get size(): Size {
    return this.#size
  }
  get isPartial(): boolean {
    return this.#isPartial
  }
  /** All of the held memory, not only its used part. */
  get held_bytes(): number {
    const frame = this.#frame ? [this.#frame] : []
    return heldBy([...frame, this.#tail, ...this.#taken, ...this.#steps])
  }

  async settle(): Promise<void> {
    await this.#making
    const isAny = this.#steps.length > 0 || this.#used > 0
    if (isAny && this.#hasRoom()) await (this.#making ??= this.#make())
  }

  [Symbol.dispose](): void {
    this.#over.abort(new Error('the screen is no longer needed'))
    this.#frame = undefined
    this.#steps = []
    this.#steps_bytes = this.#used = 0
    this.#tail = Buffer.alloc(0)
    this.#count()
  }

  /** Counts the held memory; without room for it, only the last output stays. */
  #count(): void {
    const { memory, tenant_id } = this.#parts
    const more_bytes = this.held_bytes - this.#counted_bytes
    if (more_bytes > 0 && memory.take(tenant_id, more_bytes)) this.#counted_bytes += more_bytes
    else if (more_bytes > 0 && this.held_bytes > least_bytes) this.#forget()
    const rest_bytes = this.held_bytes - this.#counted_bytes
    memory.count(tenant_id, rest_bytes)
    this.#counted_bytes += rest_bytes
  }

  #forget(): void {
    this.#isPartial = true
    this.#frame = undefined
    this.#frameSize = this.#size
    this.#steps = []
    this.#steps_bytes = 0
    const last = Buffer.allocUnsafeSlow(Math.min(this.#used, least_bytes / 2))
    this.#tail.copy(last, 0, this.#used - last.length, this.#used)
    this.#tail = last
    this.#used = last.length
  }

  #sealTail(): void {
    if (this.#used === 0) return
    const filled = this.#tail.subarray(0, this.#used)
    // A small part would hold all of the memory, uncounted; and so would one in shared memory.
    this.#steps.push(this.#used > this.#tail.length / 2 ? filled : new Uint8Array(filled))
    this.#steps_bytes += this.#used
    this.#tail = Buffer.alloc(0)
    this.#used = 0
  }

  #append(bytes: Uint8Array): void {
    const used = this.#used + bytes.length
    const isGrowing = used > this.#tail.length
    if (isGrowing) {
      const capacity = Math.max(first_bytes, Math.min(most_bytes, Math.max(2 * this.#tail.length, used)))
      const grown = Buffer.allocUnsafeSlow(capacity)
      this.#tail.copy(grown, 0, 0, this.#used)
      this.#tail = grown
    }
    this.#tail.set(bytes, this.#used)
    this.#used = used
    if (isGrowing) this.#count()
  }

  #hasRoom(): boolean {
    return this.#parts.thread.hasRoom(this.#parts.tenant_id)
  }

  async #draw(
    steps: readonly ScreenStep[],
    withScrollback: boolean,
    how: { readonly first?: boolean; readonly signal: AbortSignal },
  ): Promise<Frame> {
    const request = { size: this.#frameSize, steps, withScrollback, most_bytes: mostFrame_bytes }
    return this.#parts.thread.frame(this.#parts.tenant_id, { ...request, frame: this.#frame }, how)
  }

  async #make(): Promise<void> {
    this.#sealTail()
    this.#taken = this.#steps
    this.#steps = []
    this.#steps_bytes = 0
    try {
      this.#accept(await this.#draw(this.#taken, true, { signal: this.#over.signal }))
    } catch {
      // The thread failed: what was drawn before is lost.
      this.#isPartial = true
    } finally {
      this.#making = undefined
      this.#taken = []
      this.#count()
    }
  }

  #accept(made: Frame): void {
    if (this.#over.signal.aborted) return
    if (made.isPartial) this.#isPartial = true
    this.#frame = made.frame
    this.#frameSize = made.size
    if (made.unfinished.length === 0) return
    this.#steps.unshift(made.unfinished)
    this.#steps_bytes += made.unfinished.length
  }

  #makeRoom(): void {
    if (this.#dropLines()) return
    if (!this.#making && this.#hasRoom()) this.#making = this.#make()
    else if (this.#steps_bytes + this.#used > 2 * most_bytes) {
      this.#isPartial = true
      this.#sealTail()
      while (this.#steps_bytes > most_bytes) {
        const [oldest] = this.#steps.splice(0, 1)
        this.#steps_bytes -= oldest && isOutput(oldest) ? oldest.length : resize_bytes
      }
    }
  }

  /** Drops lines that have scrolled out; false: the output does more than write lines. */
  #dropLines(): boolean {
    const used = this.#used
    const text = this.#tail.toString('latin1', 0, used)
    if (beyondLines.test(text)) return false
    const { height } = this.#size
    let from = used
    for (let lines = 0; from > 0 && lines <= scrollback + height; lines++) {
      if (used - from > mostLines_bytes && lines > 2 * height) break
      from = text.lastIndexOf('\r\n', from - 1)
    }
    // Much of it has to go, or this would be repeated soon.
    if (from < used / 4) return false
    const colours = text.slice(0, from + 2).match(colour) ?? []
    const sinceReset = Math.max(
      0,
      colours.findLastIndex((one) => resets.test(one)),
    )
    const kept = colours.slice(sinceReset).join('')
    if (kept.length > mostColours) return false
    const rest = Buffer.concat([Buffer.from(kept, 'latin1'), this.#tail.subarray(from + 2, used)])
    this.#used = rest.copy(this.#tail)
    return true
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
