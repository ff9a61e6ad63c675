// A recording for a player: facts about it, and parts of it that begin anywhere. A part begins with the
// screen at a moment, or continues another one at a position, the number of bytes of output before it: any
// number is valid, so no position can be wrong. The size of a part is bounded.
import { snapshotAt } from './screen-snapshot.ts'
import { shown } from './frames.ts'
import type { Ending, Header, IndexEntry, Interruption, JournalEvent, Size } from './journal.ts'
import type { Reading } from './storage/storage.ts'
import { events, placeBefore } from './reader.ts'

/** An open journal. */
export interface Source {
  readonly file: Reading
  readonly header: Header
  readonly index: readonly IndexEntry[]
  readonly duration_ms: number
  readonly output_bytes: number
  readonly ending: Ending | 'going'
  readonly interruptions?: readonly Interruption[]
}

export type WindowEvent =
  | { readonly time_ms: number; readonly bytes: Buffer }
  | ({ readonly time_ms: number } & Size)
  | { readonly time_ms: number; readonly typist: string }

export interface Part {
  readonly time_ms: number
  readonly size: Size
  /** Empty where the part continues another one. */
  readonly screen: Buffer
  /** Empty: unknown. */
  readonly typist: string
  readonly events: readonly WindowEvent[]
  /** Undefined: this is the last part. */
  readonly next: number | undefined
}

/** The last event may go beyond it. */
const part_bytes = 128 * 1024
const mostEvents = 4_096

export async function partAt({ file, header, index }: Source, time_ms: number): Promise<Part> {
  const { size, bytes, output_bytes } = await snapshotAt(file, header, index, time_ms)
  return { time_ms, size, screen: bytes, ...(await collected(file, header, index, output_bytes)) }
}

export async function partFrom({ file, header, index }: Source, position: number): Promise<Part> {
  const from = placeBefore(index, (entry) => entry.output_bytes <= position)
  const part = await collected(file, header, index, position)
  return {
    time_ms: part.events[0]?.time_ms ?? from?.time_ms ?? 0,
    size: from ?? header,
    screen: Buffer.alloc(0),
    ...part,
  }
}

async function collected(
  file: Reading,
  { person = '' }: Header,
  index: readonly IndexEntry[],
  position: number,
): Promise<Pick<Part, 'events' | 'next' | 'typist'>> {
  const from = placeBefore(index, (entry) => entry.output_bytes <= position)
  const found: { time_ms: number; pieces?: Buffer[]; size?: Size; typist?: string }[] = []
  let count = from?.output_bytes ?? 0
  let next: number | undefined
  let typist = from?.typist ?? person
  for await (const event of events(file, from)) {
    if (count >= position + part_bytes || found.length >= mostEvents) {
      next = count
      break
    }
    const bytes = shown(event)
    if (bytes) {
      const known = Math.max(0, position - count)
      count += bytes.length
      if (known >= bytes.length) continue
      const last = found.at(-1)
      const piece = bytes.subarray(known)
      // A copy: a slice would hold the memory of its whole block.
      if (last?.pieces && last.time_ms === event.time_ms) last.pieces.push(Buffer.from(piece))
      else found.push({ time_ms: event.time_ms, pieces: [Buffer.from(piece)] })
    } else if (event.kind === 'resize' && count >= position)
      found.push({ time_ms: event.time_ms, size: { width: event.width, height: event.height } })
    else if (event.kind === 'mark' && event.mark.type === 'typist') {
      if (count < position) typist = event.mark.by
      else found.push({ time_ms: event.time_ms, typist: event.mark.by })
    }
  }
  return {
    typist,
    events: found.map(({ time_ms, pieces, size, typist: by }): WindowEvent => {
      if (pieces) return { time_ms, bytes: Buffer.concat(pieces) }
      return size ? { time_ms, ...size } : { time_ms, typist: by! }
    }),
    next,
  }
}

export async function programOf({ file }: Source): Promise<{ program: string; command: string }> {
  let looked = 0
  for await (const event of events(file)) {
    if (isProgram(event)) return { program: event.mark.program, command: event.mark.command ?? '' }
    // The mark stands before all output except an announcement, so the first few events decide.
    if (looked++ > 8) break
  }
  return { program: '', command: '' }
}

type ProgramEvent = Extract<JournalEvent, { kind: 'mark' }> & {
  mark: { type: 'program'; program: string; command?: string }
}
const isProgram = (event: JournalEvent): event is ProgramEvent =>
  event.kind === 'mark' && event.mark.type === 'program'
