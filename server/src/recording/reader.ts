// Reads a journal: whole blocks in order, each checked against the chain, so that the output is what was
// written. A file that was cut off, or is being written, ends at its last whole block. Memory holds one
// block.
import {
  Block,
  endOf,
  eventsOf,
  head_bytes,
  headerOf,
  JournalDamaged,
  longestBody_bytes,
  magic,
  noSum,
  seal_bytes,
  sumOf,
  type End,
  type Header,
  type IndexEntry,
  type JournalEvent,
} from './journal.ts'
import type { Reading } from './storage/storage.ts'

export interface ReadBlock {
  readonly offset: number
  readonly kind: number
  readonly sum: Buffer
  readonly body: Buffer
}

const chunk_bytes = 256 * 1024

/**
 * Whole blocks from an offset on. The chain is checked from `sum`, or else from the first block's own sum. A
 * block that does not fit is damage, unless it is the last thing in the file: then it was torn.
 */
export async function* blocks(file: Reading, from = magic.length, sum?: Buffer): AsyncGenerator<ReadBlock> {
  let offset = from
  let chunk: Buffer = Buffer.alloc(0)
  let chunkAt = from
  const bytes = async (at: number, length: number): Promise<Buffer | undefined> => {
    if (at < chunkAt || at + length > chunkAt + chunk.length) {
      chunk = await file.at(at, Math.max(length, chunk_bytes))
      chunkAt = at
    }
    return at + length <= chunkAt + chunk.length
      ? chunk.subarray(at - chunkAt, at - chunkAt + length)
      : undefined
  }
  for (;;) {
    const head = await bytes(offset, head_bytes)
    if (!head) return
    const length = head.readUInt32BE(0)
    // No writer makes such a length; a torn write can only have left fewer bytes.
    if (length > longestBody_bytes)
      throw new JournalDamaged(`the block at ${offset} has an impossible length`)
    const block = await bytes(offset, head_bytes + length)
    if (!block) return
    const own = Buffer.from(block.subarray(5, head_bytes))
    if (sum && !sumOf(sum, block).equals(own)) {
      if (offset + block.length === (await file.size()) && block[4] === Block.events) return
      throw new JournalDamaged(`the block at ${offset} was changed`)
    }
    yield { offset, kind: block[4]!, sum: own, body: block.subarray(head_bytes) }
    sum = own
    offset += block.length
  }
}

/** Ends the journal where it ends now: a slow reader must not see later events. */
export async function asOfNow(file: Reading): Promise<Reading> {
  const size = await file.size()
  return {
    ...file,
    size: async () => size,
    at: async (offset, length) =>
      offset < size ? file.at(offset, Math.min(length, size - offset)) : Buffer.alloc(0),
  }
}

/** Throws JournalDamaged when it is no journal, or its beginning is not whole. */
export async function readHeader(file: Reading): Promise<Header> {
  if (!(await file.at(0, magic.length)).equals(magic)) throw new JournalDamaged('this is not a recording')
  for await (const { kind, body } of blocks(file, magic.length, noSum)) {
    if (kind !== Block.header) break
    return headerOf(body)
  }
  throw new JournalDamaged('the recording has no beginning')
}

/** Found from the back; undefined: the journal is being written, or was cut off. */
export async function readEnd(file: Reading): Promise<End | undefined> {
  const size = await file.size()
  const last = await file.at(Math.max(0, size - head_bytes - seal_bytes), head_bytes + seal_bytes)
  if (last.length < head_bytes + seal_bytes || last[4] !== Block.seal || last.readUInt32BE(0) !== seal_bytes)
    return undefined
  const offset = Number(last.readBigUInt64BE(head_bytes))
  if (offset >= size) throw new JournalDamaged('the seal names a place behind the end of the file')
  for await (const { kind, body } of blocks(file, offset)) return kind === Block.end ? endOf(body) : undefined
  return undefined
}

export interface JournalOffset {
  readonly offset: number
}

export async function* events(file: Reading, from?: JournalOffset): AsyncGenerator<JournalEvent> {
  for await (const { kind, body } of from ? blocks(file, from.offset) : blocks(file, magic.length, noSum))
    if (kind === Block.events) yield* eventsOf(body)
}

/** Undefined: the start. */
export function placeBefore(
  index: readonly IndexEntry[],
  is: (entry: IndexEntry) => boolean,
): IndexEntry | undefined {
  let [low, high] = [0, index.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (is(index[middle]!)) low = middle + 1
    else high = middle
  }
  return index[low - 1]
}
