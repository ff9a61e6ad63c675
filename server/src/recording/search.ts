// Searches a terminal's output. Control sequences are left out; those that move the cursor elsewhere end a
// line, and a backspace takes the last character back, so that corrected input is found in its final form. A
// call searches a bounded part and returns where to continue. Case does not count.
import { StringDecoder } from 'node:string_decoder'
import { shown } from './frames.ts'
import type { JournalEvent } from './journal.ts'
import { events, placeBefore } from './reader.ts'
import type { Source } from './window.ts'

export interface Hit {
  readonly time_ms: number
  readonly before: string
  readonly text: string
  readonly after: string
}

export interface Searched {
  readonly hits: readonly Hit[]
  /** Undefined: the search is complete. */
  readonly next: number | undefined
}

/** Bounds one call; every event counts as some output, however short. */
const looked_bytes = 4 * 1024 * 1024
const event_bytes = 64
/** Output is searched in pieces of this size, so that an event has at most a few pages of hits. */
const piece_bytes = 512
const mostHits = 50
const around = 60

export async function searchIn({ file, index }: Source, wanted: string, position: number): Promise<Searched> {
  const needle = fold(wanted)
  const from = placeBefore(index, (entry) => entry.output_bytes <= position)
  const decoder = new StringDecoder('utf8')
  const plain = plainText()
  const hits: Hit[] = []
  let count = from?.output_bytes ?? 0
  /** The end of the shown text: a match may begin in it. */
  let text = ''
  /** No match begins before this place of `text`. */
  let looked = 0
  /** The last match, until enough of its context is known. */
  let open: (Omit<Hit, 'after'> & { end: number }) | undefined
  const settle = (whatever: boolean): void => {
    if (!open) return
    const rest = text.slice(open.end)
    const [line = ''] = rest.split('\n', 1)
    if (!whatever && line.length === rest.length && line.length < around) return
    const { end: _, ...hit } = open
    hits.push({ ...hit, after: line.slice(0, around) })
    open = undefined
  }
  let done_bytes = 0
  for await (const { time_ms, bytes } of pieces(events(file, from))) {
    const known = Math.max(0, position - count)
    if (done_bytes >= looked_bytes || (!open && hits.length >= mostHits)) {
      settle(true)
      return { hits, next: count }
    }
    done_bytes += event_bytes + Math.max(0, bytes.length - known)
    count += bytes.length
    if (known >= bytes.length) continue
    text = plain(text, decoder.write(bytes.subarray(known)))
    looked = Math.min(looked, text.length)
    const folded = fold(text)
    for (let at = folded.indexOf(needle, looked); at >= 0; at = folded.indexOf(needle, looked)) {
      settle(true)
      looked = at + needle.length
      const line = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
      open = {
        time_ms,
        before: text.slice(Math.max(line, at - around), at),
        text: text.slice(at, looked),
        end: looked,
      }
    }
    settle(false)
    looked = Math.max(looked, text.length - needle.length + 1, 0)
    const cut = Math.max(0, Math.min(text.length - needle.length - around, open?.end ?? Infinity))
    text = text.slice(cut)
    looked -= cut
    if (open) open.end -= cut
  }
  settle(true)
  return { hits, next: undefined }
}

async function* pieces(
  all: AsyncIterable<JournalEvent>,
): AsyncGenerator<{ readonly time_ms: number; readonly bytes: Buffer }> {
  for await (const event of all) {
    const bytes = shown(event)
    if (!bytes) continue
    for (let at = 0; at < bytes.length; at += piece_bytes)
      yield { time_ms: event.time_ms, bytes: bytes.subarray(at, at + piece_bytes) }
  }
}

function fold(text: string): string {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return Array.from({ length: text.length }, (_, at) => {
    const one = text[at]!
    return one.toLowerCase().length === 1 ? one.toLowerCase() : one
  }).join('')
}

// eslint-disable-next-line no-control-regex
const printable = /[^\x00-\x1f\x7f-\x9f]*/y

/** Appends the printable part of a piece; an unfinished sequence waits for the next piece. */
function plainText(): (text: string, piece: string) => string {
  let state: 'text' | 'escape' | 'designation' | 'csi' | 'string' | 'string escape' = 'text'
  return (text, piece) => {
    for (let at = 0; at < piece.length; at++) {
      if (state === 'text') {
        printable.lastIndex = at
        const [run = ''] = printable.exec(piece) ?? []
        text += run
        at += run.length
        if (at >= piece.length) break
      }
      const one = piece[at]!
      const code = one.charCodeAt(0)
      if (code === 0x1b) state = state === 'string' ? 'string escape' : 'escape'
      else if (code === 0x18 || code === 0x1a) state = 'text'
      else if (state === 'string') {
        if (code === 0x07 || code === 0x9c) state = 'text'
      } else if (state === 'string escape' || state === 'escape') {
        if (one === '[') state = 'csi'
        else if (']PX^_'.includes(one)) state = 'string'
        else if (code >= 0x20 && code <= 0x2f) state = 'designation'
        else state = 'text'
      } else if (state === 'designation') {
        if (code >= 0x30) state = 'text'
      } else if (state === 'csi') {
        if (code < 0x40 || code > 0x7e) continue
        state = 'text'
        if (one === 'C') text += ' '
        else if ('ABEFGHdfJ'.includes(one) && !text.endsWith('\n')) text += '\n'
      } else if (code === 0x9b) state = 'csi'
      else if (code === 0x90 || code === 0x9d || code === 0x98 || code === 0x9e || code === 0x9f)
        state = 'string'
      else if (code === 0x0a) text += '\n'
      else if (code === 0x08) text = text.endsWith('\n') ? text : text.slice(0, -1)
      else if (code === 0x09) text += ' '
    }
    return text
  }
}
