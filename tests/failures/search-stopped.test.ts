// A server that stops while recordings wait to be indexed: after the next start all of them are indexed.
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { search, type SearchParts } from '../../server/src/search/search.ts'
import { adopt } from '../../server/src/storage/search/sqlite.ts'
import { eventually } from '../harness/eventually.ts'
import { startPlace } from '../harness/place.ts'
import { recordSession } from '../harness/recorded.ts'

test('recordings that wait when the server stops are indexed after its next start', async () => {
  await using place = await startPlace()
  const { clock, stores, recordings } = place.rooms
  // It has an index of its own.
  await place.rooms.search[Symbol.asyncDispose]()
  const uids: string[] = []
  for (let n = 0; n < 5; n++) uids.push(await recordSession(place.rooms, { lines: [`curlew ${n}\r\n`] }))
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  const file = path.join(folder, 'search.db')
  adopt(file)
  const errors: unknown[] = []
  const opened = (read: SearchParts['journals']['read']) =>
    search({
      place: { file },
      queue: stores.searchQueue,
      journals: { list: recordings.channels, read },
      clock,
      hasRoom: () => true,
      onIndexed: () => undefined,
      onError: (error) => void errors.push(error),
      onGivenUp: () => undefined,
    })
  try {
    const stopped = opened(async (name) => {
      const reading = await recordings.read(name)
      let begun = 0
      // The server reads the head of it; then the thread begins, and gets nothing.
      return {
        async at(offset, length) {
          if (offset === 0) begun++
          return begun === 1 ? reading.at(offset, length) : new Promise<never>(() => undefined)
        },
        size: () => reading.size(),
        [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose](),
      }
    })
    const round = stopped.round()
    await eventually(async () => expect(stopped.waiting).toBe(4))
    // A recording that has just ended waits as well.
    stopped.ended({ tenant_id: sample.tenant, session_uid: uids[0] ?? '', channel: 0 })
    await stopped[Symbol.asyncDispose]()
    await round
    expect(errors).toEqual([])
    expect(await stores.searchQueue.count(sample.tenant)).toBe(5)

    await using next = opened(recordings.read)
    await next.round()
    expect(await stores.searchQueue.count(sample.tenant)).toBe(0)
    const query = { terms: [{ words: ['curlew'], prefix: false }] }
    const wanted = { tenant_id: sample.tenant, query, commands: false, limit: 9 }
    // One call does a bounded amount of work, and may end before all of them are found.
    let { hits, next: after } = await next.find(wanted)
    while (after) {
      const more = await next.find({ ...wanted, after })
      hits = [...hits, ...more.hits]
      after = more.next
    }
    expect(hits.map(({ session_uid }) => session_uid).toSorted()).toEqual(uids.toSorted())
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
