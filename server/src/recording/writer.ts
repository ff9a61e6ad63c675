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
// failure nothing more is written.
import { defined } from '@hawser/contract/defined'
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
  withMark,
  type End,
  type Ending,
  type Header,
  type IndexEntry,
  type Interruption,
  type JournalName,
  type Mark,
  type Size,
} from './journal.ts'
import type { RecordingKey } from './key.ts'
import type { Appending } from './storage/storage.ts'
import type { FlushSchedule } from './flush-schedule.ts'

export interface JournalWriter {
  readonly first: Size
  readonly name: JournalName
  readonly size: Size
  readonly output_bytes: number
  /** Bytes that are not in the file yet. */
  readonly unwritten_bytes: number
  readonly duration_ms: number
  readonly index: readonly IndexEntry[]
  readonly interruptions: readonly Interruption[]
  /**
   * Copies the bytes. Resolves when there is room for more; undefined: there is. Throws or rejects when
   * writing has failed.
   */
  output(bytes: Uint8Array): Promise<void> | undefined
  resize(size: Size): void
  mark(mark: Mark): void
  /** Resolves when all of it can be read. */
  flush(): Promise<void>
  /** Writes end and seal and closes. Never rejects: failures are reported to `onFailed`. */
  finish(ending?: Ending): Promise<void>
}

export interface WriterParts {
  file: Appending
  header: Header
  key: Pick<RecordingKey, 'sign'>
  clock: Clock
  schedule: FlushSchedule
  onFailed(error: Error): void
}

/** A block of this size goes to the disk. */
const block_bytes = 64 * 1024
/** The most bytes of one journal that may wait for the disk. */
export const mostWaiting_bytes = 1024 * 1024
const goOn_bytes = mostWaiting_bytes / 2
/** When the index has more entries, every second one is dropped, and their distance doubles. */
const mostEntries = 2048
const mostSpare = 64

/** Memory for blocks, which all journals reuse. */
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
  const writer = new Writer(parts)
  await writer.begin()
  return writer
}

class Writer implements JournalWriter {
  readonly name: JournalName
  readonly first: Size
  readonly #parts: WriterParts
  readonly #started: number

  /** The terminal's size, the time of the last event and the bytes of output, with all events so far. */
  #size: Size
  #time_ms = 0
  #output_bytes = 0
  #typist: string | undefined
  #interruptions: readonly Interruption[] = []

  /** The block that events are copied into, its used length, and the state before its first event. */
  #block: Buffer | undefined
  #used = 0
  #before: IndexEntry | undefined

  /** Closed blocks that wait for the disk, and their bytes, those that are being written included. */
  #waiting: Waiting[] = []
  #waiting_bytes = 0
  #writing: Promise<void> | undefined
  /** Resolves when the caller may write more. */
  #drained: PromiseWithResolvers<void> | undefined

  /** The length of the file, the sum of its last block, and the places from which reading can begin. */
  #length = magic.length
  #sum: Buffer = noSum
  #index: IndexEntry[] = []
  /** The least distance between two entries of the index. */
  #spacing_bytes = block_bytes / 2

  /** The first failure. After it nothing more is written. */
  #failure: Error | undefined
  #over = false

  readonly #flushable = {
    push: (): void => this.#closeBlock(),
    sync: async (): Promise<void> => {
      if (this.#over || this.#failure) return
      await this.#parts.file.sync().catch((error: unknown) => this.#fail(error))
    },
  }

  constructor(parts: WriterParts) {
    const { file, header } = parts
    this.#parts = parts
    this.#started = Date.parse(header.started_at)
    this.name = file.name
    this.first = { width: header.width, height: header.height }
    this.#size = this.first
  }

  get size(): Size {
    return this.#size
  }
  get unwritten_bytes(): number {
    return this.#failure ? 0 : this.#waiting_bytes + this.#used
  }

  get output_bytes(): number {
    return this.#output_bytes
  }
  get duration_ms(): number {
    return this.#time_ms
  }
  get index(): readonly IndexEntry[] {
    return this.#index
  }

  get interruptions(): readonly Interruption[] {
    return this.#interruptions
  }

  async begin(): Promise<void> {
    const { file, header, schedule } = this.#parts
    const first = blockOf(Block.header, Buffer.from(JSON.stringify(header)), this.#sum)
    this.#sum = first.subarray(5, head_bytes)
    await file.append([magic, first])
    this.#length += first.length
    schedule.unsynced(this.#flushable)
  }

  output(bytes: Uint8Array): Promise<void> | undefined {
    const block = this.#event(Kind.output, bytes.length)
    this.#used = putVarint(block, this.#used, bytes.length)
    block.set(bytes, this.#used)
    this.#used += bytes.length
    this.#output_bytes += bytes.length
    if (this.#used >= block_bytes) this.#closeBlock()
    if (this.#waiting_bytes + this.#used <= mostWaiting_bytes) return undefined
    this.#drained ??= Promise.withResolvers()
    return this.#drained.promise
  }

  resize({ width, height }: Size): void {
    if (this.#failure || this.#over) return
    const block = this.#event(Kind.resize, 0)
    this.#used = putVarint(block, this.#used, width)
    this.#used = putVarint(block, this.#used, height)
    this.#size = { width, height }
  }

  mark(mark: Mark): void {
    if (this.#failure || this.#over) return
    const text = Buffer.from(JSON.stringify(mark))
    const block = this.#event(Kind.mark, text.length)
    this.#used = putVarint(block, this.#used, text.length)
    this.#used += text.copy(block, this.#used)
    if (mark.type === 'announcement') this.#output_bytes += Buffer.byteLength(mark.text)
    if (mark.type === 'typist') this.#typist = mark.by
    this.#interruptions = withMark(this.#interruptions, this.#time_ms, mark)
  }

  async flush(): Promise<void> {
    this.#closeBlock()
    await this.#writing
    if (this.#failure) throw this.#failure
  }

  async finish(ending: Ending = 'closed'): Promise<void> {
    if (this.#over) return
    const { file, schedule } = this.#parts
    try {
      await this.flush().catch(() => undefined)
      this.#over = true
      schedule.forget(this.#flushable)
      // The rest of a failed write behind the last whole block is cut off; the end may fit in its place.
      if (this.#failure) await file.cut(this.#length)
      await this.#seal(this.#failure ? 'failed' : ending)
    } catch (error) {
      // The journal stays known as unfinished, so that the next start closes it.
      await file.close(false).catch(() => undefined)
      this.#fail(error)
    }
  }

  /** With the head of an event, and room for at most `bytes` of it. */
  #event(kind: number, bytes: number): Buffer {
    if (this.#failure) throw this.#failure
    if (this.#over) throw new Error('the journal is closed')
    const now_ms = Math.max(this.#time_ms, this.#parts.clock.now() - this.#started)
    const most = 1 + 3 * longestVarint_bytes + bytes
    if (this.#block && this.#used + most > this.#block.length) this.#closeBlock()
    const block = this.#block ?? this.#openBlock(head_bytes + longestVarint_bytes + most, now_ms)
    block[this.#used++] = kind
    this.#used = putVarint(block, this.#used, now_ms - this.#time_ms)
    this.#time_ms = now_ms
    return block
  }

  #openBlock(bytes: number, now_ms: number): Buffer {
    const block = slab(bytes)
    this.#block = block
    this.#before = {
      time_ms: now_ms,
      offset: 0,
      output_bytes: this.#output_bytes,
      ...this.#size,
      ...(this.#typist === undefined ? {} : { typist: this.#typist }),
    }
    this.#used = putVarint(block, head_bytes, now_ms)
    this.#time_ms = now_ms
    this.#parts.schedule.dirty(this.#flushable)
    return block
  }

  #closeBlock(): void {
    if (!this.#block || !this.#before) return
    this.#waiting.push({ slab: this.#block, bytes: this.#used, before: this.#before })
    this.#waiting_bytes += this.#used
    this.#block = undefined
    this.#used = 0
    this.#writing ??= this.#write()
  }

  async #write(): Promise<void> {
    // Lets others of the same turn join, and the caller note the write before it ends.
    await Promise.resolve()
    while (this.#waiting.length > 0 && !this.#failure) {
      const batch = this.#waiting
      this.#waiting = []
      if (!(await this.#append(batch))) break
    }
    // Cleared in the turn that found nothing more, so that later events start this again.
    this.#writing = undefined
  }

  async #append(batch: readonly Waiting[]): Promise<boolean> {
    const { file, schedule } = this.#parts
    let last = this.#sum
    const pieces = batch.map(({ slab: of, bytes }) => {
      const piece = of.subarray(0, bytes)
      last = finishBlock(piece, Block.events, last)
      return piece
    })
    try {
      await file.append(pieces)
    } catch (error) {
      this.#fail(error)
      return false
    }
    this.#sum = last
    for (const { slab: of, bytes, before } of batch) {
      this.#note({ ...before, offset: this.#length })
      this.#length += bytes
      this.#waiting_bytes -= bytes
      giveBack(of)
    }
    schedule.unsynced(this.#flushable)
    if (this.#drained && this.#waiting_bytes <= goOn_bytes) {
      this.#drained.resolve()
      this.#drained = undefined
    }
    return true
  }

  #note(entry: IndexEntry): void {
    const last = this.#index.at(-1)
    if (last && entry.offset - last.offset < this.#spacing_bytes) return
    this.#index.push(entry)
    if (this.#index.length <= mostEntries) return
    this.#index = this.#index.filter((_, at) => at % 2 === 0)
    this.#spacing_bytes *= 2
  }

  #fail(error: unknown): void {
    if (this.#failure) return
    this.#failure = error as Error
    this.#waiting = []
    this.#block = undefined
    this.#parts.schedule.forget(this.#flushable)
    this.#drained?.reject(this.#failure)
    this.#drained = undefined
    this.#parts.onFailed(this.#failure)
  }

  async #seal(ending: Ending): Promise<void> {
    const { file, clock, key } = this.#parts
    const end: End = {
      ending,
      ended_at: iso(clock.now()),
      duration_ms: this.#time_ms,
      output_bytes: this.#output_bytes,
      index: this.#index,
      ...defined({ interruptions: this.#interruptions.length > 0 ? this.#interruptions : undefined }),
    }
    await file.append(endBlocks(end, this.#length, this.#sum, key))
    await file.sync()
    await file.close(true)
  }
}

/** End and seal for `offset`, behind a block with this sum. */
export function endBlocks(end: End, offset: number, sum: Buffer, key: Pick<RecordingKey, 'sign'>): Buffer[] {
  const last = blockOf(Block.end, Buffer.from(JSON.stringify(end)), sum)
  const endSum = last.subarray(5, head_bytes)
  const at = Buffer.alloc(8)
  at.writeBigUInt64BE(BigInt(offset))
  return [last, blockOf(Block.seal, Buffer.concat([at, key.sign(sealText(endSum, offset))]), endSum)]
}
