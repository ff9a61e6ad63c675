// Passages: the transcript of a recording in parts of some hundred lines, which the index finds. The lines
// are stored with it, compressed, so that a hit can be shown with its surroundings.
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { CommandSource } from '../recording/commands.ts'
import type { TranscriptLine, Typist } from '../recording/transcript.ts'
import { filterWords } from '../storage/search/search-index.ts'
import { indexed, wordsOf } from './words.ts'

export interface Passage {
  /** When its first line was shown, in milliseconds since the start of the recording. */
  readonly time_ms: number
  /** Every word of its lines and every guest who typed, each once. */
  readonly words: readonly string[]
  readonly body: Buffer
}

const mostLines = 1_024
const most_chars = 65_536
/** Lines that are further apart are in different passages, so that a passage has one time. */
export const longest_passage_ms = 10 * 60_000
const largest_bytes = 1024 * 1024

export class PassageMaker {
  #lines: TranscriptLine[] = []
  #chars = 0
  #first_ms = Infinity
  #last_ms = -Infinity

  /** The passage that ends before this line. */
  add(line: TranscriptLine): Passage | undefined {
    const first_ms = Math.min(this.#first_ms, line.time_ms)
    const last_ms = Math.max(this.#last_ms, line.time_ms)
    const fits =
      this.#lines.length < mostLines &&
      this.#chars + line.text.length <= most_chars &&
      last_ms - first_ms <= longest_passage_ms
    const full = fits ? undefined : this.take()
    this.#lines.push(line)
    this.#chars += line.text.length
    this.#first_ms = Math.min(this.#first_ms, line.time_ms)
    this.#last_ms = Math.max(this.#last_ms, line.time_ms)
    return full
  }

  take(): Passage | undefined {
    if (this.#lines.length === 0) return undefined
    const passage = { time_ms: this.#first_ms, words: wordsOfLines(this.#lines), body: bodyOf(this.#lines) }
    this.#lines = []
    this.#chars = 0
    this.#first_ms = Infinity
    this.#last_ms = -Infinity
    return passage
  }
}

const letters: Readonly<Record<CommandSource, string>> = { marks: 'm', prompt: 'p', exec: 'x' }
const sources: Readonly<Record<string, CommandSource>> = { m: 'marks', p: 'prompt', x: 'exec' }

/**
 * A line of text for each: the moment, the kind with the place of the command, and the text. A change of
 * typist is noted behind the kind.
 */
function bodyOf(lines: readonly TranscriptLine[]): Buffer {
  let before_ms = 0
  let before: string | undefined
  const text = lines.map(({ time_ms, text: shown, command, typist }) => {
    const later_ms = Math.round(time_ms) - before_ms
    before_ms = Math.round(time_ms)
    const kind = command ? `${letters[command.source]}${command.at.toString(36)}` : ''
    const by = typist?.id === before ? '' : `~${typist ? `${typist.id} ${typist.name}` : ''}`
    before = typist?.id
    return `${later_ms === 0 ? '' : later_ms.toString(36)}\t${kind}${by.replaceAll(/[\t\n]/g, ' ')}\t${shown}`
  })
  return deflateRawSync(text.join('\n'), { level: 6 })
}

/** The lines of a body as one text, with what else is known of each before it. */
export const textOf = (body: Uint8Array): string =>
  inflateRawSync(body, { maxOutputLength: largest_bytes }).toString()

export const linesOf = (body: Uint8Array): TranscriptLine[] => linesIn(textOf(body))

export function linesIn(text: string): TranscriptLine[] {
  let time_ms = 0
  let typist: Typist | undefined
  return text.split('\n').map((line) => {
    const [later = '', about = '', ...rest] = line.split('\t')
    time_ms += later === '' ? 0 : Number.parseInt(later, 36)
    const [, kind = '', by] = /^([^~]*)(?:~(.*))?$/.exec(about) ?? []
    if (by !== undefined) typist = typistOf(by)
    const source = sources[kind.slice(0, 1)]
    return {
      time_ms,
      text: rest.join('\t'),
      command: source && { at: Number.parseInt(kind.slice(1), 36), source },
      ...(typist ? { typist } : {}),
    }
  })
}

function typistOf(by: string): Typist | undefined {
  const [id = '', ...name] = by.split(' ')
  return id === '' ? undefined : { id, name: name.join(' ') }
}

/** Every word of a body, once: what the index was given for it. */
export const wordsOfBody = (body: Uint8Array): string[] => wordsOfLines(linesOf(body))

function wordsOfLines(lines: readonly TranscriptLine[]): string[] {
  const words = new Set<string>()
  for (const { text, typist } of lines) {
    for (const word of wordsOf(text)) words.add(indexed(word))
    if (typist) words.add(filterWords.person(typist.id))
  }
  return [...words]
}
