// Verifies that a recording is as it was written: it checks every byte. It also closes a journal that a crash
// cut off: it truncates the file to the last whole block, signs it and marks it as cut off.
import { defined } from '@hawser/contract/defined'
import type { Clock } from '../kit/clock.ts'
import { iso } from '../kit/clock.ts'
import {
  Block,
  endOf,
  eventsOf,
  head_bytes,
  headerOf,
  JournalDamaged,
  magic,
  noSum,
  seal_bytes,
  sealText,
  withMark,
  type End,
  type Ending,
  type Header,
  type IndexEntry,
  type Interruption,
} from './journal.ts'
import type { Appending, Reading } from './storage/storage.ts'
import { isSignedBy, type RecordingKey } from './key.ts'
import { blocks, type ReadBlock } from './reader.ts'
import { endBlocks } from './writer.ts'

export type Verification =
  | { readonly sound: true; readonly header: Header; readonly end: End }
  /** Whole as far as it goes, but never closed and signed. */
  | { readonly sound: false; readonly unfinished: boolean; readonly why: string }

interface Walked {
  readonly header: Header
  readonly end: { readonly block: ReadBlock; readonly end: End } | undefined
  readonly seal: ReadBlock | undefined
  readonly sum: Buffer
  readonly length: number
  readonly output_bytes: number
  readonly time_ms: number
  readonly index: IndexEntry[]
  readonly interruptions: readonly Interruption[]
  /** Why the walk ended early. */
  readonly damage: string | undefined
}

const spacing_bytes = 64 * 1024

/** Up to the first damage; throws JournalDamaged when not even the header can be read. */
async function walk(file: Reading): Promise<Walked> {
  if (!(await file.at(0, magic.length)).equals(magic)) throw new JournalDamaged('this is not a recording')
  let header: Header | undefined
  let end: Walked['end']
  let seal: ReadBlock | undefined
  let [sum, length, output_bytes, time_ms] = [noSum, magic.length, 0, 0]
  let size = { width: 0, height: 0 }
  const index: IndexEntry[] = []
  let damage: string | undefined
  let typist: string | undefined
  let interruptions: readonly Interruption[] = []
  const look = (block: ReadBlock): void => {
    if (!header !== (block.kind === Block.header))
      throw new JournalDamaged('a recording has one header, at its beginning')
    if (seal || (end && block.kind !== Block.seal)) throw new JournalDamaged('something follows the end')
    if (block.kind === Block.header) {
      header = headerOf(block.body)
      size = { width: header.width, height: header.height }
    } else if (block.kind === Block.events) {
      if (block.offset - (index.at(-1)?.offset ?? -spacing_bytes) >= spacing_bytes)
        index.push({
          time_ms,
          offset: block.offset,
          output_bytes,
          ...size,
          ...(typist === undefined ? {} : { typist }),
        })
      for (const event of eventsOf(block.body)) {
        time_ms = event.time_ms
        if (event.kind === 'resize') size = { width: event.width, height: event.height }
        if (event.kind === 'output') output_bytes += event.bytes.length
        if (event.kind === 'mark' && event.mark.type === 'announcement')
          output_bytes += Buffer.byteLength(event.mark.text)
        if (event.kind === 'mark' && event.mark.type === 'typist') typist = event.mark.by
        if (event.kind === 'mark') interruptions = withMark(interruptions, time_ms, event.mark)
      }
    } else if (block.kind === Block.end) end = { block, end: endOf(block.body) }
    else if (block.kind === Block.seal) seal = block
    else throw new JournalDamaged(`the block at ${block.offset} is of an unknown kind`)
    sum = block.sum
    length = block.offset + head_bytes + block.body.length
  }
  try {
    for await (const block of blocks(file, magic.length, noSum)) look(block)
  } catch (error) {
    if (!(error instanceof JournalDamaged)) throw error
    damage = error.message
  }
  if (!header) throw new JournalDamaged(damage ?? 'the recording has no beginning')
  return { header, end, seal, sum, length, output_bytes, time_ms, index, interruptions, damage }
}

/** `key`: the public key that must have signed; else the one in the recording. */
export async function verifyJournal(file: Reading, key?: string): Promise<Verification> {
  const no = (why: string, unfinished = false): Verification => ({ sound: false, unfinished, why })
  try {
    const { header, end, seal, length, damage } = await walk(file)
    if (damage !== undefined) return no(damage)
    if (!end || !seal) return no('the recording was never closed', true)
    if (length !== (await file.size())) return no('something follows the end')
    if (seal.body.length !== seal_bytes) return no('the signature is damaged')
    const offset = Number(seal.body.readBigUInt64BE(0))
    if (offset !== end.block.offset) return no('the signature is of another recording')
    if (!isSignedBy(header.key, sealText(end.block.sum, offset), seal.body.subarray(8)))
      return no('the signature is wrong')
    if (key !== undefined && key !== header.key) return no(`it was signed by another key, ${header.key}`)
    return { sound: true, header, end: end.end }
  } catch (error) {
    if (error instanceof JournalDamaged) return no(error.message)
    throw error
  }
}

/** The missing end of a journal that another server writes, or will close at its next start. */
export async function unended(
  file: Reading,
): Promise<Pick<End, 'index' | 'interruptions' | 'duration_ms' | 'output_bytes'> & { ending: Ending }> {
  const { index, interruptions, time_ms, output_bytes } = await walk(file)
  return { index, interruptions, duration_ms: time_ms, output_bytes, ending: 'cut off' }
}

/**
 * Ends a journal that was cut off; undefined: nothing in it can be read. What lies behind the last whole
 * block goes: a loss of power can leave zeros there.
 */
export async function closeJournal(
  file: Appending & Reading,
  key: Pick<RecordingKey, 'sign'>,
  clock: Clock,
): Promise<{ header: Header; ending: Ending } | undefined> {
  let walked: Walked
  try {
    walked = await walk(file)
  } catch (error) {
    if (error instanceof JournalDamaged) return undefined
    throw error
  }
  const { header, end, seal, sum, length, output_bytes, time_ms, index, interruptions } = walked
  if (seal) await file.cut(length)
  else {
    // An end without its seal is written anew.
    const at = end ? end.block.offset : length
    const before = end ? await sumBefore(file, end.block.offset) : sum
    await file.cut(at)
    const ending: Ending = end ? end.end.ending : 'cut off'
    const last: End = {
      ending,
      ended_at: iso(clock.now()),
      duration_ms: time_ms,
      output_bytes,
      index,
      ...defined({ interruptions: interruptions.length > 0 ? interruptions : undefined }),
    }
    await file.append(endBlocks(last, at, before, key))
    await file.sync()
  }
  await file.close(true)
  return { header, ending: end?.end.ending ?? 'cut off' }
}

async function sumBefore(file: Reading, offset: number): Promise<Buffer> {
  let sum: Buffer = noSum
  for await (const block of blocks(file, magic.length, noSum)) {
    if (block.offset >= offset) break
    sum = block.sum
  }
  return sum
}
