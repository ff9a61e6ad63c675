// Finds lines: the index yields passages that have the words, newest first, and their lines are matched with
// the query. The work of one call is bounded; it returns where the next one continues, so it may find nothing
// and not be the last.
import type { CommandSource } from '../recording/commands.ts'
import type { TranscriptLine, Typist } from '../recording/transcript.ts'
import type { IndexedRecording, SearchIndex } from '../storage/search/search-index.ts'
import { linesIn, textOf } from './passages.ts'
import { filterOf, matcher, requiredWords, type Query, type Range } from './query.ts'

export interface LineQuery {
  readonly tenant_id: string
  readonly query: Query
  /** Only commands. */
  readonly commands: boolean
  readonly device_uid?: string | undefined
  readonly device_uids?: ReadonlySet<string> | undefined
  readonly username?: string | undefined
  /** Who opened the session, or joined it and typed when the line was shown. */
  readonly persons?: readonly string[] | undefined
  /** Milliseconds since 1970; both included. */
  readonly from_ms?: number | undefined
  readonly to_ms?: number | undefined
  readonly after?: Cursor | undefined
  readonly limit: number
}

/** The place behind a hit. */
export interface Cursor {
  readonly passage: number
  /** The first line of that passage that is not examined yet. */
  readonly line: number
}

export interface LineHit extends IndexedRecording {
  /** Milliseconds since the start of the recording. */
  readonly time_ms: number
  readonly text: string
  readonly matches: readonly Range[]
  /** Where the command begins; undefined: it is output. */
  readonly command: { readonly at: number; readonly source: CommandSource } | undefined
  /** The guest who typed then; undefined: the person who opened the session. */
  readonly typist: Typist | undefined
  readonly before: readonly string[]
  readonly after: readonly string[]
}

export interface FoundLines {
  readonly hits: readonly LineHit[]
  /** Undefined: there is no more. */
  readonly next: Cursor | undefined
}

const work_ms = 150
/** Passages per question to the index: few first, because they answer most queries. */
const firstPassages = 16
const morePassages = 128
const contextLines = 2

export async function findLines(index: SearchIndex, wanted: LineQuery): Promise<FoundLines> {
  const started = performance.now()
  const matches = matcher(wanted.query)
  const mayMatch = filterOf(wanted.query)
  const { words, prefixes } = requiredWords(wanted.query)
  const { tenant_id, device_uid, username, persons, from_ms, to_ms, limit } = wanted
  const hits: LineHit[] = []
  let cursor: Cursor | undefined = wanted.after
  let looked = 0
  for (let count = firstPassages; ; count = morePassages) {
    const below = cursor && (cursor.line > 0 ? cursor.passage + 1 : cursor.passage)
    const passages = await index.find({
      tenant_id,
      words,
      prefixes,
      device_uid,
      username,
      persons,
      from_ms,
      to_ms,
      below,
      limit: count,
    })
    for (const { id, body, ...recording } of passages) {
      // At least one in each call, so that the next one continues behind it.
      if (looked++ > 0 && performance.now() - started > work_ms) return { hits, next: cursor }
      const before: Cursor | undefined = cursor
      cursor = { passage: id, line: 0 }
      if (!isOf(recording, wanted)) continue
      const text = textOf(body)
      if (!mayMatch(text)) continue
      const lines = linesIn(text)
      const end: number = before?.passage === id ? before.line : lines.length
      for (let line = end - 1; line >= 0; line--) {
        const found = lines[line]
        if (!found || !isWanted(found, recording, wanted)) continue
        const ranges = matches(found.text)
        if (!ranges) continue
        hits.push(hitOf(recording, lines, line, ranges))
        if (hits.length === limit) return { hits, next: { passage: id, line } }
      }
    }
    if (passages.length < count) return { hits, next: undefined }
  }
}

/** Checked again because words of the index are cut, so two names may share one. */
function isOf({ device_uid, username }: IndexedRecording, { device_uids, ...wanted }: LineQuery): boolean {
  if (wanted.device_uid !== undefined && wanted.device_uid !== device_uid) return false
  if (device_uids && !device_uids.has(device_uid)) return false
  return wanted.username === undefined || wanted.username === username
}

function isWanted(
  { time_ms, command, typist }: TranscriptLine,
  { started_ms, person_id }: Pick<IndexedRecording, 'started_ms' | 'person_id'>,
  { commands, persons, from_ms = -Infinity, to_ms = Infinity }: LineQuery,
): boolean {
  if (commands && !command) return false
  if (persons && !persons.includes(person_id) && !(typist && persons.includes(typist.id))) return false
  return started_ms + time_ms >= from_ms && started_ms + time_ms <= to_ms
}

function hitOf(
  recording: IndexedRecording,
  lines: readonly TranscriptLine[],
  line: number,
  matches: readonly Range[],
): LineHit {
  const { time_ms, text, command, typist } = lines[line]!
  const around = (from: number, to: number): string[] =>
    lines.slice(Math.max(0, from), to).map((one) => one.text)
  return {
    ...recording,
    time_ms,
    text,
    matches,
    command,
    typist,
    before: around(line - contextLines, line),
    after: around(line + 1, line + 1 + contextLines),
  }
}
