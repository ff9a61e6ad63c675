// The thread of the search: it has the index open, plays recordings and looks for lines, so that neither
// stops the server's own thread. One indexes, another one answers. The server's thread reads journals; this
// one asks it for parts.
import { parentPort, workerData } from 'node:worker_threads'
import { invariant } from '@hawser/contract/failures'
import { calls, type Calls } from '../recording/calls.ts'
import { borrowed, type JournalReader } from '../recording/lent-journals.ts'
import { sqliteIndex } from '../storage/search/sqlite.ts'
import type { IndexedRecording, SearchIndex } from '../storage/search/search-index.ts'
import { findLines, type LineQuery } from './finding.ts'
import { indexRecording } from './indexing.ts'
import { wordsOfBody } from './passages.ts'

/** SQLite's file, or PostgreSQL. */
export type IndexPlace = { readonly file: string } | { readonly url: string }

const opening = open(workerData as IndexPlace)

async function open(place: IndexPlace): Promise<SearchIndex> {
  if ('file' in place) return sqliteIndex(place.file, { wordsOf: wordsOfBody })
  const { postgresIndex } = await import('../storage/search/postgres.ts')
  // A query that meets a broken connection fails by itself.
  return postgresIndex(place.url, () => undefined)
}

const offers = {
  async index(recording: IndexedRecording, journal: number) {
    return indexRecording(await opening, recording, borrowed(server, journal))
  },
  find: async (query: LineQuery) => findLines(await opening, query),
  known: async (tenant_id: string, session_uid: string) => (await opening).known(tenant_id, session_uid),
  remove: async (tenant_id: string, session_uid?: string) => (await opening).remove(tenant_id, session_uid),
  expire: async (tenant_id?: string) => (await opening).expire(tenant_id),
  async close() {
    await (await opening)[Symbol.asyncDispose]()
  },
}
export type SearchThread = typeof offers

invariant(parentPort, 'this file is a worker')
const server: Calls<JournalReader> = calls<JournalReader>(parentPort, offers)
