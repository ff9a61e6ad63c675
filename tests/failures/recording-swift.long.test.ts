// Recordings in a real S3-compatible store: sent when they are finished, read there by ranges, removed there;
// and a store that is away, that refuses, or that a crash kept from being reached.
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { createBucket } from '../harness/bucket.ts'
import { startStore, type Store } from '../harness/s3.ts'
import { startService } from '../harness/service.ts'
import { buildWorld } from '../harness/world.ts'
import type { JournalName } from '../../server/src/recording/journal.ts'
import { objectStorage } from '../../server/src/recording/storage/object-storage.ts'
import { keyFrom } from '../../server/src/recording/key.ts'
import { recordings } from '../../server/src/recording/recordings.ts'
import { verifyJournal } from '../../server/src/recording/verify.ts'
import { eventually } from '../harness/eventually.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let store: Store
beforeAll(async () => {
  store = await startStore()
  await createBucket(store, 'tapes')
})
afterAll(() => store[Symbol.asyncDispose]())

const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
const about = {
  tenant_id: sample.tenant,
  device_uid: sample.device,
  username: 'root',
  term: 'xterm',
  width: 80,
  height: 24,
}
let sessions = 0
const newSession = () => (++sessions).toString(16).padStart(64, '0')
const inTime = <T>(check: () => T | Promise<T>) => eventually(check, 60_000)

function place(change: { folder?: string; secretKey?: string } = {}) {
  const folder = change.folder ?? mkdtempSync(path.join(os.tmpdir(), 'hawser-spool-'))
  const delayed: Error[] = []
  const storage = objectStorage({
    address: 's3://tapes/kept',
    endpoint: store.endpoint,
    region: 'us-east-1',
    accessKey: store.accessKey,
    secretKey: change.secretKey ?? store.secretKey,
    folder,
    onDelayed: (error) => delayed.push(error),
  })
  const failed: Error[] = []
  const recorded = recordings({
    storage,
    key,
    clock: { now: Date.now },
    onFailed: (error) => failed.push(error),
  })
  return {
    folder,
    storage,
    recorded,
    delayed,
    failed,
    async [Symbol.asyncDispose]() {
      await recorded[Symbol.asyncDispose]()
      await storage[Symbol.asyncDispose]()
      if (change.folder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

const journals = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.journal'))
    : []

async function shown(
  { recorded }: Pick<ReturnType<typeof place>, 'recorded'>,
  name: JournalName,
): Promise<string> {
  let all = ''
  for await (const { message } of recorded.frames(name)) all += message
  return all
}

test('a recording is sent when it is finished, and read, searched and verified in the store', async () => {
  await using here = place()
  const session_uid = newSession()
  const one = await here.recorded.begin({ ...about, session_uid })
  await one.output(Buffer.from('while it goes on'))
  expect(await shown(here, one.name)).toBe('while it goes on')
  expect(journals(here.folder)).toHaveLength(1)
  await one.finish()
  await inTime(() => expect([journals(here.folder), here.storage.waiting]).toEqual([[], 0]))
  // Another one of the same session does not take its place.
  const two = await here.recorded.begin({ ...about, session_uid })
  expect(two.name.channel).toBe(1)
  await two.output(Buffer.from('the second'))
  await two.finish()
  await inTime(() => expect(journals(here.folder)).toEqual([]))
  // Nor does one after a restart.
  await using after = place()
  await after.recorded.post({ ...about, session_uid }, { message: 'posted', width: 80, height: 24 })
  const names = await after.recorded.channels(sample.tenant, session_uid)
  expect(names.map(({ channel }) => channel)).toEqual([0, 1, 2])
  expect(await Promise.all(names.map((name) => shown(after, name)))).toEqual([
    'while it goes on',
    'the second',
    'posted',
  ])
  await using file = await after.storage.read(names[0]!)
  expect(await verifyJournal(file, key.public_key)).toMatchObject({ sound: true })
  expect(await after.recorded.facts(names[1]!)).toMatchObject({ ending: 'closed', output_bytes: 10 })
  expect((await after.recorded.search(names[1]!, 'SECOND', 0)).hits).toMatchObject([{ text: 'second' }])
  await after.recorded.remove(sample.tenant, session_uid)
  expect(await here.recorded.channels(sample.tenant, session_uid)).toEqual([])
  expect([here.failed, after.failed, here.delayed]).toEqual([[], [], []])
})

test('a large one goes and comes in parts, with flat memory, and any moment of it is there', async () => {
  await using here = place()
  const recording = await here.recorded.begin({ ...about, session_uid: newSession() })
  const line = (number: number) => `line ${number} ${'='.repeat(60)}\r\n`
  const lines = 1_000_000
  const before = process.memoryUsage()
  let most = 0
  const measure = () => {
    const { external, heapUsed } = process.memoryUsage()
    most = Math.max(most, external + heapUsed - before.external - before.heapUsed)
  }
  for (let number = 0; number < lines; number += 100) {
    await recording.output(
      Buffer.from(Array.from({ length: 100 }, (_, index) => line(number + index)).join('')),
    )
    measure()
  }
  await recording.finish()
  await inTime(() => {
    measure()
    expect(journals(here.folder)).toEqual([])
  })
  const { name } = recording
  const { output_bytes } = await here.recorded.facts(name)
  const { events } = await here.recorded.part(name, { from: output_bytes - 100 })
  expect(
    Buffer.concat(events.flatMap((event) => ('bytes' in event ? [event.bytes] : []))).toString(),
  ).toMatch(line(lines - 1))
  let count = 0
  for await (const { message } of here.recorded.frames(name)) {
    count += message.length
    measure()
  }
  expect(count).toBe(output_bytes)
  expect(most).toBeLessThan(128 * 1024 * 1024)
})

describe('a store that is away', () => {
  test('stops no session; what waits is sent when it is back', async () => {
    await using here = place()
    await store.stop()
    const session_uid = newSession()
    const recording = await here.recorded.begin({ ...about, session_uid })
    await recording.output(Buffer.from('nobody is there'))
    await recording.finish()
    await inTime(() => expect(here.delayed.length).toBeGreaterThan(0))
    expect(journals(here.folder)).toHaveLength(1)
    // What is here can be read; what is there is known to nobody now.
    expect(await shown(here, recording.name)).toBe('nobody is there')
    await expect(here.recorded.channels(sample.tenant, session_uid)).rejects.toMatchObject({
      kind: 'unavailable',
    })
    await store.start()
    await inTime(() => expect(journals(here.folder)).toEqual([]))
    expect(await shown(here, recording.name)).toBe('nobody is there')
    expect(here.failed).toEqual([])
  })

  test('and a crash: the next start sends what was left, the torn one too', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-spool-'))
    await store.stop()
    const session_uid = newSession()
    const before = place({ folder })
    const finished = await before.recorded.begin({ ...about, session_uid })
    await finished.output(Buffer.from('finished'))
    await finished.finish()
    const torn = await before.recorded.begin({ ...about, session_uid })
    await torn.output(Buffer.from('torn'))
    await inTime(async () => expect(await shown(before, torn.name)).toBe('torn'))
    await before.storage[Symbol.asyncDispose]()
    await store.start()
    await using after = place({ folder })
    const closed: number[] = []
    await after.recorded.recover(async ({ channel }) => void closed.push(channel))
    expect(closed).toEqual([1])
    await inTime(() => expect(journals(folder)).toEqual([]))
    const names = await after.recorded.channels(sample.tenant, session_uid)
    expect(await Promise.all(names.map((name) => shown(after, name)))).toEqual(['finished', 'torn'])
    await torn.finish()
    rmSync(folder, { recursive: true, force: true })
  })
})

test('a wrong secret is refused by the store, and nothing is lost', async () => {
  await using here = place({ secretKey: 'a-guess' })
  const recording = await here.recorded.begin({ ...about, session_uid: newSession() })
  await recording.output(Buffer.from('kept here'))
  await recording.finish()
  await inTime(() => expect(here.delayed[0]).toMatchObject({ $metadata: { httpStatusCode: 403 } }))
  expect(journals(here.folder)).toHaveLength(1)
  expect(await shown(here, recording.name)).toBe('kept here')
})

test('a server with a store plays and deletes what is there, and says so when the store is away', async () => {
  await using service = await startService({ env: store.env('tapes') })
  const world = await buildWorld(service)
  const owner = service.api({ token: await world.token('owner') })
  const params = { uid: sample.session }
  await owner.sessions.record({
    params,
    body: { uid: sample.session, message: 'login: ', width: 80, height: 24 },
  })
  expect((await owner.sessions.play({ params })).body).toMatchObject([{ message: 'login: ' }])
  await store.stop()
  await expect(owner.recordings.list({ params })).rejects.toMatchObject({
    status: 503,
    message: 'The store of recordings cannot be reached.',
  })
  await store.start()
  await owner.sessions.removeRecording({ params })
  expect((await owner.recordings.list({ params })).body).toEqual([])
  expect(service.log()).not.toContain(store.secretKey)
})
