// The recorder of one channel: it hears what the gateway sees, and begins a recording when a program has a terminal and the
// namespace wants it so; switching that off ends the recording at once, switching it on begins one with what comes next.
// Only output is ever recorded. When it cannot be written, whoever was given is told, and decides by `onFailure` whether
// the output goes on without a record.
import type { Mark, Size } from './journal.ts'
import type { About, Recording, Recordings } from './recordings.ts'

export interface ChannelRecorder {
  /** It has a terminal from now on. */
  terminal(term: string, size: Size): void
  resize(size: Size): void
  /** The gateway shows this. */
  announcement(text: string): void
  program(program: string): void
  /** To be awaited before the bytes are passed on, where there is something to await. What it throws ends the channel. */
  output(bytes: Uint8Array): Promise<void> | undefined
  exit(how: { readonly status?: number; readonly signal?: string }): void
  close(): Promise<void>
}

/** All channels of one session. */
export interface SessionRecorder extends AsyncDisposable {
  channel(): ChannelRecorder
  /** The namespace's wish, from now on. */
  wanted(on: boolean): void
}

export interface RecorderParts {
  recordings: Pick<Recordings, 'begin'>
  about: Omit<About, keyof Size | 'term'>
  /** At the start; asked anew for each session. */
  wanted: boolean
  /** The first recording has begun. */
  onBegun(): void
  /** It cannot be recorded: told once, with the reason. */
  onFailed(error: Error): void
  /** `continue`: the output passes all the same. */
  onFailure?: 'end' | 'continue'
}

export class NotRecorded extends Error {
  override readonly name = 'NotRecorded'
}

export function sessionRecorder(parts: RecorderParts): SessionRecorder {
  const { recordings, about, onFailure = 'end' } = parts
  const channels = new Set<Switched>()
  let wanted = parts.wanted
  let failure: Error | undefined

  function fail(error: Error): void {
    if (failure) return
    failure = error
    parts.onFailed(error)
  }

  function channel(): Switched {
    let terminal: { term: string; size: Size } | undefined
    let program: string | undefined
    let shown: string | undefined
    let exit: Mark | undefined
    let begun = false
    let recording: Recording | undefined
    let starting: Promise<void> | undefined
    let over = false

    async function begin({ term, size }: { term: string; size: Size }): Promise<void> {
      try {
        const one = await recordings.begin({ ...about, term, ...size }, fail)
        // While it was begun the window may have changed, the wish too, or everything may be over.
        if (terminal && terminal.size !== size) one.resize(terminal.size)
        if (shown !== undefined && !begun) one.mark({ type: 'announcement', text: shown })
        if (program !== undefined) one.mark({ type: 'program', program })
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
      if (wanted && !over && !failure && terminal && program !== undefined && !recording) starting ??= begin(terminal)
    }
    const stop = async (): Promise<void> => {
      const ended = recording
      recording = undefined
      await ended?.finish()
    }
    const write = (bytes: Uint8Array): Promise<void> | undefined => {
      if (failure) {
        if (onFailure === 'continue') return undefined
        throw new NotRecorded('the session cannot be recorded', { cause: failure })
      }
      return recording?.output(bytes)
    }
    /** A failure has been told where it came from. */
    const passed = (error: unknown): void => {
      if (onFailure === 'end') throw new NotRecorded('the session cannot be recorded', { cause: error })
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
      program(name) {
        program = name
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
      async close() {
        over = true
        channels.delete(self)
        await starting
        if (exit) recording?.mark(exit)
        await stop()
      },
    }
    channels.add(self)
    return self
  }

  return {
    channel,
    wanted(on) {
      if (on === wanted) return
      wanted = on
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
