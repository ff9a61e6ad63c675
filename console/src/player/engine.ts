// The playback of a recording. It fetches windows of the recording as they are needed and writes events to
// the display when they are due. It depends on neither React nor the page. A seek asks the server for the
// screen at that moment; of several seeks in a row only the last counts.
import type { Interruption, RecordingEvent, RecordingWindow } from '@hawser/contract/recordings'
import type { Size } from './read-only-screen.ts'

export interface Source {
  readonly duration_ms: number
  readonly interruptions: readonly Pick<Interruption, 'from_ms' | 'until_ms'>[]
  at(time_ms: number): Promise<RecordingWindow>
  from(position: number): Promise<RecordingWindow>
}

export interface Display {
  reset(size: Size): void
  write(bytes: Uint8Array): void
  resize(size: Size): void
}

export interface Playing {
  readonly time_ms: number
  readonly playing: boolean
  readonly loading: boolean
  readonly speed: number
  readonly skipIdle: boolean
  /** Whether it jumps over interruptions. */
  readonly skipInterruptions: boolean
  readonly error: unknown
  /** Empty: unknown. */
  readonly typist: string
}

export interface Engine {
  readonly state: () => Playing
  seek(time_ms: number): void
  /** At the end it starts again from the beginning. */
  toggle(): void
  setSpeed(speed: number): void
  setSkipIdle(on: boolean): void
  setSkipInterruptions(on: boolean): void
  dispose(): void
}

export const speeds = [0.5, 1, 2, 4, 8, 16] as const
/** A longer pause is skipped, except for its last `idleRest_ms`. */
const idle_ms = 2_000
const idleRest_ms = 300
/** With fewer events in the queue, the next window is fetched ahead. */
const enough = 256

export interface Scheduler {
  now(): number
  /** Returns a function that cancels the call. */
  soon(call: () => void): () => void
}

const atFirst: Playing = {
  time_ms: 0,
  playing: false,
  loading: true,
  speed: 1,
  skipIdle: false,
  skipInterruptions: true,
  error: undefined,
  typist: '',
}

/** The next interruption; a jump into one is meant to show it. */
const interruptionBetween = (
  { interruptions }: Source,
  before_ms: number,
  time_ms: number,
): Source['interruptions'][number] | undefined =>
  interruptions.find(
    ({ from_ms, until_ms }) => before_ms < from_ms && from_ms <= time_ms && time_ms < until_ms,
  )

export function engine(
  source: Source,
  display: Display,
  changed: (state: Playing) => void,
  scheduler: Scheduler,
): Engine {
  let state = atFirst
  let queue: RecordingEvent[] = []
  let next: number | null = null
  /** Counts seeks: responses to requests before the latest one are dropped. */
  let generation = 0
  let fetching = false
  let wanted: number | undefined
  let last = 0
  let callOff: (() => void) | undefined
  let over = false
  let isFresh = true

  const set = (change: Partial<Playing>): void => {
    if (over) return
    state = { ...state, ...change }
    changed(state)
  }
  const play = (event: RecordingEvent): void => {
    if (event.bytes !== undefined) display.write(fromBase64(event.bytes))
    else if (event.width !== undefined && event.height !== undefined)
      display.resize({ width: event.width, height: event.height })
    else if (event.typist !== undefined) set({ typist: event.typist })
  }
  const fail = (error: unknown): void => set({ error, loading: false, playing: false })

  /** Opens where the terminal first shows something, since the screen is black before. */
  function showFirst(): void {
    const first = queue.findIndex(({ bytes }) => bytes !== undefined)
    if (first < 0) return
    set({ time_ms: queue[first]!.time_ms })
    queue.splice(0, first + 1).forEach(play)
  }

  async function go(): Promise<void> {
    // One request at a time: dragging the bar seeks a hundred times.
    if (fetching || wanted === undefined) return
    const time_ms = wanted
    wanted = undefined
    fetching = true
    generation++
    try {
      const part = await source.at(time_ms)
      // Show it even if there is a newer seek, so that dragging the bar shows where it is.
      if (over) return
      display.reset(part)
      display.write(fromBase64(part.screen))
      queue = [...part.events]
      next = part.next
      last = scheduler.now()
      set({ loading: wanted !== undefined, error: undefined, typist: part.typist })
      if (isFresh && wanted === undefined && part.screen === '') showFirst()
      isFresh = false
    } catch (error) {
      fail(error)
    } finally {
      fetching = false
      void go()
    }
  }

  async function ahead(): Promise<void> {
    if (fetching || next === null || queue.length > enough) return
    fetching = true
    const mine = generation
    try {
      const part = await source.from(next)
      if (over || mine !== generation) return
      queue.push(...part.events)
      ;({ next } = part)
    } catch (error) {
      fail(error)
    } finally {
      fetching = false
      void go()
    }
  }

  function step(): void {
    callOff = undefined
    if (over || !state.playing) return
    const now = scheduler.now()
    const passed = (now - last) * state.speed
    last = now
    callOff = scheduler.soon(step)
    if (state.loading) return
    let time_ms = state.time_ms + passed
    const coming = queue[0]?.time_ms ?? (next === null ? source.duration_ms : undefined)
    // The next event is not loaded yet: the clock stops.
    if (coming === undefined) {
      void ahead()
      return
    }
    if (state.skipIdle && coming - state.time_ms > idle_ms) time_ms = Math.max(time_ms, coming - idleRest_ms)
    const skipped = state.skipInterruptions ? interruptionBetween(source, state.time_ms, time_ms) : undefined
    if (skipped) return seek(skipped.until_ms)
    let due = 0
    while (due < queue.length && queue[due]!.time_ms <= time_ms) play(queue[due++]!)
    queue.splice(0, due)
    void ahead()
    const isOver = queue.length === 0 && next === null && time_ms >= source.duration_ms
    if (isOver) time_ms = source.duration_ms
    // Update the page every tenth of a second.
    if (isOver || Math.floor(time_ms / 100) !== Math.floor(state.time_ms / 100))
      set({ time_ms, playing: !isOver })
    else state = { ...state, time_ms }
  }

  function start(): void {
    last = scheduler.now()
    set({ playing: true })
    callOff ??= scheduler.soon(step)
  }

  const seek = (time_ms: number): void => {
    wanted = Math.max(0, Math.min(source.duration_ms, Math.round(time_ms)))
    generation++
    set({ time_ms: wanted, loading: true })
    void go()
  }
  seek(0)

  return {
    state: () => state,
    seek,
    toggle() {
      if (state.playing) return set({ playing: false })
      if (state.time_ms >= source.duration_ms) seek(0)
      start()
    },
    setSpeed: (speed) => set({ speed }),
    setSkipIdle: (skipIdle) => set({ skipIdle }),
    setSkipInterruptions: (skipInterruptions) => set({ skipInterruptions }),
    dispose() {
      over = true
      callOff?.()
    },
  }
}

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text)
  return Uint8Array.from(binary, (one) => one.charCodeAt(0))
}

export function clock(time_ms: number): string {
  const seconds = Math.floor(time_ms / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}
