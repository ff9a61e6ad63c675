// The interface of the search index, implemented by SQLite's FTS5 in a file of its own and by tables of
// PostgreSQL. A passage is a part of a recording's text, its words, and a compressed body. The index finds
// passages by words, newest first; the caller finds the matching lines. Passage numbers begin with their
// time, so they sort by time.

export interface IndexedRecording {
  readonly tenant_id: string
  readonly session_uid: string
  readonly channel: number
  readonly device_uid: string
  readonly username: string
  /** Empty: unknown. */
  readonly person_id: string
  readonly started_ms: number
}

export interface NewPassage {
  readonly time_ms: number
  readonly words: readonly string[]
  readonly body: Uint8Array
}

export interface FoundPassage extends IndexedRecording {
  readonly id: number
  readonly body: Uint8Array
}

export interface PassageQuery {
  readonly tenant_id: string
  readonly words: readonly string[]
  readonly prefixes: readonly string[]
  readonly device_uid?: string | undefined
  readonly username?: string | undefined
  readonly persons?: readonly string[] | undefined
  /** Inclusive. */
  readonly from_ms?: number | undefined
  readonly to_ms?: number | undefined
  readonly below?: number | undefined
  readonly limit: number
}

export interface KnownRecording {
  readonly channel: number
  readonly device_uid: string
}

export interface SearchIndex extends AsyncDisposable {
  /** Ignores what other versions of the program indexed. */
  known(tenant_id: string, session_uid: string): Promise<KnownRecording[]>
  /** Replaces a recording's passages; undefined: its session is gone. */
  begin(recording: IndexedRecording): Promise<number | undefined>
  /** False: the recording was removed or begun anew. */
  add(recording: number, passages: readonly NewPassage[]): Promise<boolean>
  finish(recording: number): Promise<void>
  remove(tenant_id: string, session_uid?: string): Promise<void>
  /** Marks recordings as not indexed; their passages can still be found. */
  expire(tenant_id?: string): Promise<void>
  find(query: PassageQuery): Promise<FoundPassage[]>
}

export interface SearchIndexParts {
  /** The words of a body, which removing it needs. */
  wordsOf(body: Uint8Array): string[]
}

/** A new number has every recording indexed again. */
export const indexVersion = 2

/** Few numbers per second, because the index stores the differences between them. */
const slots = 2 ** 10
/** Tries before the next second is used. */
const tries = 8
const late_ms = 60_000

export const firstId = (ms: number): number => Math.max(0, Math.floor(ms / 1000)) * slots

/**
 * Numbers for passages. Each recording has its own place within a second, so that concurrent ones seldom
 * meet; `next` skips the numbers `taken`.
 */
export function passageIds(): { next(at_ms: number, taken: number): number } {
  let slot = Math.floor(Math.random() * slots)
  return {
    next(at_ms, taken) {
      slot = taken > 0 ? Math.floor(Math.random() * slots) : (slot + 1) % slots
      return firstId(at_ms + Math.floor(taken / tries) * 1000) + slot
    },
  }
}

/** Begins words that no text has: `wordsOf` never yields it. */
const mark = '\ue000'
export const filterWords = {
  namespace: (tenant_id: string): string => `${mark}n${tenant_id.replaceAll('-', '')}`,
  device: (uid: string): string => `${mark}d${uid.replaceAll(/[^0-9a-z]/gi, '').slice(0, 20)}`,
  username: (name: string): string => `${mark}u${Buffer.from(name).toString('hex').slice(0, 60)}`,
  person: (id: string): string => `${mark}p${Buffer.from(id).toString('hex').slice(0, 60)}`,
}

/** Index words for a passage's properties, which are not in its text. */
export const ownWords = ({ tenant_id, device_uid, username, person_id }: IndexedRecording): string[] => [
  filterWords.namespace(tenant_id),
  filterWords.device(device_uid),
  filterWords.username(username),
  ...(person_id === '' ? [] : [filterWords.person(person_id)]),
]

export const requiredWords = ({ tenant_id, words, device_uid, username }: PassageQuery): string[] => [
  ...words,
  filterWords.namespace(tenant_id),
  ...(device_uid === undefined ? [] : [filterWords.device(device_uid)]),
  ...(username === undefined ? [] : [filterWords.username(username)]),
]

export const alternativeWords = ({ persons = [] }: PassageQuery): string[] => persons.map(filterWords.person)

/** First number, and the number after the last. */
export function idRange({ from_ms, to_ms, below }: PassageQuery, longest_ms: number): [number, number] {
  const end = to_ms === undefined ? Number.MAX_SAFE_INTEGER : firstId(to_ms + late_ms)
  return [
    from_ms === undefined ? 0 : firstId(from_ms - longest_ms),
    Math.min(end, below ?? Number.MAX_SAFE_INTEGER),
  ]
}

export const longest_passage_ms = 10 * 60_000
