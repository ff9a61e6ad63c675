// The parts of a journal, for those who write and those who read one: names, events, and the bytes of
// both. The format is described whole in writer.ts.
import { createHash } from 'node:crypto'

export interface JournalName {
  readonly tenant_id: string
  readonly session_uid: string
  /** 0: the first recorded channel of the session. */
  readonly channel: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export interface Header extends JournalName, Size {
  readonly version: 1
  readonly started_at: string
  readonly device_uid: string
  readonly username: string
  /** As devices are told; absent: unknown. */
  readonly person?: string
  readonly term: string
  /** The installation's public key, Ed25519, raw, in base64, to compare with a known one. */
  readonly key: string
}

export type Mark =
  | { readonly type: 'start' }
  /** Shown to the client by the gateway, so it is a part of what the terminal showed. */
  | { readonly type: 'announcement'; readonly text: string }
  /** `command`: of an exec; a shell's commands are on its screen. */
  | { readonly type: 'program'; readonly program: string; readonly command?: string }
  | { readonly type: 'exit'; readonly status?: number; readonly signal?: string }
  /** The client is lost, and nobody sees what comes until the session is resumed. */
  | { readonly type: 'held' }
  | { readonly type: 'resumed'; readonly via: string }
  /**
   * From here on this person types; before the first one, the session's person. Only the echo is recorded.
   * `id`: of a user who joined.
   */
  | { readonly type: 'typist'; readonly by: string; readonly id?: string }

export type JournalEvent =
  | { readonly kind: 'output'; readonly time_ms: number; readonly bytes: Buffer }
  | ({ readonly kind: 'resize'; readonly time_ms: number } & Size)
  | { readonly kind: 'mark'; readonly time_ms: number; readonly mark: Mark }

export type Ending = 'closed' | 'failed' | 'cut off'

/** A place to begin reading: the block at `offset`, and the state before it. */
export interface IndexEntry extends Size {
  readonly time_ms: number
  readonly offset: number
  readonly output_bytes: number
  /** Absent: the person of the session. */
  readonly typist?: string
}

/** A time without a client, when nobody saw the output. */
export interface Interruption {
  readonly from_ms: number
  /** Absent: nobody reattached. */
  readonly until_ms?: number
  readonly why: string
  /** How the person reattached. */
  readonly via?: string
}

export interface End {
  readonly ending: Ending
  readonly ended_at: string
  readonly duration_ms: number
  readonly output_bytes: number
  readonly index: readonly IndexEntry[]
  readonly interruptions?: readonly Interruption[]
}

const mostInterruptions = 1_000

export function withMark(
  before: readonly Interruption[],
  time_ms: number,
  mark: Mark,
): readonly Interruption[] {
  const last = before.at(-1)
  const isOpen = last !== undefined && last.until_ms === undefined
  // A session that another client takes over is resumed without having lost one.
  if (mark.type === 'resumed')
    return isOpen ? [...before.slice(0, -1), { ...last, until_ms: time_ms, via: mark.via }] : before
  if (mark.type !== 'held' || isOpen || before.length >= mostInterruptions) return before
  return [...before, { from_ms: time_ms, why: 'client lost' }]
}

export const magic = Buffer.from('hawserJ1', 'latin1')
export const Block = { header: 1, events: 2, end: 3, seal: 4 } as const
export const head_bytes = 37
/** Bounds the memory of readers. */
export const longestBody_bytes = 16 * 1024 * 1024
/** The place of the end block, and the signature. */
export const seal_bytes = 8 + 64
export const Kind = { output: 1, resize: 2, mark: 3 } as const

export const noSum: Buffer = Buffer.alloc(32)

/** The sum of a block: over the sum before it, its length, its kind and its body. */
export function sumOf(before: Buffer, block: Buffer): Buffer {
  return createHash('sha256')
    .update(before)
    .update(block.subarray(0, 5))
    .update(block.subarray(head_bytes))
    .digest()
}

export function blockOf(kind: number, body: Buffer, before: Buffer): Buffer {
  const block = Buffer.allocUnsafe(head_bytes + body.length)
  body.copy(block, head_bytes)
  finishBlock(block, kind, before)
  return block
}

/** Writes the head in front of a body that is in its place; returns the block's sum. */
export function finishBlock(block: Buffer, kind: number, before: Buffer): Buffer {
  block.writeUInt32BE(block.length - head_bytes, 0)
  block[4] = kind
  const sum = sumOf(before, block)
  sum.copy(block, 5)
  return sum
}

/** The text that the key signs. Nothing else that it signs begins with these words. */
export function sealText(sum: Buffer, end_offset: number): Buffer {
  return Buffer.from(`hawser recording 1\n${sum.toString('hex')}\n${end_offset}\n`)
}

export function putVarint(into: Buffer, at: number, value: number): number {
  while (value >= 0x80) {
    into[at++] = (value % 0x80) | 0x80
    value = Math.floor(value / 0x80)
  }
  into[at++] = value
  return at
}

/** The length of a whole number up to 2^53. */
export const longestVarint_bytes = 8

export class JournalDamaged extends Error {
  override readonly name = 'JournalDamaged'
}

export class Cursor {
  readonly #bytes: Buffer
  #at = 0
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }
  get left(): number {
    return this.#bytes.length - this.#at
  }
  byte(): number {
    const value = this.#bytes[this.#at++]
    if (value === undefined) throw new JournalDamaged('a block ends in the middle of an event')
    return value
  }
  varint(): number {
    let [value, scale] = [0, 1]
    for (let count = 0; count < longestVarint_bytes; count++) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 0x80
    }
    throw new JournalDamaged('a number in a block is too long')
  }
  bytes(length: number): Buffer {
    if (length > this.left) throw new JournalDamaged('a block ends in the middle of an event')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}

export function* eventsOf(body: Buffer): Generator<JournalEvent> {
  const cursor = new Cursor(body)
  let time_ms = cursor.varint()
  while (cursor.left > 0) {
    const kind = cursor.byte()
    time_ms += cursor.varint()
    if (kind === Kind.output) yield { kind: 'output', time_ms, bytes: cursor.bytes(cursor.varint()) }
    else if (kind === Kind.resize)
      yield { kind: 'resize', time_ms, width: cursor.varint(), height: cursor.varint() }
    else if (kind === Kind.mark) yield { kind: 'mark', time_ms, mark: markOf(cursor.bytes(cursor.varint())) }
    else throw new JournalDamaged(`a block has an event of the unknown kind ${kind}`)
  }
}

type Fields = Readonly<Record<string, 'string' | 'number' | 'array'>>
const headerFields: Fields = {
  version: 'number',
  tenant_id: 'string',
  session_uid: 'string',
  channel: 'number',
  width: 'number',
  height: 'number',
  started_at: 'string',
  device_uid: 'string',
  username: 'string',
  term: 'string',
  key: 'string',
}
const endFields: Fields = {
  ending: 'string',
  ended_at: 'string',
  duration_ms: 'number',
  output_bytes: 'number',
  index: 'array',
}
const interruptionFields: Fields = { from_ms: 'number', why: 'string' }
const resumedFields: Fields = { until_ms: 'number', via: 'string' }
const entryFields: Fields = {
  time_ms: 'number',
  offset: 'number',
  output_bytes: 'number',
  width: 'number',
  height: 'number',
}

export const headerOf = (body: Buffer): Header => parsed(body, headerFields) as Header

export function endOf(body: Buffer): End {
  const end = parsed(body, endFields) as End
  for (const entry of end.index) requireFields(entry, entryFields)
  if (end.interruptions === undefined) return end
  requireFields(end, { interruptions: 'array' })
  for (const one of end.interruptions) {
    requireFields(one, interruptionFields)
    if (one.until_ms !== undefined) requireFields(one, resumedFields)
  }
  return end
}

const markOf = (body: Buffer): Mark => parsed(body, { type: 'string' }) as Mark

/** Throws JournalDamaged unless the JSON has these fields. */
function parsed(body: Buffer, fields: Fields): unknown {
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch (error) {
    throw new JournalDamaged('a block cannot be read', { cause: error })
  }
  requireFields(value, fields)
  return value
}

function requireFields(value: unknown, fields: Fields): void {
  const found = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  for (const [name, type] of Object.entries(fields)) {
    const fits = type === 'array' ? Array.isArray(found[name]) : typeof found[name] === type
    if (!fits) throw new JournalDamaged(`a block has no ${name}`)
  }
}
