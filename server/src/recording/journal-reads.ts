// Reads journals in the forms that people and players need, also while they are written: a reader sees what was
// written a moment ago.
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../kit/bounded-map.ts'
import type { RecordingMoment } from './filmstrip.ts'
import { castOf, framesOf } from './frames.ts'
import {
  JournalDamaged,
  type Header,
  type Interruption,
  type JournalEvent,
  type JournalName,
  type Size,
} from './journal.ts'
import type { OpenRecording, OpenRecordings } from './open-recordings.ts'
import { asOfNow, events, readEnd, readHeader } from './reader.ts'
import { asBuffer, screenThread, type JournalCall } from './screen-thread.ts'
import type { ScreenCalls } from './screen-worker.ts'
import type { Searched } from './search.ts'
import type { JournalStorage, Reading } from './storage/storage.ts'
import { programOf, type Part, type Source, type WindowEvent } from './window.ts'

export interface Facts extends Size {
  readonly channel: number
  /** Empty: unknown. */
  readonly person: string
  readonly term: string
  readonly started_at: string
  readonly duration_ms: number
  readonly output_bytes: number
  readonly ending: Source['ending']
  readonly program: string
  readonly command: string
  /** An interruption that nobody ended ends with the recording. */
  readonly interruptions: Required<Interruption>[]
}

/** Journals whose index is cached; an index has at most 2048 entries. */
const mostKnown = 32

/** Flushes a live journal, so that its file is up to date. */
async function flushed(
  open: Pick<OpenRecordings, 'find'>,
  name: JournalName,
): Promise<OpenRecording | undefined> {
  const found = open.find(name)
  // A recording that failed is read as far as it goes.
  await found?.flush().catch(() => undefined)
  return found
}

const asEvent = (event: WindowEvent): WindowEvent =>
  'bytes' in event ? { ...event, bytes: asBuffer(event.bytes) } : event

export function journalReads(storage: JournalStorage, open: Pick<OpenRecordings, 'find'>) {
  /** Draws screens, searches text and reads parts: output of devices decides what that costs. */
  const looking = screenThread()
  /** Caches closed journals: players request one part after the other. */
  const known = new BoundedMap<string, Omit<Source, 'file'>>(mostKnown)

  async function* whole<T>(
    name: JournalName,
    read: (header: Header, all: AsyncIterable<JournalEvent>) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    await flushed(open, name)
    await using going = await storage.read(name)
    try {
      const file = await asOfNow(going)
      yield* read(await readHeader(file), events(file))
    } catch (error) {
      throw asFailure(error)
    }
  }

  async function opened<T>(
    name: JournalName,
    look: (source: Source) => Promise<T>,
    call?: JournalCall,
  ): Promise<T> {
    const going = await flushed(open, name)
    await using file = await storage.read(name)
    try {
      return await look(await sourceOf(name, file, going, call))
    } catch (error) {
      throw asFailure(error)
    }
  }

  /** `call`: within a turn of the namespace on the thread. */
  async function sourceOf(
    name: JournalName,
    file: Reading,
    going: OpenRecording | undefined,
    call: JournalCall | undefined,
  ): Promise<Source> {
    const id = `${name.session_uid}.${name.channel}`
    const found = known.get(id)
    if (found) return { file, ...found }
    const header = await readHeader(file)
    if (going) {
      const { index, interruptions, duration_ms, output_bytes } = going.writer
      return { file, header, index, interruptions, duration_ms, output_bytes, ending: 'going' }
    }
    const end = await readEnd(file)
    if (end) known.set(id, { header, ...end })
    if (end) return { file, header, ...end }
    const unended = (on: JournalCall) => on(file, 'unended')
    return {
      file,
      header,
      ...(await (call ? unended(call) : looking.turn(name.tenant_id, undefined, unended))),
    }
  }

  const look = <N extends 'part' | 'filmstrip' | 'search'>(
    name: JournalName,
    signal: AbortSignal | undefined,
    what: N,
    ...given: Parameters<ScreenCalls[N]> extends [number, unknown, ...infer Rest] ? Rest : never
  ): Promise<Awaited<ReturnType<ScreenCalls[N]>>> =>
    looking.turn(name.tenant_id, signal, (call) =>
      opened(name, ({ file, ...about }) => (call as OnKnown)(file, what, about, ...given), call),
    )

  return {
    async read(name: JournalName): Promise<Reading> {
      await flushed(open, name)
      return storage.read(name)
    },
    frames: (name: JournalName) => whole(name, framesOf),
    cast: (name: JournalName) => whole(name, castOf),
    facts: (name: JournalName): Promise<Facts> => opened(name, async (source) => factsOf(name, source)),
    async part(
      name: JournalName,
      where: { readonly at_ms: number } | { readonly from: number },
      signal?: AbortSignal,
    ): Promise<Part> {
      const { screen, events: listed, ...part } = await look(name, signal, 'part', where)
      return { ...part, screen: asBuffer(screen), events: listed.map(asEvent) }
    },
    async filmstrip(name: JournalName, most: number, signal?: AbortSignal): Promise<RecordingMoment[]> {
      const moments = await look(name, signal, 'filmstrip', most)
      return moments.map(({ output, ...moment }) => ({ ...moment, output: asBuffer(output) }))
    },
    search: (name: JournalName, text: string, from: number, signal?: AbortSignal): Promise<Searched> =>
      look(name, signal, 'search', text, from),
    forget(session_uid: string): void {
      for (const id of known.keys()) if (id.startsWith(`${session_uid}.`)) known.delete(id)
    },
    [Symbol.asyncDispose]: () => looking[Symbol.asyncDispose](),
  }
}

/** A call of the thread, without the journal. */
type OnKnown = (
  file: Reading,
  what: string,
  known: Omit<Source, 'file'>,
  ...given: unknown[]
) => Promise<never>

/** Callers learn that a recording is damaged; only the log shows where. */
const asFailure = (error: unknown): unknown =>
  error instanceof JournalDamaged || error instanceof SyntaxError
    ? new Failure('recordingDamaged', { cause: error })
    : error

async function factsOf({ channel }: JournalName, source: Source): Promise<Facts> {
  const { header, duration_ms, output_bytes, ending, interruptions = [] } = source
  const { person = '', term, width, height, started_at } = header
  return {
    channel,
    person,
    term,
    width,
    height,
    started_at,
    duration_ms,
    output_bytes,
    ending,
    ...(await programOf(source)),
    interruptions: interruptions.map((one) => ({ until_ms: duration_ms, via: '', ...one })),
  }
}
