// The recorder of a session's channels. The gateway passes on what it sees; the recorder begins a recording
// when a program has a terminal and the namespace wants its sessions recorded. Switching that off ends a
// recording at once, switching it on begins one with the next output. Only output is ever recorded, with its
// secrets masked (masking.ts): what is typed while the terminal does not echo is never seen here. When a
// recording cannot be written, the session ends, or goes on unrecorded where the namespace chose so;
// `onFailed` says which.
import type { Mark, Size } from './journal.ts'
import { masker, type Masker } from './masking.ts'
import { finderOf, type ShapeFinder } from './shape-finder.ts'
import type { About, Recording, Recordings } from './recordings.ts'

export interface ChannelRecorder {
  /** The channel has a terminal from now on. */
  terminal(term: string, size: Size): void
  resize(size: Size): void
  /** The channel of the recording; undefined: nothing is recorded now. */
  readonly channel: number | undefined
  /** This person types from now on; `id`: of a user who joined. */
  typist(by: string, id?: string): void
  /** The gateway shows this text to the client. */
  announcement(text: string): void
  /** `command`: of an exec. */
  program(program: string, command?: string): void
  /**
   * Records output. The caller awaits the promise, if there is one, before it passes the bytes on. An error
   * ends the channel.
   */
  output(bytes: Uint8Array): Promise<void> | undefined
  /** Nobody sees what is shown from now on, or somebody does again. */
  interrupted(mark: Extract<Mark, { type: 'held' | 'resumed' }>): void
  exit(how: { readonly status?: number; readonly signal?: string }): void
  close(): Promise<void>
}

/** All channels of one session. */
export interface SessionRecorder extends AsyncDisposable {
  channel(): ChannelRecorder
  /** The text with its secrets masked, where the namespace masks them. */
  mask(text: string): string
  /** The settings of the namespace have changed. */
  apply(settings: RecordingSettings): void
}

/** How a namespace wants its sessions recorded. */
export interface RecordingSettings {
  readonly record: boolean
  /** Nothing is recorded only because the device's data budget is used up. Such a session says so. */
  readonly overBudget?: boolean
  /** Whether a session that cannot be recorded goes on. */
  readonly continueUnrecorded: boolean
  /**
   * Texts before secrets of the namespace's own, beside those that are masked everywhere;
   * false: none is masked.
   */
  readonly mask?: readonly string[] | false
}

export interface RecorderParts {
  recordings: Pick<Recordings, 'begin'>
  about: Omit<About, keyof Size | 'term'>
  /** The settings at the start of the session. */
  settings: RecordingSettings
  /** The first recording has begun. */
  onBegun(): void
  /** A terminal is not recorded, because the data budget of the device is used up; may be called again. */
  onOverBudget(): void
  /** So many secrets were masked so far, in all channels. */
  onMasked?(count: number): void
  /** The session cannot be recorded; called once, with the reason and whether the session goes on. */
  onFailed(error: Error, goesOn: boolean): void
}

/** The most characters of a command line that are recorded; all of it waits in memory. */
const longest_command = 4_096

export class NotRecorded extends Error {
  override readonly name = 'NotRecorded'
}

export function sessionRecorder(parts: RecorderParts): SessionRecorder {
  const { recordings, about } = parts
  const channels = new Set<SwitchableRecorder>()
  let { record: wanted, overBudget = false, continueUnrecorded } = parts.settings
  /** Finds secrets; undefined: none is masked. */
  let finder = finderOf(parts.settings.mask)
  /** Secrets that were masked so far. */
  let masked = 0
  let failure: Error | undefined
  /** `continueUnrecorded` at the moment of the failure: a later change does not end the session. */
  let goesOn = false

  function fail(error: Error): void {
    if (failure) return
    failure = error
    goesOn = continueUnrecorded
    parts.onFailed(error, goesOn)
  }

  const maskedText = (text: string): string =>
    finder ? Buffer.from(masker(finder).mask(Buffer.from(text))).toString() : text

  function channel(): SwitchableRecorder {
    let hiding: { readonly finder: ShapeFinder; readonly masker: Masker } | undefined
    /** Masks the secrets in these bytes. */
    const hide = (bytes: Uint8Array): Uint8Array => {
      if (!finder) return bytes
      if (hiding?.finder !== finder) hiding = { finder, masker: masker(finder) }
      const before = hiding.masker.count
      const shown = hiding.masker.mask(bytes)
      masked += hiding.masker.count - before
      if (hiding.masker.count > before) parts.onMasked?.(masked)
      return shown
    }
    let terminal: { term: string; size: Size } | undefined
    let program: Extract<Mark, { type: 'program' }> | undefined
    let shown: string | undefined
    let typist: Extract<Mark, { type: 'typist' }> | undefined
    /** Nobody sees what is shown now. */
    let held: Mark | undefined
    let exit: Mark | undefined
    let begun = false
    let recording: Recording | undefined
    let starting: Promise<void> | undefined
    let over = false
    let closing: Promise<void> | undefined

    async function begin({ term, size }: { term: string; size: Size }): Promise<void> {
      try {
        const one = await recordings.begin({ ...about, term, ...size }, fail)
        // Meanwhile the window or the settings may have changed, or the channel may be closed.
        if (terminal && terminal.size !== size) one.resize(terminal.size)
        if (shown !== undefined && !begun) one.mark({ type: 'announcement', text: shown })
        if (program) one.mark(program)
        if (typist) one.mark(typist)
        if (held) one.mark(held)
        begun = true
        parts.onBegun()
        if (over || !wanted) await one.finish()
        else recording = one
      } catch (error) {
        fail(error as Error)
      } finally {
        starting = undefined
      }
    }
    const consider = (): void => {
      if (over || !terminal || !program) return
      if (overBudget) parts.onOverBudget()
      if (wanted && !failure && !recording) starting ??= begin(terminal)
    }
    const stop = async (): Promise<void> => {
      const ended = recording
      recording = undefined
      await ended?.finish()
    }
    const write = (bytes: Uint8Array): Promise<void> | undefined => {
      if (failure) {
        if (goesOn) return undefined
        throw new NotRecorded('the session cannot be recorded', { cause: failure })
      }
      return recording?.output(hide(bytes))
    }
    /** `fail` has reported the error already. */
    const unlessGoingOn = (error: unknown): void => {
      if (!goesOn) throw new NotRecorded('the session cannot be recorded', { cause: error })
    }

    const finish = async (): Promise<void> => {
      over = true
      await starting
      if (exit) recording?.mark(exit)
      await stop()
      // The channel leaves the set last, because the end of the session waits for the channels in it.
      channels.delete(self)
    }

    const self: SwitchableRecorder = {
      terminal(term, size) {
        terminal = { term, size }
      },
      resize(size) {
        if (!terminal) return
        terminal = { ...terminal, size }
        recording?.resize(size)
      },
      get channel() {
        return recording?.name.channel
      },
      typist(by, id) {
        if (by === typist?.by && id === typist.id) return
        typist = { type: 'typist', by, ...(id === undefined ? {} : { id }) }
        recording?.mark(typist)
      },
      announcement(text) {
        shown = text
        recording?.mark({ type: 'announcement', text })
      },
      program(name, command) {
        program = {
          type: 'program',
          program: name,
          ...(command === undefined ? {} : { command: maskedText(command.slice(0, longest_command)) }),
        }
        consider()
      },
      output(bytes) {
        if (starting) return starting.then(() => write(bytes)).catch(unlessGoingOn)
        return write(bytes)?.catch(unlessGoingOn)
      },
      interrupted(mark) {
        held = mark.type === 'held' ? mark : undefined
        recording?.mark(mark)
      },
      exit(how) {
        exit = { type: 'exit', ...how }
      },
      apply() {
        if (!wanted) void stop()
        consider()
      },
      close: () => (closing ??= finish()),
    }
    channels.add(self)
    return self
  }

  return {
    channel,
    mask: maskedText,
    apply({ record, ...settings }) {
      continueUnrecorded = settings.continueUnrecorded
      finder = finderOf(settings.mask)
      if (record === wanted && overBudget === (settings.overBudget ?? false)) return
      wanted = record
      overBudget = settings.overBudget ?? false
      for (const one of channels) one.apply()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels].map((one) => one.close()))
    },
  }
}

interface SwitchableRecorder extends ChannelRecorder {
  /** Begins or ends the recording as the settings now say. */
  apply(): void
}
