// Passes the output of a program to its reader as it is read. Reading stops while two pieces wait, so that a
// slow reader slows the program. All output of the program is passed on, also after its end. Processes that it
// left behind may hold its output open for ever. sshd waits for them; we wait while output arrives, for at most
// the size of a pipe, since the program's own last output is no more than that.
import type { OnReadOpts } from 'node:net'
import type { Readable } from 'node:stream'
import { copyOf, giveBack, readBuffer } from './read-memory.ts'

/** Silence after the end of the program, not counting the time that the reader takes. */
const silence_ms = 1_000
/** The most that the kernel lets a pipe hold (fs.pipe-max-size). */
const leftover_bytes = 1024 * 1024
/** Pieces that may wait for the reader: one is written while the next is read. */
const mostWaiting = 2

/** An output of a program. Reading begins with `read`. */
export class Output {
  readonly #stream: Readable
  #take: (bytes: Buffer) => boolean = () => false

  /** `open`: opens a socket with these options, or a stream of Node's own where there is none. */
  constructor(open: (onread: OnReadOpts) => Readable) {
    const callback = (count: number): boolean => this.#take(readBuffer.subarray(0, count))
    // A socket begins to read when it is made.
    this.#stream = open({ buffer: readBuffer, callback }).pause()
    // A terminal without programs gives an error (EIO) instead of an end. `close` comes after both.
    this.#stream.on('error', () => undefined)
  }

  /**
   * `take` gets bytes that are good until it returns; false stops the reading until `resume`. `onEnd` is
   * called once, after the last bytes.
   */
  read(take: (bytes: Buffer) => boolean, onEnd: () => void): void {
    if (this.#stream.destroyed) return onEnd()
    this.#take = take
    this.#stream.once('close', onEnd)
    // Only streams that do not read into the same memory.
    this.#stream.on('data', (bytes: Buffer) => {
      if (!take(bytes)) this.#stream.pause()
    })
    this.#stream.resume()
  }

  resume(): void {
    this.#stream.resume()
  }

  close(): void {
    this.#stream.destroy()
  }
}

/** Both functions throw, or reject, when the reader is gone. */
export interface OutputReader {
  /** Takes as many bytes as it can at once, and returns their number. */
  takeNow(bytes: Buffer): number
  /** Resolves when all bytes are taken. */
  take(bytes: Buffer): Promise<void>
}

/** Resolves at the end of the output; rejects when the reader is gone. Either way the output is closed. */
export function passOutput(output: Output, ended: Promise<unknown>, reader: OutputReader): Promise<void> {
  const passing = new Passing(output, reader)
  void ended.then(() => passing.onProgramEnded())
  return passing.done
}

class Passing {
  readonly #output: Output
  readonly #reader: OutputReader
  readonly #done = Promise.withResolvers<void>()
  /** Pieces that the reader has not taken yet. */
  #waiting = 0
  /** Reading has stopped because too many pieces wait. */
  #stopped = false
  #ended = false
  /** The program has ended; from here on, how much more is passed. */
  #over = false
  #left_bytes = leftover_bytes
  /** Ends the reading when nothing comes after the end of the program. */
  #silence: NodeJS.Timeout | undefined

  constructor(output: Output, reader: OutputReader) {
    this.#output = output
    this.#reader = reader
    output.read(
      (bytes) => this.#take(bytes),
      () => this.#onEnd(),
    )
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  onProgramEnded(): void {
    this.#over = true
    this.#watchSilence()
  }

  #take(bytes: Buffer): boolean {
    try {
      const taken = this.#waiting === 0 ? this.#reader.takeNow(bytes) : 0
      if (taken < bytes.length) this.#handCopy(bytes.subarray(taken))
    } catch (error) {
      this.#onGone(error)
      return false
    }
    if (this.#over) {
      this.#watchSilence()
      this.#left_bytes -= bytes.length
      if (this.#left_bytes <= 0) this.#output.close()
    }
    this.#stopped = this.#waiting >= mostWaiting
    return !this.#stopped
  }

  #handCopy(bytes: Buffer): void {
    const copy = copyOf(bytes)
    this.#waiting += 1
    this.#reader.take(copy).then(
      () => this.#onTaken(copy),
      (error: unknown) => this.#onGone(error),
    )
  }

  #onTaken(copy: Buffer): void {
    giveBack(copy)
    this.#waiting -= 1
    if (this.#ended) return this.#finish()
    if (this.#stopped) this.#output.resume()
    this.#stopped = false
    if (this.#over) this.#watchSilence()
  }

  #onGone(error: unknown): void {
    this.#done.reject(error)
    this.#output.close()
  }

  #onEnd(): void {
    this.#ended = true
    clearTimeout(this.#silence)
    this.#finish()
  }

  #finish(): void {
    if (this.#waiting === 0) this.#done.resolve()
  }

  #watchSilence(): void {
    clearTimeout(this.#silence)
    if (this.#waiting === 0 && !this.#ended)
      this.#silence = setTimeout(() => this.#output.close(), silence_ms)
  }
}
