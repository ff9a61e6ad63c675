// A member sends 60 searches inside of one recording at once and leaves. Each ran on the server's only
// thread, none waited for another, and all went on without their caller: an `ssh` of another namespace took
// 17 seconds. Searches run on a thread of their own now. Those of a namespace wait in a bounded queue,
// namespaces take turns, and a search ends with its caller. The test counts processor time of this thread,
// reads of the journal, and answers.
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { keyFrom } from '../../server/src/recording/key.ts'
import { recordings } from '../../server/src/recording/recordings.ts'
import { diskStorage } from '../../server/src/recording/storage/disk.ts'
import type { JournalStorage } from '../../server/src/recording/storage/storage.ts'
import { eventually } from '../harness/eventually.ts'
import { recordSession } from '../harness/recorded.ts'
import { sharedPlace } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const place = sharedPlace()
/** Text that is corrected all the time. */
const output = 'x\bpetrel\b\b'.repeat(6_000)
const pieces = 100
let uid = ''

beforeAll(async () => {
  uid = await recordSession(place.rooms, { lines: Array.from({ length: pieces }, () => output) })
})

const searching = (text = 'albatross') =>
  place.owner.recordings.search({ params: { uid, channel: '0' }, query: { text } })

/** Undefined: whoever asked has left. */
const asking = async (signal: AbortSignal) =>
  fetch(`${place.url}/api/sessions/${uid}/recording/0/search?text=albatross`, {
    headers: { authorization: `Bearer ${await place.world.token('owner')}` },
    signal,
  }).catch(() => undefined)

test('the server does not search on the thread that everybody waits for', async () => {
  await searching()
  const before = { here: process.threadCpuUsage(), all: process.cpuUsage() }
  for (let round = 0; round < 2; round++) await searching()
  const [here, all] = [process.threadCpuUsage(before.here), process.cpuUsage(before.all)]
  expect(here.user + here.system).toBeLessThan((all.user + all.system) / 2)
})

test('searches beyond the queue of a namespace are refused, and another namespace has its turn', async () => {
  const theirs = await recordSession(place.rooms, {
    tenant: sample.otherTenant,
    device: 'e'.repeat(64),
    lines: ['gannet\r\n'],
  })
  const left = new AbortController()
  const statuses: number[] = []
  const many = Array.from({ length: 60 }, async () => {
    const answer = await asking(left.signal)
    if (answer) statuses.push(answer.status)
  })
  await eventually(() => expect(statuses).toContain(429))
  const { body } = await place.stranger.recordings.search({
    params: { uid: theirs, channel: '0' },
    query: { text: 'gannet' },
  })
  expect(body.found).toHaveLength(1)
  // The other namespace did not wait for all of them.
  expect(statuses.length).toBeLessThan(many.length)
  left.abort()
  await Promise.all(many)
  expect((await searching()).status).toBe(200)
})

test('the work ends with its caller', async () => {
  const searched = vi.spyOn(place.rooms.recordings, 'search')
  const left = new AbortController()
  const asked = asking(left.signal)
  await eventually(() => expect(searched).toHaveBeenCalled())
  left.abort()
  await asked
  await eventually(() => expect(searched.mock.lastCall?.[3]?.aborted).toBe(true))
  searched.mockRestore()
})

test('a search whose caller has left reads no further, and one that waits reads nothing', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-search-'))
  const disk = diskStorage(folder)
  const left = new AbortController()
  let reads = 0
  const storage: JournalStorage = {
    ...disk,
    async read(name) {
      const file = await disk.read(name)
      return {
        size: () => file.size(),
        async at(offset, length) {
          // Not the header and the end.
          if (length > 64 * 1024 && offset > 1_024 * 1_024 && ++reads === 1) left.abort(new Error('gone'))
          return file.at(offset, length)
        },
        [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
      }
    },
  }
  const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
  await using recorded = recordings({ storage, key, clock: Date, onFailed: () => undefined })
  const about = {
    tenant_id: sample.tenant,
    session_uid: uid,
    device_uid: uid,
    username: 'root',
    term: 'xterm',
  }
  const recording = await recorded.begin({ ...about, width: 80, height: 24 })
  for (let piece = 0; piece < pieces; piece++) await recording.output(Buffer.from(output))
  await recording.finish()
  const search = () => recorded.search(recording.name, 'albatross', 0, left.signal)
  const outcomes = await Promise.allSettled([search(), search(), search()])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(reads).toBe(1)
  rmSync(folder, { recursive: true, force: true })
})

test('a recording of tiny pieces, or of one that is found everywhere, is searched in bounded parts', async () => {
  const tiny = await recordSession(place.rooms, { lines: Array.from({ length: 100_000 }, () => 'a') })
  const search = async (from: number) =>
    (await place.owner.recordings.search({ params: { uid: tiny, channel: '0' }, query: { text: 'b', from } }))
      .body
  const first = await search(0)
  expect(first.next).toBeGreaterThan(0)
  expect((await search(first.next ?? 0)).next).toBeNull()
  const { body } = await searching('x')
  expect(body.found.length).toBeLessThan(1_000)
  expect(body.next).toBeGreaterThan(0)
})

test('a search ends although nothing readable follows the last match', async () => {
  const silent = '\u001b[31m'.repeat(20_000)
  const quiet = await recordSession(place.rooms, {
    lines: ['fulmar', ...Array.from({ length: 60 }, () => silent)],
  })
  const { body } = await place.owner.recordings.search({
    params: { uid: quiet, channel: '0' },
    query: { text: 'fulmar' },
  })
  expect(body.found).toHaveLength(1)
  expect(body.next).toBeGreaterThan(0)
})
