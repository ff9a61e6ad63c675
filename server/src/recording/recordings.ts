// The public interface of this folder: callers begin recordings here, read them in several forms, watch live
// ones and remove them. The service knows which journals are being written, so that a reader sees what was
// written a moment ago. It knows no rule: callers decide what is recorded and who may see it.
import { Failure } from '@hawser/contract/failures'
import { BoundedMap } from '../kit/bounded-map.ts'
import { iso, minute_ms, type Clock } from '../kit/clock.ts'
import { concurrencyByKey } from '../kit/concurrency.ts'
import type { RecordingMoment } from './filmstrip.ts'
import { castOf, framesOf, type PlayedFrame } from './frames.ts'
import {
  Block,
  JournalDamaged,
  type Ending,
  type Header,
  type Interruption,
  type JournalEvent,
  type JournalName,
  type Mark,
  type Size,
} from './journal.ts'
import type { Appending, JournalStorage, Reading } from './storage/storage.ts'
import type { RecordingKey } from './key.ts'
import { audience, type Viewer } from './live.ts'
import { flushSchedule } from './flush-schedule.ts'
import { asOfNow, events, readEnd, readHeader } from './reader.ts'
import type { Searched } from './search.ts'
import { asBuffer, screenThread, type JournalCall } from './screen-thread.ts'
import type { ScreenCalls } from './screen-worker.ts'
import type { RecordingQuota } from './quota.ts'
import { closeJournal } from './verify.ts'
import { programOf, type Part, type Source, type WindowEvent } from './window.ts'
import { journalWriter, type JournalWriter } from './writer.ts'

/** The session, device and user that a recording is about, and its terminal. */
export interface About extends Size {
  readonly tenant_id: string
  readonly session_uid: string
  readonly device_uid: string
  readonly username: string
  /** Who opened the session; absent: unknown. */
  readonly person?: string | undefined
  readonly term: string
}

/** One recorded channel, while it goes on. */
export interface Recording {
  readonly name: JournalName
  /** Undefined: go on; else when it resolves. Throws or rejects once writing has failed. */
  output(bytes: Uint8Array): Promise<void> | undefined
  resize(size: Size): void
  mark(mark: Mark): void
  finish(): Promise<void>
  watch(viewer: Viewer): Promise<Disposable>
}

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
  /** Each with its end, which is that of the recording where nobody came back. */
  readonly interruptions: Required<Interruption>[]
}

export interface Posted extends Size {
  readonly message: string
}

export interface Recordings extends AsyncDisposable {
  /** Calls `onFailed` once, when the recording cannot be written any more. */
  begin(about: About, onFailed?: (error: Error) => void): Promise<Recording>
  /** A frame that somebody else has recorded. */
  post(about: Omit<About, keyof Size>, frame: Posted): Promise<void>
  channels(tenant_id: string, session_uid: string): Promise<JournalName[]>
  /** The journal itself, with everything that was recorded so far. */
  read(name: JournalName): Promise<Reading>
  frames(name: JournalName): AsyncIterable<PlayedFrame>
  cast(name: JournalName): AsyncIterable<string>
  /** Facts about a recording. */
  facts(name: JournalName): Promise<Facts>
  /** A part of it: from a moment on, with the screen as it was then, or from a position on. */
  part(
    name: JournalName,
    where: { readonly at_ms: number } | { readonly from: number },
    signal?: AbortSignal,
  ): Promise<Part>
  /** At most so many moments of it, for small pictures. */
  filmstrip(name: JournalName, most: number, signal?: AbortSignal): Promise<RecordingMoment[]>
  search(name: JournalName, text: string, from: number, signal?: AbortSignal): Promise<Searched>
  /** The live recordings of a session, the newest last; posted frames do not count. */
  live(tenant_id: string, session_uid: string): Recording[]
  remove(tenant_id: string, session_uid: string): Promise<void>
  usage: RecordingQuota['usage']
  /** Closes journals that a crash has cut off. */
  recover(onClosed: (name: JournalName, ending: Ending) => Promise<void>): Promise<void>
  /** Closes journals of lost nodes, as far as this node can read them. One round at a time. */
  inherit(onClosed: (name: JournalName, ending: Ending) => Promise<void>): Promise<void>
  readonly count: number
  /** Bytes of all recordings that are not in their files yet. */
  readonly unwritten_bytes: number
}

export interface RecordingParts {
  storage: JournalStorage
  key: RecordingKey
  clock: Clock
  /** Absent: recordings may take all the space there is. */
  quota?: RecordingQuota | undefined
  onFailed(error: Error, name: JournalName): void
  /** A journal has its end, whoever wrote it. */
  onEnded?(name: JournalName): void
  /** The journals of a session are gone. */
  onRemoved?(tenant_id: string, session_uid: string): Promise<void>
}

/** The journal of posted frames is closed after so long without a frame; the next frame begins another. */
const posted_ms = 5 * minute_ms
/** Open journals of posted frames. */
const mostPosted = 500
/** Posted frames of one session that wait to be written. */
const mostFrames = 1_000
/** Journals whose index is cached; an index has at most 2048 entries. */
const mostKnown = 32

interface Open extends Recording {
  readonly posted: boolean
  readonly writer: Pick<
    JournalWriter,
    'index' | 'interruptions' | 'duration_ms' | 'output_bytes' | 'unwritten_bytes'
  >
  flush(): Promise<void>
  failed: boolean
}

/** A journal of frames that somebody else has recorded. */
interface PostedRecording {
  readonly recording: Open
  size: Size
  /** Closes the journal when no frame has come for a while. */
  readonly idle: NodeJS.Timeout
}

const unlimited: RecordingQuota = {
  begin: () => Promise.resolve(),
  take: () => undefined,
  freed: () => undefined,
  usage: () => Promise.resolve({ used_bytes: 0, quota_bytes: 0 }),
}

/**
 * Counts the events of a journal against the quota. The end of a journal is always written, so that the part
 * that was recorded is whole.
 */
function within(quota: RecordingQuota, file: Appending): Appending {
  return {
    ...file,
    append(bytes) {
      const isEnd = bytes[0]?.[4] === Block.end
      if (!isEnd)
        quota.take(
          file.name.tenant_id,
          bytes.reduce((sum, piece) => sum + piece.length, 0),
        )
      return file.append(bytes)
    },
  }
}

export function recordings(parts: RecordingParts): Recordings {
  const { storage, key, clock, quota = unlimited, onFailed } = parts
  const schedule = flushSchedule()
  const open = new Set<Open>()
  const finishing = new Set<Promise<void>>()
  const posted = new BoundedMap<string, PostedRecording>(mostPosted)
  const bySession = concurrencyByKey(mostFrames)
  /** Draws screens, looks for text and reads parts: output of devices decides what that costs. */
  const looking = screenThread()
  /** Headers and indexes of closed journals: players ask for one part after the other. */
  const known = new BoundedMap<string, Omit<Source, 'file'>>(mostKnown)

  const of = (tenant_id: string, session_uid: string): Open[] =>
    [...open].filter(({ name }) => name.session_uid === session_uid && name.tenant_id === tenant_id)

  async function start(
    about: About,
    isPosted: boolean,
    onFailure: (error: Error) => void = () => undefined,
  ): Promise<Open> {
    const { tenant_id, session_uid, device_uid, username, person, term, width, height } = about
    await quota.begin(tenant_id)
    const file = within(quota, await storage.create({ tenant_id, session_uid, channel: 0 }, isPosted))
    const { name } = file
    const header = {
      version: 1,
      ...name,
      started_at: iso(clock.now()),
      device_uid,
      username,
      ...(person === undefined ? {} : { person }),
      term,
      width,
      height,
      key: key.public_key,
    } as const
    const failed = (error: Error): void => {
      one.failed = true
      viewers.end('The session is not recorded any more.')
      onFailed(error, name)
      onFailure(error)
    }
    const writer = await journalWriter({ file, header, key, clock, schedule, onFailed: failed }).catch(
      async (error: unknown) => {
        await file.close(false).catch(() => undefined)
        await storage.discard(name).catch(() => undefined)
        throw error
      },
    )
    const viewers = audience(writer, (output_bytes, gone) =>
      looking.turn(tenant_id, gone, async (call) => {
        await using reading = await storage.read(name)
        const { size, ...made } = await call(reading, 'snapshot', writer.first, writer.index, {
          output_bytes,
        })
        return { ...made, size, bytes: asBuffer(made.bytes) }
      }),
    )
    let finished: Promise<void> | undefined
    const one: Open = {
      name,
      posted: isPosted,
      writer,
      failed: false,
      output(bytes) {
        const full = writer.output(bytes)
        viewers.output(bytes)
        return full
      },
      resize(size) {
        writer.resize(size)
        viewers.resize(size)
      },
      mark(mark) {
        writer.mark(mark)
        if (mark.type === 'announcement') viewers.output(Buffer.from(mark.text))
      },
      flush: () => writer.flush(),
      finish() {
        finished ??= writer.finish().finally(() => {
          open.delete(one)
          finishing.delete(finished!)
          parts.onEnded?.(name)
        })
        finishing.add(finished)
        viewers.end('The session is over.')
        return finished
      },
      watch: (viewer) => viewers.join(viewer),
    }
    open.add(one)
    one.mark({ type: 'start' })
    return one
  }

  async function closePosted(id: string): Promise<void> {
    const found = posted.get(id)
    posted.delete(id)
    await finishPosted(found)
  }

  async function finishPosted(found: PostedRecording | undefined): Promise<void> {
    clearTimeout(found?.idle)
    await found?.recording.finish()
  }

  async function addFrame(about: Omit<About, keyof Size>, { message, width, height }: Posted): Promise<void> {
    const id = `${about.tenant_id}.${about.session_uid}`
    let found = posted.get(id)
    if (found?.recording.failed) {
      await closePosted(id)
      found = undefined
    }
    if (!found) {
      const idle = setTimeout(() => void closePosted(id), posted_ms)
      idle.unref()
      try {
        found = { recording: await start({ ...about, width, height }, true), size: { width, height }, idle }
      } catch (error) {
        clearTimeout(idle)
        throw error
      }
    }
    await finishPosted(posted.set(id, found))
    found.idle.refresh()
    if (found.size.width !== width || found.size.height !== height)
      found.recording.resize((found.size = { width, height }))
    await found.recording.output(Buffer.from(message))
    // The caller may look for the frame as soon as it is answered.
    await found.recording.flush()
  }

  /** Flushes a live journal, so that its file has what was written a moment ago. */
  async function flushed(name: JournalName): Promise<Open | undefined> {
    const found = of(name.tenant_id, name.session_uid).find((one) => one.name.channel === name.channel)
    // A recording that failed is read as far as it goes.
    await found?.flush().catch(() => undefined)
    return found
  }

  /** Opens a journal to read all that it has now. */
  async function* whole<T>(
    name: JournalName,
    read: (header: Header, all: AsyncIterable<JournalEvent>) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    await flushed(name)
    await using going = await storage.read(name)
    try {
      const file = await asOfNow(going)
      yield* read(await readHeader(file), events(file))
    } catch (error) {
      throw asFailure(error)
    }
  }

  /** Opens a journal to read parts of it. */
  async function opened<T>(
    name: JournalName,
    look: (source: Source) => Promise<T>,
    call?: JournalCall,
  ): Promise<T> {
    const going = await flushed(name)
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
    going: Open | undefined,
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
    // All of it has to be read.
    const unended = (on: JournalCall) => on(file, 'unended')
    return {
      file,
      header,
      ...(await (call ? unended(call) : looking.turn(name.tenant_id, undefined, unended))),
    }
  }

  /** Has the thread look into a journal. */
  const look = <N extends 'part' | 'filmstrip' | 'search'>(
    name: JournalName,
    signal: AbortSignal | undefined,
    what: N,
    ...given: Parameters<ScreenCalls[N]> extends [number, unknown, ...infer Rest] ? Rest : never
  ): Promise<Awaited<ReturnType<ScreenCalls[N]>>> =>
    looking.turn(name.tenant_id, signal, (call) =>
      opened(name, ({ file, ...about }) => (call as OnKnown)(file, what, about, ...given), call),
    )

  /** Closes a journal that was cut off. */
  async function close(
    name: JournalName,
    onClosed: (name: JournalName, ending: Ending) => Promise<void>,
  ): Promise<void> {
    try {
      const file = await storage.reopen(name)
      const closed = await closeJournal(file, key, clock)
      if (!closed) {
        await file.close(false)
        await storage.discard(name)
      } else {
        await onClosed(name, closed.ending)
        parts.onEnded?.(name)
      }
    } catch (error) {
      // The journal was removed meanwhile; only its mark is left.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') await storage.discard(name)
      else onFailed(error as Error, name)
    }
  }
  let inheriting = false

  return {
    get unwritten_bytes() {
      return [...open].reduce((sum, { writer }) => sum + writer.unwritten_bytes, 0)
    },
    get count() {
      return open.size
    },
    begin: (about, onFailure) => start(about, false, onFailure),
    usage: (tenant_id) => quota.usage(tenant_id),
    async post(about, frame) {
      const added = bySession.run(about.session_uid, () => addFrame(about, frame))
      if (!added) throw new Error('too many frames of one session wait')
      await added
    },
    channels: (tenant_id, session_uid) => storage.list(tenant_id, session_uid),
    async read(name) {
      await flushed(name)
      return storage.read(name)
    },
    frames: (name) => whole(name, framesOf),
    cast: (name) => whole(name, castOf),
    facts: (name) =>
      opened(name, async (source) => {
        const { header, duration_ms, output_bytes, ending, interruptions = [] } = source
        const { person = '', term, width, height, started_at } = header
        const { channel } = name
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
      }),
    async part(name, where, signal) {
      const { screen, events: listed, ...part } = await look(name, signal, 'part', where)
      const asEvent = (event: WindowEvent): WindowEvent =>
        'bytes' in event ? { ...event, bytes: asBuffer(event.bytes) } : event
      return { ...part, screen: asBuffer(screen), events: listed.map(asEvent) }
    },
    async filmstrip(name, most, signal) {
      const moments = await look(name, signal, 'filmstrip', most)
      return moments.map(({ output, ...moment }) => ({ ...moment, output: asBuffer(output) }))
    },
    search: (name, text, from, signal) => look(name, signal, 'search', text, from),
    live: (tenant_id, session_uid) => of(tenant_id, session_uid).filter((one) => !one.posted && !one.failed),
    async remove(tenant_id, session_uid) {
      const removing = bySession.run(session_uid, async () => {
        await closePosted(`${tenant_id}.${session_uid}`)
        for (const id of known.keys()) if (id.startsWith(`${session_uid}.`)) known.delete(id)
        await storage.remove(tenant_id, session_uid)
        await parts.onRemoved?.(tenant_id, session_uid)
        quota.freed(tenant_id)
      })
      if (!removing) throw new Error('too many frames of one session wait')
      await removing
    },
    async recover(onClosed) {
      for (const name of await storage.unfinished()) {
        if (of(name.tenant_id, name.session_uid).some((one) => one.name.channel === name.channel)) continue
        await close(name, onClosed)
      }
      await storage.resume?.()
    },
    async inherit(onClosed) {
      if (inheriting || !storage.inherited) return
      inheriting = true
      try {
        for (const name of await storage.inherited()) await close(name, onClosed)
      } finally {
        inheriting = false
      }
    },
    async [Symbol.asyncDispose]() {
      for (const id of posted.keys()) await closePosted(id)
      for (const one of open) void one.finish()
      await Promise.all(finishing)
      schedule[Symbol.dispose]()
      await looking[Symbol.asyncDispose]()
    },
  }
}

/** A look with all that is known of the journal beside its bytes. */
type OnKnown = (
  file: Reading,
  what: string,
  known: Omit<Source, 'file'>,
  ...given: unknown[]
) => Promise<never>

/** Callers learn that a recording is damaged; where it is damaged is for the log. */
const asFailure = (error: unknown): unknown =>
  error instanceof JournalDamaged || error instanceof SyntaxError
    ? new Failure('recordingDamaged', { cause: error })
    : error
