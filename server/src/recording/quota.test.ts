// RecordingQuota for recordings, with journals on a real disk: a low disk and a quota that is used up stop
// them, and the settings of the namespace say whether the session continues. What was recorded until then is
// whole.
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { diskStorage } from './storage/disk.ts'
import { recordings, type Recordings } from './recordings.ts'
import { recordingQuota } from './quota.ts'
import { sessionRecorder } from './tap.ts'

const tenant_id = '00000000-0000-4000-8000-000000000001'
const other = '00000000-0000-4000-8000-000000000002'
const key = generateKeyPairSync('ed25519')
const signing = {
  public_key: key.publicKey.export({ format: 'jwk' }).x ?? '',
  sign: () => Buffer.alloc(64),
}

let folder: string
let low: boolean
let recorded: Recordings
/** The usage cannot be measured. */
let away: boolean
const usedUp: string[] = []
const unmeasured: string[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-room-'))
  low = false
  away = false
  usedUp.length = 0
  unmeasured.length = 0
  const storage = diskStorage(folder)
  recorded = recordings({
    storage,
    key: signing,
    clock: { now: Date.now },
    quota: recordingQuota({
      isLow: () => low,
      quota_bytes: 64 * 1024,
      used: async (tenant) => (away ? Promise.reject(new Error('away')) : storage.used(tenant)),
      onUsedUp: (tenant) => usedUp.push(tenant),
      onUnmeasured: (tenant) => unmeasured.push(tenant),
    }),
    onFailed: () => undefined,
  })
})
afterEach(async () => {
  await recorded[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

let sessions = 0
const about = (tenant = tenant_id) => ({
  tenant_id: tenant,
  session_uid: (++sessions).toString(16).padStart(64, '0'),
  device_uid: '1'.repeat(64),
  username: 'root',
})
const screen = { term: 'xterm', width: 80, height: 24 }

test.each([
  ['ends', false],
  ['goes on where the namespace chose so', true],
])(
  'a session that is recorded when the disk becomes low %s, and what there is of it is whole',
  async (_, continueUnrecorded) => {
    const told: boolean[] = []
    const one = about()
    await using recorder = sessionRecorder({
      recordings: recorded,
      about: one,
      settings: { record: true, continueUnrecorded },
      onBegun: () => undefined,
      onOverBudget: () => undefined,
      onFailed: (_error, goesOn) => told.push(goesOn),
    })
    const channel = recorder.channel()
    channel.terminal(screen.term, screen)
    channel.program('shell')
    await channel.output(Buffer.from('before'))
    const [going] = recorded.live(tenant_id, one.session_uid)
    low = true
    const bytes = Buffer.alloc(100_000, 'x')
    // The first piece may pass before the disk was asked; what follows the refusal does not.
    await channel.output(bytes)?.catch(() => undefined)
    await expect.poll(() => told).toEqual([continueUnrecorded])
    const after = async () => channel.output(Buffer.from('after'))
    if (continueUnrecorded) await after()
    else await expect(after()).rejects.toThrow('the session cannot be recorded')
    await channel.close()
    expect(await recorded.facts(going!.name)).toMatchObject({ ending: 'failed' })
    await expect(recorded.begin({ ...about(), ...screen })).rejects.toThrow(
      'The disk of the server is nearly full',
    )
    low = false
    await (await recorded.begin({ ...about(), ...screen })).finish()
  },
)

test('a namespace records as much as its quota, the others go on, and there is room again when some was removed', async () => {
  const first = about()
  const one = await recorded.begin({ ...first, ...screen })
  await one.output(Buffer.alloc(40_000, 'x'))
  await one.finish()
  const failed = Promise.withResolvers<Error>()
  const second = await recorded.begin({ ...about(), ...screen }, failed.resolve)
  await second.output(Buffer.alloc(40_000, 'x'))
  await second.finish()
  expect(await failed.promise).toMatchObject({
    message: 'The recordings of the namespace have used up their quota.',
  })
  expect(usedUp).toEqual([tenant_id])
  await (await recorded.begin({ ...about(other), ...screen })).finish()

  await recorded.remove(tenant_id, first.session_uid)
  const third = await recorded.begin({ ...about(), ...screen })
  await third.output(Buffer.alloc(40_000, 'x'))
  await third.finish()
  expect(await recorded.facts(third.name)).toMatchObject({ ending: 'closed', output_bytes: 40_000 })
})

test('a session that goes on while another recording is removed has no more room than that gave', async () => {
  const first = about()
  await (await recorded.begin({ ...first, ...screen })).finish()
  const failed = Promise.withResolvers<Error>()
  const going = await recorded.begin({ ...about(), ...screen }, failed.resolve)
  await going.output(Buffer.alloc(40_000, 'x'))
  await recorded.remove(tenant_id, first.session_uid)
  const writing = async (): Promise<void> => {
    for (let piece = 0; piece < 10; piece += 1) await going.output(Buffer.alloc(40_000, 'x'))
  }
  // A recording that has failed meanwhile takes no more.
  await writing().catch(() => undefined)
  await going.finish()
  expect(await failed.promise).toMatchObject({
    message: 'The recordings of the namespace have used up their quota.',
  })
  expect(await diskStorage(folder).used(tenant_id)).toBeLessThan(70_000)
})

test('what cannot be measured does not stop anybody, is told, and what is counted from there on ends at the quota', async () => {
  away = true
  const failed = Promise.withResolvers<Error>()
  const one = await recorded.begin({ ...about(), ...screen }, failed.resolve)
  expect(unmeasured).toEqual([tenant_id])
  await one.output(Buffer.alloc(40_000, 'x'))
  await one.output(Buffer.alloc(40_000, 'x'))
  await one.finish()
  expect(await failed.promise).toMatchObject({
    message: 'The recordings of the namespace have used up their quota.',
  })
  expect(unmeasured).toEqual([tenant_id])
})

test('whoever begins does not wait for a place that never answers', async () => {
  const asked: string[] = []
  const hung = recordingQuota({
    isLow: () => false,
    quota_bytes: 1000,
    used: (tenant) => {
      asked.push(tenant)
      return new Promise<never>(() => undefined)
    },
    onUsedUp: () => undefined,
    onUnmeasured: () => undefined,
  })
  await hung.begin(tenant_id)
  hung.take(tenant_id, 900)
  hung.freed(tenant_id)
  expect(() => hung.take(tenant_id, 900)).toThrow('used up their quota')
  // Of a namespace that was forgotten.
  hung.take(other, 900)
  expect(() => hung.take(other, 900)).toThrow('used up their quota')
  expect(asked).toEqual([tenant_id, other])
})
