// Recordings on a real disk, through their public interface: a crash that is closed, a disk that is full,
// what was deleted, what has run out, a lot of output, and those who watch.
import { generateKeyPairSync } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { diskStorage } from '../../server/src/recording/storage/disk.ts'
import type { JournalStorage } from '../../server/src/recording/storage/storage.ts'
import { keyFrom } from '../../server/src/recording/key.ts'
import type { Viewer } from '../../server/src/recording/live.ts'
import { readEnd } from '../../server/src/recording/reader.ts'
import { recordings } from '../../server/src/recording/recordings.ts'
import { screen } from '../../server/src/recording/screen.ts'
import { screenThread } from '../../server/src/recording/screen-thread.ts'
import { terminalScreen } from '../../server/src/recording/terminal-screen.ts'
import { fairShare } from '../../server/src/kit/fair-share.ts'
import { NotRecorded } from '../../server/src/recording/channel-recorder.ts'
import { sessionRecorder } from '../../server/src/recording/tap.ts'
import { verifyJournal } from '../../server/src/recording/verify.ts'
import { eventually } from '../harness/eventually.ts'
import { times } from '../harness/tier.ts'

const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
const about = {
  tenant_id: '00000000-0000-4000-8000-000000000000',
  session_uid: 'c'.repeat(64),
  device_uid: 'd'.repeat(64),
  username: 'root',
  term: 'xterm',
  width: 80,
  height: 24,
}

/** Recorded, or ended. */
const strict = { record: true, continueUnrecorded: false }

function place(folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-recordings-')), room_bytes = Infinity) {
  const storage = limited(diskStorage(folder), room_bytes)
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
    failed,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Of all files in a folder and below. */
const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(path.join(parentPath, name)).size, 0)

/** A storage with a file that takes so many bytes and no more. */
function limited(storage: JournalStorage, room_bytes: number): JournalStorage {
  return {
    ...storage,
    async create(name) {
      const file = await storage.create(name)
      let left = room_bytes
      return {
        ...file,
        async append(pieces) {
          left -= pieces.reduce((sum, piece) => sum + piece.length, 0)
          if (left < 0) throw Object.assign(new Error('no room'), { code: 'ENOSPC' })
          await file.append(pieces)
        },
      }
    },
  }
}

async function text(pieces: AsyncIterable<{ message: string }>): Promise<string> {
  let all = ''
  for await (const { message } of pieces) all += message
  return all
}

const files = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)

describe('a crash', () => {
  test('leaves a recording that can be read, and the next start closes and signs it', async () => {
    using here = place()
    const recording = await here.recorded.begin(about)
    await recording.output(Buffer.from('before the crash'))
    // Read by somebody else while it is being written, as after a crash.
    await eventually(async () =>
      expect(await text(place(here.folder).recorded.frames(recording.name))).toBe('before the crash'),
    )
    const after = place(here.folder)
    const closed: unknown[] = []
    await after.recorded.recover(async (name, ending) => void closed.push([name, ending]))
    expect(closed).toEqual([[recording.name, 'cut off']])
    expect(await after.storage.unfinished()).toEqual([])
    await using file = await after.storage.read(recording.name)
    expect(await verifyJournal(file, key.public_key)).toMatchObject({
      sound: true,
      end: { ending: 'cut off' },
    })
    expect(await text(after.recorded.frames(recording.name))).toBe('before the crash')
    await after.recorded.recover(() => Promise.reject(new Error('there is nothing more to close')))
    expect(after.failed).toEqual([])
    await recording.finish()
  })
})

describe('a full disk', () => {
  test('ends the session with the reason, and what was whole is kept', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-full-'))
    // Only root may mount; for anybody else the disk is as large as it is, and its file says that it is full.
    const isRoot = process.getuid?.() === 0
    if (isRoot) execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder])
    try {
      const here = isRoot ? place(folder) : place(folder, 1024 * 1024)
      const told: Error[] = []
      const session = sessionRecorder({
        recordings: here.recorded,
        about,
        settings: strict,
        onBegun: () => undefined,
        onOverBudget: () => undefined,
        onFailed: (error) => told.push(error),
      })
      const channel = session.channel()
      channel.terminal('xterm', { width: 80, height: 24 })
      channel.program('shell')
      const chunk = Buffer.alloc(32_768, 0x61)
      for (let count = 0; count < 20; count++) await channel.output(chunk)
      // Output that waits is written at once, and the disk takes all of it or nothing.
      await eventually(() => expect(bytesIn(folder)).toBeGreaterThan(500_000))
      const fill = async () => {
        for (let count = 0; count < 1_000; count++) await channel.output(chunk)
      }
      await expect(fill()).rejects.toThrow(NotRecorded)
      expect(told).toMatchObject([{ code: 'ENOSPC' }])
      expect(here.failed).toHaveLength(1)
      await session[Symbol.asyncDispose]()
      const [name] = await here.recorded.channels(about.tenant_id, about.session_uid)
      const kept = await text(here.recorded.frames(name!))
      expect(kept.length).toBeGreaterThan(500_000)
      expect(kept).toBe('a'.repeat(kept.length))
    } finally {
      if (isRoot) execFileSync('umount', [folder])
      rmSync(folder, { recursive: true })
    }
  })

  test('lets the output pass unrecorded where that was chosen', async () => {
    using here = place()
    const failing = { begin: () => Promise.reject(new Error('no room')) }
    const parts = {
      recordings: failing,
      about,
      settings: { record: true, continueUnrecorded: true },
      onBegun: () => undefined,
      onOverBudget: () => undefined,
    }
    const told: string[] = []
    const session = sessionRecorder({
      ...parts,
      onFailed: (error, goesOn) => told.push(`${error.message}, ${goesOn}`),
    })
    const channel = session.channel()
    channel.terminal('xterm', { width: 80, height: 24 })
    channel.program('shell')
    await channel.output(Buffer.from('passes'))
    await channel.output(Buffer.from('passes, too'))
    expect(told).toEqual(['no room, true'])
    // Who went on is not ended afterwards.
    session.apply(strict)
    await channel.output(Buffer.from('passes still'))
    await session[Symbol.asyncDispose]()
    expect(files(here.folder)).toEqual([])
  })
})

test('a recording that begins while nobody is there begins with an interruption', async () => {
  using here = place()
  const session = sessionRecorder({
    recordings: here.recorded,
    about,
    settings: strict,
    onBegun: () => undefined,
    onOverBudget: () => undefined,
    onFailed: (error) => here.failed.push(error),
  })
  const channel = session.channel()
  channel.terminal('xterm', { width: 80, height: 24 })
  channel.program('shell')
  // The file is still being made.
  channel.interrupted({ type: 'held' })
  await channel.output(Buffer.from('unseen'))
  session.apply({ ...strict, record: false })
  session.apply(strict)
  await channel.output(Buffer.from('unseen in another recording'))
  channel.interrupted({ type: 'resumed', via: 'ssh' })
  session.apply({ ...strict, record: false })
  session.apply(strict)
  await channel.output(Buffer.from('seen'))
  await session[Symbol.asyncDispose]()
  const names = await here.recorded.channels(about.tenant_id, about.session_uid)
  const facts = await Promise.all(names.map(async (name) => here.recorded.facts(name)))
  const vias = facts.map(({ interruptions }) => interruptions.map(({ via }) => via))
  expect(vias).toEqual([[''], ['ssh'], []])
  expect(here.failed).toEqual([])
})

test('much output is recorded with flat memory, and all of it is there', { timeout: 300_000 }, async () => {
  using here = place()
  const recording = await here.recorded.begin(about)
  const chunk = Buffer.alloc(32_768)
  const total = times(128, 1024) * 1024 * 1024
  let most = 0
  const before = process.memoryUsage()
  for (let written = 0; written < total; written += chunk.length) {
    chunk.fill(written / chunk.length)
    await recording.output(chunk)
    const { external, heapUsed } = process.memoryUsage()
    most = Math.max(most, external + heapUsed - before.external - before.heapUsed)
  }
  await recording.finish()
  expect(most).toBeLessThan(64 * 1024 * 1024)
  await using file = await here.storage.read(recording.name)
  expect(await readEnd(file)).toMatchObject({ output_bytes: total, ending: 'closed' })
  expect(await verifyJournal(file)).toMatchObject({ sound: true })
  expect(await file.size()).toBeLessThan(total * 1.01)
})

test('deleting removes every file of the session and nothing of another', async () => {
  using here = place()
  const one = await here.recorded.begin(about)
  const two = await here.recorded.begin(about)
  const other = await here.recorded.begin({ ...about, session_uid: 'e'.repeat(64) })
  for (const recording of [one, two, other]) await recording.finish()
  await here.recorded.post(about, { message: 'posted', width: 80, height: 24 })
  expect(await here.recorded.channels(about.tenant_id, about.session_uid)).toHaveLength(3)
  await here.recorded.remove(about.tenant_id, about.session_uid)
  expect(files(here.folder)).toEqual(['0.journal'])
  expect(await here.recorded.channels(about.tenant_id, 'e'.repeat(64))).toHaveLength(1)
  await here.recorded[Symbol.asyncDispose]()
})

test('switching recording off ends it at once, switching it on begins another with what comes next', async () => {
  using here = place()
  const session = sessionRecorder({
    recordings: here.recorded,
    about,
    settings: strict,
    onBegun: () => undefined,
    onOverBudget: () => undefined,
    onFailed: () => undefined,
  })
  const channel = session.channel()
  const say = async (words: string) => channel.output(Buffer.from(words))
  channel.terminal('xterm', { width: 80, height: 24 })
  channel.program('shell')
  await say('one ')
  session.apply({ ...strict, record: false })
  await say('secret ')
  session.apply(strict)
  await say('two')
  await session[Symbol.asyncDispose]()
  const shown: string[] = []
  for (const name of await here.recorded.channels(about.tenant_id, about.session_uid))
    shown.push(await text(here.recorded.frames(name)))
  expect(shown).toEqual(['one ', 'two'])
})

/** Somebody who watches on a terminal of their own. */
function viewer(waiting = () => 0) {
  const own = screen({ width: 80, height: 24 })
  const raw: Buffer[] = []
  const ended = Promise.withResolvers<string>()
  let shown: Promise<void> = Promise.resolve()
  const show = (bytes: Buffer) => void (shown = shown.then(() => own.show(bytes)))
  const face: Viewer = {
    screen(size, bytes) {
      own.resize(size)
      show(bytes)
    },
    output(bytes) {
      raw.push(bytes)
      show(bytes)
    },
    resize: (size) => own.resize(size),
    end: ended.resolve,
    waiting,
  }
  const snapshot = async () => {
    await shown
    return own.snapshot().toString()
  }
  return { face, raw: () => Buffer.concat(raw).toString(), snapshot, ended: ended.promise }
}

describe('somebody who watches', () => {
  const thread = screenThread()
  afterAll(() => thread[Symbol.asyncDispose]())

  /** A terminal that is recorded. */
  function terminal({ recorded, failed }: ReturnType<typeof place>) {
    const shown = terminalScreen(about, {
      tenant_id: about.tenant_id,
      thread,
      memory: fairShare(64 * 1024 * 1024),
    })
    const session = sessionRecorder({
      recordings: recorded,
      about,
      settings: strict,
      onBegun: () => undefined,
      onOverBudget: () => undefined,
      onFailed: (error) => failed.push(error),
    })
    const channel = session.channel(() => shown)
    channel.terminal('xterm', { width: about.width, height: about.height })
    channel.program('shell')
    return {
      output: (bytes: Uint8Array) => channel.output(bytes),
      async watch(face: Viewer) {
        // The file may still be being made.
        await channel.output(Buffer.alloc(0))
        return recorded.live(about.tenant_id, about.session_uid)[0]!.watch(face)
      },
      finish: async () => session[Symbol.asyncDispose](),
    }
  }

  test('sees the screen as it is, then everything that comes, as the terminal itself does', async () => {
    using here = place()
    const recording = terminal(here)
    using real = screen(about)
    const say = async (bytes: Buffer) => {
      await recording.output(bytes)
      await real.show(bytes)
    }
    const words =
      '\u001b[2J\u001b[3;5Hünïcode \u001b[1;31mred\u001b[0m 漢字\r\n\u001b[48;5;22mgreen\u001b[m \u001b[38;2;1;2;3mrgb\u001b[m'
    // A cut in the middle of a character, and one in the middle of a sequence.
    const bytes = Buffer.from(words)
    await say(bytes.subarray(0, bytes.indexOf(0xc3) + 1))
    const early = viewer()
    await recording.watch(early.face)
    await say(bytes.subarray(bytes.indexOf(0xc3) + 1))
    await say(Buffer.from('\u001b[4'))
    const late = viewer()
    await recording.watch(late.face)
    await say(Buffer.from('munder\u001b[m and more'))
    for (const one of [early, late]) expect(await one.snapshot()).toBe(real.snapshot().toString())
    expect(late.raw()).toBe('munder\u001b[m and more')
    await recording.finish()
    expect(await late.ended).toBe('The session is over.')
  })

  test('of a long session sees the same screen', async () => {
    using here = place()
    const recording = terminal(here)
    using real = screen(about)
    for (let line = 0; line < 60_000; line++) {
      const bytes = Buffer.from(`line ${line} \u001b[${31 + (line % 6)}m${'='.repeat(40)}\u001b[m\r\n`)
      await recording.output(bytes)
      if (line > 59_900) await real.show(bytes)
    }
    const one = viewer()
    await recording.watch(one.face)
    expect(await one.snapshot()).toBe(real.snapshot().toString())
    await recording.finish()
  })

  test('and takes nothing is let go with a sentence, without slowing the session', async () => {
    using here = place()
    const recording = terminal(here)
    let given = 0
    const slow = viewer(() => given)
    const { output } = slow.face
    slow.face.output = (bytes) => {
      given += bytes.length
      output(bytes)
    }
    await recording.watch(slow.face)
    const chunk = Buffer.alloc(65_536, 0x20)
    for (let count = 0; count < 200; count++) await recording.output(chunk)
    expect(await slow.ended).toBe('Your connection was too slow to watch this session; try again.')
    expect(given).toBeLessThan(5 * 1024 * 1024)
    await recording.finish()
  })
})
