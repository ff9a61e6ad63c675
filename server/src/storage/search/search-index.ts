// The interface of the search index, which has two implementations: SQLite's FTS5 in a file of its own, and
// tables of PostgreSQL. The index knows passages: a part of a recording's text, the words that are in
// it, and a compressed body. It finds passages by words, newest first; which lines of a passage match is
// for the caller to see. The number of a passage begins with its time, so that the order of numbers is
// the order of time.

/** One recorded terminal. */
export interface IndexedRecording {
  readonly tenant_id: string
  readonly session_uid: string
  readonly channel: number
  readonly device_uid: string
  readonly username: string
  /** Who opened the session; empty: unknown. */
  readonly person_id: string
  /** Milliseconds since 1970. */
  readonly started_ms: number
}

export interface NewPassage {
  /** Milliseconds since the start of the recording. */
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
  /** All of these, and words that begin with each of the prefixes. */
  readonly words: readonly string[]
  readonly prefixes: readonly string[]
  readonly device_uid?: string | undefined
  readonly username?: string | undefined
  /** One of these. */
  readonly persons?: readonly string[] | undefined
  /** Milliseconds since 1970; both included. */
  readonly from_ms?: number | undefined
  readonly to_ms?: number | undefined
  /** Only passages with a smaller number. */
  readonly below?: number | undefined
  readonly limit: number
}

/** A recording that is indexed to its end. */
export interface KnownRecording {
  readonly channel: number
  readonly device_uid: string
}

export interface SearchIndex extends AsyncDisposable {
  /** What is indexed of a session by this version of the program. */
  known(tenant_id: string, session_uid: string): Promise<KnownRecording[]>
  /** Begins a recording anew, and removes what there was of it; undefined: its session is gone. */
  begin(recording: IndexedRecording): Promise<number | undefined>
  /** False: the recording was removed or begun anew meanwhile. */
  add(recording: number, passages: readonly NewPassage[]): Promise<boolean>
  /** It is indexed to its end. */
  finish(recording: number): Promise<void>
  /** Removes a session, or all of a namespace, with every word. */
  remove(tenant_id: string, session_uid?: string): Promise<void>
  /** All recordings, or those of one namespace, count as not indexed; what is there can still be found. */
  expire(tenant_id?: string): Promise<void>
  find(query: PassageQuery): Promise<FoundPassage[]>
}

export interface SearchIndexParts {
  /** The words of a body: they are needed to remove it. */
  wordsOf(body: Uint8Array): string[]
}

/** Another number makes every recording be indexed again. */
export const indexVersion = 2

/** Numbers of passages in one second: few, because the index stores the differences between numbers. */
const slots = 2 ** 10
/** A number that is taken is tried again so often before the next second is. */
const tries = 8
/** How far behind its second a passage may come to lie. */
const late_ms = 60_000

/** The smallest number of a passage of this second. */
export const firstId = (ms: number): number => Math.max(0, Math.floor(ms / 1000)) * slots

/**
 * Numbers for passages. Each recording has another place within a second, so that two that are indexed at the
 * same time seldom meet; `taken` says how many numbers were, so that `next` gives another one.
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

/** Words that no text has: they begin with a character that `wordsOf` never gives. */
const mark = '\ue000'
export const filterWords = {
  namespace: (tenant_id: string): string => `${mark}n${tenant_id.replaceAll('-', '')}`,
  device: (uid: string): string => `${mark}d${uid.replaceAll(/[^0-9a-z]/gi, '').slice(0, 20)}`,
  username: (name: string): string => `${mark}u${Buffer.from(name).toString('hex').slice(0, 60)}`,
  person: (id: string): string => `${mark}p${Buffer.from(id).toString('hex').slice(0, 60)}`,
}

/** The words by which a passage is found that are not in its text. */
export const ownWords = ({ tenant_id, device_uid, username, person_id }: IndexedRecording): string[] => [
  filterWords.namespace(tenant_id),
  filterWords.device(device_uid),
  filterWords.username(username),
  ...(person_id === '' ? [] : [filterWords.person(person_id)]),
]

/** Every word that a query requires. */
export const requiredWords = ({ tenant_id, words, device_uid, username }: PassageQuery): string[] => [
  ...words,
  filterWords.namespace(tenant_id),
  ...(device_uid === undefined ? [] : [filterWords.device(device_uid)]),
  ...(username === undefined ? [] : [filterWords.username(username)]),
]

/** Words of which a query requires one; none: it does not. */
export const alternativeWords = ({ persons = [] }: PassageQuery): string[] => persons.map(filterWords.person)

/** The range of numbers that a query allows: from the first one to below the last one. */
export function idRange({ from_ms, to_ms, below }: PassageQuery, longest_ms: number): [number, number] {
  const end = to_ms === undefined ? Number.MAX_SAFE_INTEGER : firstId(to_ms + late_ms)
  return [
    from_ms === undefined ? 0 : firstId(from_ms - longest_ms),
    Math.min(end, below ?? Number.MAX_SAFE_INTEGER),
  ]
}

/** No passage holds lines that are further apart: see passages.ts of the search. */
export const longest_passage_ms = 10 * 60_000
