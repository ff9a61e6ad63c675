// A journal in other forms: the frames of the interface and an asciicast. Both are text, so that bytes are
// decoded as UTF-8 over the borders of events: a character that was cut in two is whole in the later one, and
// what is no UTF-8 is replaced.
import { StringDecoder } from 'node:string_decoder'
import { iso } from '../kit/clock.ts'
import type { Header, JournalEvent, Size } from './journal.ts'

export interface PlayedFrame extends Size {
  readonly message: string
  readonly time: string
}

type Events = AsyncIterable<JournalEvent> | Iterable<JournalEvent>

/** Each piece of output with its time and the size of the terminal. */
export async function* framesOf(header: Header, events: Events): AsyncGenerator<PlayedFrame> {
  const started = Date.parse(header.started_at)
  let size: Size = { width: header.width, height: header.height }
  let time = header.started_at
  const text = new StringDecoder('utf8')
  for await (const event of events) {
    time = iso(started + event.time_ms)
    if (event.kind === 'resize') size = { width: event.width, height: event.height }
    const bytes = shown(event)
    if (!bytes) continue
    const message = text.write(bytes)
    // An empty text is only a part of a character.
    if (message !== '' || bytes.length === 0) yield { message, time, ...size }
  }
  const rest = text.end()
  if (rest !== '') yield { message: rest, time, ...size }
}

/** asciicast, version 2: a line of JSON for the header and one for each event. */
export async function* castOf(header: Header, events: Events): AsyncGenerator<string> {
  const { width, height, term, started_at } = header
  const timestamp = Math.floor(Date.parse(started_at) / 1000)
  yield line({ version: 2, width: width || 80, height: height || 24, timestamp, env: { TERM: term } })
  const text = new StringDecoder('utf8')
  let seconds = 0
  for await (const event of events) {
    seconds = event.time_ms / 1000
    if (event.kind === 'resize') yield line([seconds, 'r', `${event.width}x${event.height}`])
    if (event.kind === 'mark' && event.mark.type !== 'announcement')
      yield line([seconds, 'm', label(event.mark)])
    const bytes = shown(event)
    const message = bytes && text.write(bytes)
    if (message) yield line([seconds, 'o', message])
  }
  const rest = text.end()
  if (rest !== '') yield line([seconds, 'o', rest])
}

export const emptyCast = (timestamp_ms: number): string =>
  line({ version: 2, width: 80, height: 24, timestamp: Math.floor(timestamp_ms / 1000) })

export function shown(event: JournalEvent): Buffer | undefined {
  if (event.kind === 'output') return event.bytes
  return event.kind === 'mark' && event.mark.type === 'announcement'
    ? Buffer.from(event.mark.text)
    : undefined
}

function label(
  mark: Exclude<Extract<JournalEvent, { kind: 'mark' }>['mark'], { type: 'announcement' }>,
): string {
  if (mark.type === 'program')
    return mark.command === undefined ? mark.program : `${mark.program} ${mark.command}`
  if (mark.type === 'exit') return `exit ${mark.signal ?? mark.status ?? ''}`.trim()
  if (mark.type === 'typist') return `${mark.by} types`
  return mark.type === 'resumed' ? `resumed by ${mark.via}` : mark.type
}

const line = (value: unknown): string => `${JSON.stringify(value)}\n`
