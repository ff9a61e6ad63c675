// The recorder of one channel: it hears what the gateway sees, and begins a recording when a program has a
// terminal and the namespace wants it so; switching that off ends the recording at once, switching it on
// begins one with what comes next. Only output is ever recorded. When it cannot be written the session ends,
// or goes on without a record where the namespace chose so; whoever asked for the recorder is told.
import type { Mark, Size } from './journal.ts'
import type { About, Recording, Recordings } from './recordings.ts'

export interface ChannelRecorder {
  /** It has a terminal from now on. */
  terminal(term: string, size: Size): void
  resize(size: Size): void
  /** The gateway shows this. */
  announcement(text: string): void
  /** `command`: of an exec. */
  program(program: string, command?: string): void
  /**
   * To be awaited before the bytes are passed on, where there is something to await. What it throws ends the
   * channel.
   */
  output(bytes: Uint8Array): Promise<void> | undefined
  exit(how: { readonly status?: number; readonly signal?: string }): void
  close(): Promise<void>
}

/** All channels of one session. */
export interface SessionRecorder extends AsyncDisposable {
  channel(): ChannelRecorder
  /** The namespace's wishes, from now on. */
  wanted(wish: Wish): void
}

export interface Wish {
  readonly record: boolean
  /** What cannot be recorded passes all the same; otherwise it ends. */
  readonly continueUnrecorded: boolean
}

export interface RecorderParts {
  recordings: Pick<Recordings, 'begin'>
  about: Omit<About, keyof Size | 'term'>
  /** At the start; asked anew for each session. */
  wanted: Wish
  /** The first recording has begun. */
  onBegun(): void
  /** It cannot be recorded: told once, with the reason, and whether it goes on. */
  onFailed(error: Error, goesOn: boolean): void
}

/** Of a command line, in characters: the rest says little, and all of it waits in memory. */
const longest_command = 4_096

export class NotRecorded extends Error {
  override readonly name = 'NotRecorded'
}

export function sessionRecorder(parts: RecorderParts): SessionRecorder {
  const { recordings, about } = parts
  const channels = new Set<Switched>()
  let { record: wanted, continueUnrecorded } = parts.wanted
  let failure: Error | undefined
  /** What was so when it failed: who went on is not ended because the wish changes afterwards. */
  let goesOn = false

  function fail(error: Error): void {
    if (failure) return
    failure = error
    goesOn = continueUnrecorded
    parts.onFailed(error, goesOn)
  }

  function channel(): Switched {
    let terminal: { term: string; size: Size } | undefined
    let program: Extract<Mark, { type: 'program' }> | undefined
    let shown: string | undefined
    let exit: Mark | undefined
    let begun = false
    let recording: Recording | undefined
    let starting: Promise<void> | undefined
    let over = false
    let closing: Promise<void> | undefined

    async function begin({ term, size }: { term: string; size: Size }): Promise<void> {
      try {
        const one = await recordings.begin({ ...about, term, ...size }, fail)
        // While it was begun the window may have changed, the wish too, or everything may be over.
        if (terminal && terminal.size !== size) one.resize(terminal.size)
        if (shown !== undefined && !begun) one.mark({ type: 'announcement', text: shown })
        if (program) one.mark(program)
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
      if (wanted && !over && !failure && terminal && program && !recording) starting ??= begin(terminal)
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
      return recording?.output(bytes)
    }
    /** A failure has been told where it came from. */
    const passed = (error: unknown): void => {
      if (!goesOn) throw new NotRecorded('the session cannot be recorded', { cause: error })
    }

    const finish = async (): Promise<void> => {
      over = true
      await starting
      if (exit) recording?.mark(exit)
      await stop()
      // Only now: whoever ends the session waits for those that are still here.
      channels.delete(self)
    }

    const self: Switched = {
      terminal(term, size) {
        terminal = { term, size }
      },
      resize(size) {
        if (!terminal) return
        terminal = { ...terminal, size }
        recording?.resize(size)
      },
      announcement(text) {
        shown = text
        recording?.mark({ type: 'announcement', text })
      },
      program(name, command) {
        program = {
          type: 'program',
          program: name,
          ...(command === undefined ? {} : { command: command.slice(0, longest_command) }),
        }
        consider()
      },
      output(bytes) {
        if (starting) return starting.then(() => write(bytes)).catch(passed)
        return write(bytes)?.catch(passed)
      },
      exit(how) {
        exit = { type: 'exit', ...how }
      },
      wanted() {
        if (wanted) consider()
        else void stop()
      },
      close: () => (closing ??= finish()),
    }
    channels.add(self)
    return self
  }

  return {
    channel,
    wanted({ record, ...wish }) {
      continueUnrecorded = wish.continueUnrecorded
      if (record === wanted) return
      wanted = record
      for (const one of channels) one.wanted()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels].map((one) => one.close()))
    },
  }
}

interface Switched extends ChannelRecorder {
  wanted(): void
}
