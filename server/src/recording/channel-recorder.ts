// The recorder of one channel of a session. Only output is recorded, with its secrets masked (masking.ts):
// input without an echo is never seen here. Viewers see the terminal's own screen until a secret is masked or
// the recording begins after other output: then a second screen shows only what is recorded.
import type { Mark, Size } from './journal.ts'
import { masker, type Masker } from './masking.ts'
import type { ShapeFinder } from './shape-finder.ts'
import type { About, Recording, Recordings } from './recordings.ts'
import type { TerminalScreen } from './terminal-screen.ts'

export interface ChannelRecorder {
  terminal(term: string, size: Size): void
  resize(size: Size): void
  /** Undefined: nothing is being recorded. */
  readonly channel: number | undefined
  /** Called when another person begins to type; `id`: of a user who joined. */
  typist(by: string, id?: string): void
  announcement(text: string): void
  /** `command`: of an exec. */
  program(program: string, command?: string): void
  /**
   * The caller awaits the promise, if there is one, before it passes the bytes on. An error ends the channel.
   */
  output(bytes: Uint8Array): Promise<void> | undefined
  /** Nobody sees the output from here on, or somebody does again. */
  interrupted(mark: Extract<Mark, { type: 'held' | 'resumed' }>): void
  exit(how: { readonly status?: number; readonly signal?: string }): void
  close(): Promise<void>
}

export interface SwitchableRecorder extends ChannelRecorder {
  /** Begins or ends the recording by the settings in force. */
  apply(): void
}

export interface RecordedSession {
  readonly recordings: Pick<Recordings, 'begin'>
  readonly about: Omit<About, keyof Size | 'term'>
  onBegun(): void
  /** The data budget of the device is used up, so a terminal is not recorded; may be called again. */
  onOverBudget(): void
  /** `count`: of the whole session. */
  onMasked?: ((count: number) => void) | undefined
  wanted: boolean
  /** The data budget of the device is the only reason why nothing is recorded. */
  overBudget: boolean
  /** Finds secrets; undefined: none is masked. */
  finder: ShapeFinder | undefined
  masked: number
  /** Why the session cannot be recorded, and whether it continues unrecorded. */
  failure: { readonly error: Error; readonly goesOn: boolean } | undefined
  fail(error: Error): void
  mask(text: string): string
  onClosed(channel: SwitchableRecorder): void
}

/** All of a command line waits in memory. */
const longest_command = 4_096

export class NotRecorded extends Error {
  override readonly name = 'NotRecorded'

  constructor(cause: Error) {
    super('the session cannot be recorded', { cause })
  }
}

export const channelRecorder = (
  session: RecordedSession,
  screen: () => TerminalScreen | undefined = () => undefined,
): SwitchableRecorder => new Recorder(session, screen)

class Recorder implements SwitchableRecorder {
  readonly #session: RecordedSession
  readonly #screen: () => TerminalScreen | undefined
  #hiding: { readonly finder: ShapeFinder; readonly masker: Masker } | undefined
  /** A second screen of what is recorded; undefined: the terminal's own serves. */
  #recordedScreen: TerminalScreen | undefined
  #hasUnrecorded = false
  #terminal: { term: string; size: Size } | undefined
  #program: Extract<Mark, { type: 'program' }> | undefined
  #announced: string | undefined
  #typist: Extract<Mark, { type: 'typist' }> | undefined
  /** The mark of the moment since which nobody sees the output. */
  #held: Mark | undefined
  #exit: Mark | undefined
  #hasBegun = false
  #recording: Recording | undefined
  #starting: Promise<void> | undefined
  #isOver = false
  #closing: Promise<void> | undefined

  constructor(session: RecordedSession, screen: () => TerminalScreen | undefined) {
    this.#session = session
    this.#screen = screen
  }

  terminal(term: string, size: Size): void {
    this.#terminal = { term, size }
  }

  resize(size: Size): void {
    if (!this.#terminal) return
    this.#terminal = { ...this.#terminal, size }
    this.#recordedScreen?.resize(size)
    this.#recording?.resize(size)
  }

  get channel(): number | undefined {
    return this.#recording?.name.channel
  }

  typist(by: string, id?: string): void {
    if (by === this.#typist?.by && id === this.#typist.id) return
    this.#typist = { type: 'typist', by, ...(id === undefined ? {} : { id }) }
    this.#recording?.mark(this.#typist)
  }

  announcement(text: string): void {
    this.#announced = text
    this.#recording?.mark({ type: 'announcement', text })
    for (const one of [this.#recordedScreen, this.#screen()]) one?.show(Buffer.from(text))
  }

  program(name: string, command?: string): void {
    const masked =
      command === undefined ? {} : { command: this.#session.mask(command.slice(0, longest_command)) }
    this.#program = { type: 'program', program: name, ...masked }
    this.apply()
  }

  output(bytes: Uint8Array): Promise<void> | undefined {
    const written = this.#starting ? this.#starting.then(() => this.#write(bytes)) : this.#write(bytes)
    return written?.catch((error: unknown) => {
      if (!this.#session.failure?.goesOn) throw new NotRecorded(error as Error)
    })
  }

  interrupted(mark: Extract<Mark, { type: 'held' | 'resumed' }>): void {
    this.#held = mark.type === 'held' ? mark : undefined
    this.#recording?.mark(mark)
  }

  exit(how: { readonly status?: number; readonly signal?: string }): void {
    this.#exit = { type: 'exit', ...how }
  }

  apply(): void {
    const { wanted, overBudget, failure, onOverBudget } = this.#session
    if (!wanted) void this.#stop()
    if (this.#isOver || !this.#terminal || !this.#program) return
    if (overBudget) onOverBudget()
    if (wanted && !failure && !this.#recording) this.#starting ??= this.#begin(this.#terminal)
  }

  async close(): Promise<void> {
    return (this.#closing ??= this.#finish())
  }

  async #begin({ term, size }: { term: string; size: Size }): Promise<void> {
    const session = this.#session
    try {
      const forViewers = (): TerminalScreen | undefined => this.#recordedScreen ?? this.#screen()
      if (this.#hasUnrecorded) this.#recordedScreen ??= this.#screen()?.blank()
      const about = { ...session.about, term, ...size }
      const one = await session.recordings.begin(about, session.fail, forViewers)
      // The window or the settings may have changed since, or the channel may be closed.
      if (this.#terminal && this.#terminal.size !== size) one.resize(this.#terminal.size)
      if (this.#announced !== undefined && !this.#hasBegun)
        one.mark({ type: 'announcement', text: this.#announced })
      for (const mark of [this.#program, this.#typist, this.#held]) if (mark) one.mark(mark)
      this.#hasBegun = true
      session.onBegun()
      if (this.#isOver || !session.wanted) await one.finish()
      else this.#recording = one
    } catch (error) {
      session.fail(error as Error)
    } finally {
      this.#starting = undefined
    }
  }

  #write(bytes: Uint8Array): Promise<void> | undefined {
    const { failure } = this.#session
    if (failure && !failure.goesOn) throw new NotRecorded(failure.error)
    if (failure || !this.#recording) {
      this.#hasUnrecorded = true
      this.#screen()?.show(bytes)
      return undefined
    }
    const shown = this.#hide(bytes)
    this.#recordedScreen?.show(shown)
    this.#screen()?.show(bytes)
    return this.#recording.output(shown)
  }

  #hide(bytes: Uint8Array): Uint8Array {
    const session = this.#session
    const { finder } = session
    if (!finder) return bytes
    if (this.#hiding?.finder !== finder) this.#hiding = { finder, masker: masker(finder) }
    const before = this.#hiding.masker.count
    const shown = this.#hiding.masker.mask(bytes)
    const found = this.#hiding.masker.count - before
    session.masked += found
    if (found > 0) session.onMasked?.(session.masked)
    if (shown !== bytes) this.#recordedScreen ??= this.#screen()?.fork()
    return shown
  }

  async #stop(): Promise<void> {
    const ended = this.#recording
    this.#recording = undefined
    await ended?.finish()
    this.#recordedScreen?.[Symbol.dispose]()
    this.#recordedScreen = undefined
  }

  async #finish(): Promise<void> {
    this.#isOver = true
    await this.#starting
    if (this.#exit) this.#recording?.mark(this.#exit)
    await this.#stop()
    // Last, because the end of the session waits for its channels.
    this.#session.onClosed(this)
  }
}
