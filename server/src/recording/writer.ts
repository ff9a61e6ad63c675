// Writes one journal: what a terminal showed, and when, in a file that is only ever appended to.
//
// The file is eight bytes, `hawserJ1`, and blocks, all of the same form (numbers big-endian):
//
//   length u32     of the body, at most 16 MiB
//   kind u8        1 header, 2 events, 3 end, 4 seal
//   sum 32 bytes   SHA-256 over the sum of the block before (zeros for the first), length, kind and body
//   body
//
//   header   JSON: see `Header`. Always the first block, once.
//   events   the time of the block in milliseconds since the start, then events without a gap:
//              kind u8, milliseconds since the event before (since the block's time for the first one), and
//              1 output: length, bytes exactly as they came from the device
//              2 resize: width, height in characters
//              3 mark:   length, JSON (see `Mark`)
//            all numbers of events are variable: seven bits a byte, the lowest first, the high bit set while more follow
//   end      JSON: see `End`. How it ended, and the index: places from which reading can begin.
//   seal     offset u64 of the end block, Ed25519 signature (64 bytes) over the text
//            "hawser recording 1\n<sum of the end block in hex>\n<that offset>\n" by the key in the header. The last block.
//
// A file without end and seal was cut off (or is being written): it is read up to its last whole block, and
// gets both at the next start, where `ending` says so. Every byte is covered by a sum, every sum by the next,
// the last by the signature.
//
// Events are copied into a block in memory; a full block, or one that is 50 ms old (see flush-schedule.ts),
// goes to the disk. The memory of a journal is bounded: a writer that fills it has to wait. After the first
// failure nothing is written any more.
import type { Clock } from '../kit/clock.ts'
import { iso } from '../kit/clock.ts'
import {
  Block,
  blockOf,
  finishBlock,
  head_bytes,
  Kind,
  longestVarint_bytes,
  magic,
  noSum,
  putVarint,
  sealText,
  type End,
  type Ending,
  type Header,
  type IndexEntry,
  type JournalName,
  type Mark,
  type Size,
} from './journal.ts'
import type { RecordingKey } from './key.ts'
import type { Appending } from './storage/storage.ts'
import type { FlushSchedule } from './flush-schedule.ts'

export interface JournalWriter {
  /** Of the terminal at the start. */
  readonly first: Size
  readonly name: JournalName
  readonly size: Size
  readonly output_bytes: number
  /** When the last event was. */
  readonly duration_ms: number
  readonly index: readonly IndexEntry[]
  /**
   * Copies the bytes. Resolves when there is room for more; undefined: there is. Throws or rejects when
   * writing has failed.
   */
  output(bytes: Uint8Array): Promise<void> | undefined
  resize(size: Size): void
  mark(mark: Mark): void
  /** Resolves when all of it can be read. */
  flush(): Promise<void>
  /** Writes end and seal and closes. Does not reject: a failure was told by then. */
  finish(ending?: Ending): Promise<void>
}

export interface WriterParts {
  file: Appending
  header: Header
  key: Pick<RecordingKey, 'sign'>
  clock: Clock
  schedule: FlushSchedule
  /** Told once. */
  onFailed(error: Error): void
}

/** A block that has so much is handed to the disk. */
const block_bytes = 64 * 1024
/** What may wait for the disk, of one journal. */
export const mostWaiting_bytes = 1024 * 1024
const goOn_bytes = mostWaiting_bytes / 2
/**
 * Entries of the index; when there are more, every second one goes, and twice as much lies between those that
 * come.
 */
const mostEntries = 2048
const mostSpare = 64

/** Memory for blocks, used again and again by all journals. */
const spare: Buffer[] = []
const slab = (bytes: number): Buffer =>
  (bytes <= block_bytes && spare.pop()) || Buffer.allocUnsafe(Math.max(bytes, block_bytes))
const giveBack = (block: Buffer): void => {
  if (block.length === block_bytes && spare.length < mostSpare) spare.push(block)
}

interface Waiting {
  readonly slab: Buffer
  readonly bytes: number
  readonly before: IndexEntry
}

export async function journalWriter(parts: WriterParts): Promise<JournalWriter> {
  const { file, header, key, clock, schedule } = parts
  const started = Date.parse(header.started_at)
  let size: Size = { width: header.width, height: header.height }
  let time_ms = 0
  let output_bytes = 0
  let length = magic.length
  let sum: Buffer = noSum
  let index: IndexEntry[] = []
  let spacing_bytes = block_bytes / 2

  let block: Buffer | undefined
  let used = 0
  /** What was true before the first event of the block. */
  let before: IndexEntry | undefined
  let waiting: Waiting[] = []
  let waiting_bytes = 0
  let writing: Promise<void> | undefined
  /** Resolves when the writer may go on. */
  let drained: PromiseWithResolvers<void> | undefined
  let failure: Error | undefined
  let over = false

  function fail(error: unknown): void {
    if (failure) return
    failure = error as Error
    waiting = []
    block = undefined
    schedule.forget(flushable)
    drained?.reject(failure)
    drained = undefined
    parts.onFailed(failure)
  }

  /** Room for an event of at most so many bytes in the block. */
  function begin(kind: number, bytes: number): void {
    if (failure) throw failure
    if (over) throw new Error('the journal is closed')
    const now_ms = Math.max(time_ms, clock.now() - started)
    const most = 1 + 3 * longestVarint_bytes + bytes
    if (block && used + most > block.length) close()
    if (!block) {
      block = slab(head_bytes + longestVarint_bytes + most)
      before = { time_ms: now_ms, offset: 0, output_bytes, ...size }
      used = putVarint(block, head_bytes, now_ms)
      time_ms = now_ms
      schedule.dirty(flushable)
    }
    block[used++] = kind
    used = putVarint(block, used, now_ms - time_ms)
    time_ms = now_ms
  }

  function close(): void {
    if (!block || !before) return
    waiting.push({ slab: block, bytes: used, before })
    waiting_bytes += used
    block = undefined
    used = 0
    writing ??= write()
  }

  async function write(): Promise<void> {
    // A moment for others of the same turn to join; and so that whoever starts us knows that we run before we
    // have ended.
    await Promise.resolve()
    while (waiting.length > 0 && !failure) {
      const batch = waiting
      waiting = []
      const bytes = batch.reduce((total, { bytes: some }) => total + some, 0)
      let last = sum
      const pieces = batch.map(({ slab: of, bytes: some }) => {
        const piece = of.subarray(0, some)
        last = finishBlock(piece, Block.events, last)
        return piece
      })
      try {
        await file.append(pieces)
      } catch (error) {
        fail(error)
        break
      }
      sum = last
      for (const { slab: of, bytes: some, before: was } of batch) {
        note({ ...was, offset: length })
        length += some
        giveBack(of)
      }
      waiting_bytes -= bytes
      schedule.unsynced(flushable)
      if (drained && waiting_bytes <= goOn_bytes) {
        drained.resolve()
        drained = undefined
      }
    }
    // In the same turn in which nothing more was found: what comes later starts us again.
    writing = undefined
  }

  function note(entry: IndexEntry): void {
    const last = index.at(-1)
    if (last && entry.offset - last.offset < spacing_bytes) return
    index.push(entry)
    if (index.length <= mostEntries) return
    index = index.filter((_, at) => at % 2 === 0)
    spacing_bytes *= 2
  }

  const flush = async (): Promise<void> => {
    close()
    await writing
    if (failure) throw failure
  }

  const flushable = {
    push: close,
    async sync(): Promise<void> {
      if (over || failure) return
      await file.sync().catch((error: unknown) => fail(error))
    },
  }

  async function seal(ending: Ending): Promise<void> {
    const end: End = { ending, ended_at: iso(clock.now()), duration_ms: time_ms, output_bytes, index }
    await file.append(endBlocks(end, length, sum, key))
    await file.sync()
    await file.close(true)
  }

  const first = blockOf(Block.header, Buffer.from(JSON.stringify(header)), sum)
  sum = first.subarray(5, head_bytes)
  await file.append([magic, first])
  length += first.length
  schedule.unsynced(flushable)

  return {
    name: file.name,
    first: { width: header.width, height: header.height },
    get size() {
      return size
    },
    get output_bytes() {
      return output_bytes
    },
    get duration_ms() {
      return time_ms
    },
    get index() {
      return index
    },
    output(bytes) {
      begin(Kind.output, bytes.length)
      used = putVarint(block!, used, bytes.length)
      block!.set(bytes, used)
      used += bytes.length
      output_bytes += bytes.length
      if (used >= block_bytes) close()
      if (waiting_bytes + used <= mostWaiting_bytes) return undefined
      drained ??= Promise.withResolvers()
      return drained.promise
    },
    resize({ width, height }) {
      if (failure || over) return
      begin(Kind.resize, 0)
      used = putVarint(block!, used, width)
      used = putVarint(block!, used, height)
      size = { width, height }
    },
    mark(mark) {
      if (failure || over) return
      const text = Buffer.from(JSON.stringify(mark))
      begin(Kind.mark, text.length)
      used = putVarint(block!, used, text.length)
      used += text.copy(block!, used)
      if (mark.type === 'announcement') output_bytes += Buffer.byteLength(mark.text)
    },
    flush,
    async finish(ending = 'closed') {
      if (over) return
      try {
        await flush().catch(() => undefined)
        over = true
        schedule.forget(flushable)
        // What a failed write has left behind the last whole block goes; there may be room for the end in its
        // place.
        if (failure) await file.cut(length)
        await seal(failure ? 'failed' : ending)
      } catch (error) {
        // It stays known as unfinished, so that the next start closes it.
        await file.close(false).catch(() => undefined)
        fail(error)
      }
    },
  }
}

/** End and seal, to be put at `offset` behind a block with this sum. */
export function endBlocks(end: End, offset: number, sum: Buffer, key: Pick<RecordingKey, 'sign'>): Buffer[] {
  const last = blockOf(Block.end, Buffer.from(JSON.stringify(end)), sum)
  const endSum = last.subarray(5, head_bytes)
  const at = Buffer.alloc(8)
  at.writeBigUInt64BE(BigInt(offset))
  return [last, blockOf(Block.seal, Buffer.concat([at, key.sign(sealText(endSum, offset))]), endSum)]
}
