// The format: whatever is written is read back, a file that was torn anywhere is read up to its last whole
// block, and a file that was changed anywhere is known as changed.
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { endOf, JournalDamaged, type Header, type JournalEvent, type Mark } from './journal.ts'
import type { Appending, Reading } from './storage/storage.ts'
import { keyFrom } from './key.ts'
import { flushSchedule } from './flush-schedule.ts'
import { blocks, events, placeBefore, readEnd, readHeader } from './reader.ts'
import { closeJournal, unended, verifyJournal } from './verify.ts'
import { journalWriter, mostWaiting_bytes } from './writer.ts'
import { times } from '../../../tests/harness/tier.ts'

const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
const other = keyFrom(generateKeyPairSync('ed25519').privateKey)
const started = Date.parse('2026-02-03T04:05:06.007Z')
const name = { tenant_id: '00000000-0000-4000-8000-000000000000', session_uid: 'a'.repeat(64), channel: 0 }
const header: Header = {
  version: 1,
  ...name,
  started_at: new Date(started).toISOString(),
  device_uid: 'b'.repeat(64),
  username: 'root',
  term: 'xterm',
  width: 80,
  height: 24,
  key: key.public_key,
}

/** A journal in memory, behind the face of a real one. */
function memory(start: Buffer = Buffer.alloc(0)) {
  let bytes = start
  let finished = false
  const file: Appending & Reading = {
    name,
    append: async (pieces) => void (bytes = Buffer.concat([bytes, ...pieces])),
    sync: () => Promise.resolve(),
    cut: async (length) => void (bytes = bytes.subarray(0, length)),
    close: async (done) => void (finished = done),
    size: () => Promise.resolve(bytes.length),
    at: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { file, bytes: () => bytes, finished: () => finished }
}

type Step = { readonly after_ms: number } & (
  | { readonly output: Uint8Array }
  | { readonly width: number; readonly height: number }
  | { readonly mark: Mark }
  | { readonly flush: true }
)

async function written(steps: readonly Step[], finish = true) {
  const kept = memory()
  let now = started
  using schedule = flushSchedule()
  const clock = { now: () => now }
  const failed: Error[] = []
  const writer = await journalWriter({
    file: kept.file,
    header,
    key,
    clock,
    schedule,
    onFailed: (error) => failed.push(error),
  })
  const expected: JournalEvent[] = []
  for (const step of steps) {
    now += step.after_ms
    const time_ms = now - started
    if ('output' in step) {
      expected.push({ kind: 'output', time_ms, bytes: Buffer.from(step.output) })
      await writer.output(step.output)
    } else if ('width' in step) {
      expected.push({ kind: 'resize', time_ms, width: step.width, height: step.height })
      writer.resize(step)
    } else if ('mark' in step) {
      expected.push({ kind: 'mark', time_ms, mark: step.mark })
      writer.mark(step.mark)
    } else await writer.flush()
  }
  if (finish) await writer.finish()
  else await writer.flush()
  expect(failed).toEqual([])
  return { ...kept, expected, writer }
}

async function all(file: Reading, from?: { offset: number }): Promise<JournalEvent[]> {
  const found: JournalEvent[] = []
  for await (const event of events(file, from))
    found.push(event.kind === 'output' ? { ...event, bytes: Buffer.from(event.bytes) } : event)
  return found
}

const aMark: fc.Arbitrary<Mark> = fc.oneof(
  fc.record({ type: fc.constant('announcement' as const), text: fc.string({ unit: 'grapheme' }) }),
  fc.record({ type: fc.constant('program' as const), program: fc.constantFrom('shell', 'exec') }),
  fc.record({ type: fc.constant('exit' as const), status: fc.nat(255) }),
)
const aStep: fc.Arbitrary<Step> = fc
  .tuple(
    fc.oneof({ weight: 5, arbitrary: fc.nat(3) }, fc.nat(2 ** 31)),
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ output: fc.uint8Array({ maxLength: 300 }) }) },
      {
        weight: 1,
        arbitrary: fc
          .integer({ min: 60_000, max: 140_000 })
          .map((length) => ({ output: Buffer.alloc(length, length) })),
      },
      fc.record({ width: fc.nat(65_535), height: fc.nat(65_535) }),
      fc.record({ mark: aMark }),
      fc.record({ flush: fc.constant(true as const) }),
    ),
  )
  .map(([after_ms, what]) => ({ after_ms, ...what }))

describe('a journal', () => {
  test('gives back any sequence of events as it was written, and is sound', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aStep, { maxLength: 30 }), async (steps) => {
        const { file, expected, finished } = await written(steps)
        expect(await all(file)).toEqual(expected)
        expect(await readHeader(file)).toEqual(header)
        expect(finished()).toBe(true)
        const shown = expected.reduce((sum, event) => {
          if (event.kind === 'output') return sum + event.bytes.length
          return event.kind === 'mark' && event.mark.type === 'announcement'
            ? sum + Buffer.byteLength(event.mark.text)
            : sum
        }, 0)
        expect(await readEnd(file)).toMatchObject({ ending: 'closed', output_bytes: shown })
        expect(await verifyJournal(file, key.public_key)).toMatchObject({ sound: true, header })
      }),
      { numRuns: times(10, 60) },
    )
  })

  test('can be read from every place of its index, with the time and the size that were then', async () => {
    const steps: Step[] = Array.from({ length: 400 }, (_, at) =>
      at % 40 === 3
        ? { after_ms: 7, width: 80 + at, height: 24 }
        : { after_ms: 7, output: Buffer.alloc(5_000, at) },
    )
    const { file, expected } = await written(steps)
    const { index } = (await readEnd(file))!
    expect(index.length).toBeGreaterThan(20)
    for (const entry of index) {
      const rest = await all(file, entry)
      expect(rest).toEqual(expected.slice(-rest.length))
      expect(rest[0]!.time_ms).toBe(entry.time_ms)
      const before = expected.slice(0, expected.length - rest.length)
      expect(entry.output_bytes).toBe(
        before.reduce((sum, event) => sum + (event.kind === 'output' ? event.bytes.length : 0), 0),
      )
      expect(entry.width).toBe(before.findLast((event) => event.kind === 'resize')?.width ?? header.width)
    }
    expect(placeBefore(index, ({ time_ms }) => time_ms <= index[7]!.time_ms)).toBe(index[7])
    expect(placeBefore(index, ({ time_ms }) => time_ms < 0)).toBeUndefined()
  })

  test('lists its interruptions at its end, also when it was torn', async () => {
    const steps: Step[] = [
      { after_ms: 0, output: Buffer.from('a') },
      // Somebody moved the session to another client.
      { after_ms: 10, mark: { type: 'resumed', via: 'cli' } },
      { after_ms: 90, mark: { type: 'held' } },
      { after_ms: 50, output: Buffer.from('b') },
      { after_ms: 50, mark: { type: 'resumed', via: 'browser' } },
      { after_ms: 100, mark: { type: 'held' } },
      { after_ms: 0, mark: { type: 'held' } },
    ]
    const interruptions = [
      { from_ms: 100, until_ms: 200, why: 'client lost', via: 'browser' },
      { from_ms: 300, why: 'client lost' },
    ]
    const whole = await written(steps)
    expect(await readEnd(whole.file)).toMatchObject({ duration_ms: 300, interruptions })
    expect(await verifyJournal(whole.file, key.public_key)).toMatchObject({ sound: true })
    const torn = await written(steps, false)
    expect(await unended(torn.file)).toMatchObject({ interruptions })
    await closeJournal(torn.file, key, { now: () => started + 1_000 })
    expect(await readEnd(torn.file)).toMatchObject({ ending: 'cut off', interruptions })
    const many = await written(
      Array.from({ length: 2_500 }, (_, at) => ({
        after_ms: 1,
        mark: at % 2 === 0 ? { type: 'held' as const } : { type: 'resumed' as const, via: 'ssh' },
      })),
    )
    expect((await readEnd(many.file))!.interruptions).toHaveLength(1_000)
    expect(await readEnd((await written([])).file)).not.toHaveProperty('interruptions')
  })

  test('with something else in the place of its interruptions is damaged', () => {
    const end = { ending: 'closed', ended_at: '', duration_ms: 0, output_bytes: 0, index: [] }
    const read = (interruptions: unknown) => endOf(Buffer.from(JSON.stringify({ ...end, interruptions })))
    const one = { from_ms: 1, why: 'client lost' }
    expect(read([one, { ...one, until_ms: 2, via: 'ssh' }]).interruptions).toHaveLength(2)
    for (const wrong of [
      'x',
      1,
      null,
      {},
      [1],
      [null],
      [{}],
      [{ ...one, from_ms: '1' }],
      [{ ...one, until_ms: 'x' }],
    ])
      expect(() => read(wrong), JSON.stringify(wrong)).toThrow(JournalDamaged)
  })

  test('has an index of bounded size, however long it is', async () => {
    using schedule = flushSchedule()
    let length = 0
    // Counts only: it is a lot.
    const file: Appending = {
      ...memory().file,
      append: async (pieces) => pieces.forEach((piece) => void (length += piece.length)),
    }
    const writer = await journalWriter({
      file,
      header,
      key,
      clock: { now: () => started },
      schedule,
      onFailed: () => undefined,
    })
    const chunk = Buffer.alloc(66_000)
    for (let count = 0; count < 5_000; count++) await writer.output(chunk)
    await writer.flush()
    expect(length).toBeGreaterThan(5_000 * chunk.length)
    expect(writer.index.length).toBeLessThanOrEqual(2_048)
    expect(writer.index.length).toBeGreaterThan(500)
    expect(writer.index.at(-1)!.offset).toBeGreaterThan(length * 0.99)
  })
})

/** Small enough to be tried byte by byte. */
const small: Step[] = [
  { after_ms: 0, mark: { type: 'start' } },
  { after_ms: 3, output: Buffer.from('login: ') },
  { after_ms: 0, flush: true },
  { after_ms: 500, output: Buffer.from('héllo') },
  { after_ms: 1, width: 100, height: 30 },
  { after_ms: 0, flush: true },
  { after_ms: 2, output: Buffer.from('bye\r\n') },
]

describe('a torn file', () => {
  test('is read up to its last whole block, wherever it was torn, and closed there', async () => {
    const { bytes, file, expected } = await written(small)
    const ends: number[] = []
    for await (const block of blocks(file)) ends.push(block.offset + 37 + block.body.length)
    const counts = [0, 2, 4, 5]
    for (let length = 0; length < bytes().length; length++) {
      const torn = memory(bytes().subarray(0, length))
      const whole = ends.filter((end) => end <= length).length
      const events = counts[Math.max(0, Math.min(whole - 1, 3))]!
      if (whole > 0) expect(await all(torn.file)).toEqual(expected.slice(0, events))
      expect(await verifyJournal(torn.file)).toMatchObject({ sound: false })
      const closed = await closeJournal(torn.file, key, { now: () => started + 9_000 })
      if (whole === 0) {
        expect(closed).toBeUndefined()
        continue
      }
      // The end was written, only its seal was not: the recording was closed regularly.
      expect(closed?.ending).toBe(whole >= 5 ? 'closed' : 'cut off')
      expect(torn.finished()).toBe(true)
      expect(await all(torn.file)).toEqual(expected.slice(0, events))
      expect(await verifyJournal(torn.file, key.public_key)).toMatchObject({
        sound: true,
        end: { ending: closed!.ending },
      })
    }
  })

  test('with zeros or rubbish at its end is closed at its last whole block', async () => {
    const { bytes, expected } = await written(small, false)
    for (const tail of [Buffer.alloc(5_000), Buffer.alloc(700, 0x41), bytes().subarray(8, 60)]) {
      const torn = memory(Buffer.concat([bytes(), tail]))
      expect(await closeJournal(torn.file, key, { now: () => started })).toMatchObject({ ending: 'cut off' })
      expect(await all(torn.file)).toEqual(expected)
      expect(await verifyJournal(torn.file)).toMatchObject({ sound: true })
    }
  })

  test('that is whole and unfinished says so', async () => {
    const { file } = await written(small, false)
    expect(await verifyJournal(file)).toEqual({
      sound: false,
      unfinished: true,
      why: 'the recording was never closed',
    })
    expect(await readEnd(file)).toBeUndefined()
  })
})

describe('a changed file', () => {
  test('is known as changed, whichever bit it was', async () => {
    const { bytes } = await written(small)
    for (let at = 0; at < bytes().length; at++) {
      for (const bit of [1, 0x80]) {
        const changed = Buffer.from(bytes())
        changed[at]! ^= bit
        expect(await verifyJournal(memory(changed).file), `byte ${at}`).toMatchObject({ sound: false })
      }
    }
  })

  test('is known as changed when blocks are left out, repeated or swapped, or something is added', async () => {
    const { bytes, file } = await written(small)
    const parts = [bytes().subarray(0, 8)]
    for await (const { offset, body } of blocks(file))
      parts.push(bytes().subarray(offset, offset + 37 + body.length))
    for (let at = 1; at < parts.length; at++) {
      for (const changed of [
        parts.toSpliced(at, 1),
        parts.toSpliced(at, 0, parts[at]!),
        parts.toSpliced(at - 1, 2, parts[at]!, parts[at - 1]!),
      ])
        expect(await verifyJournal(memory(Buffer.concat(changed)).file)).toMatchObject({ sound: false })
    }
    expect(await verifyJournal(memory(Buffer.concat([bytes(), Buffer.of(0)])).file)).toMatchObject({
      sound: false,
    })
  })

  test('that somebody else has signed anew is not ours', async () => {
    const kept = memory()
    using schedule = flushSchedule()
    const parts = { file: kept.file, clock: { now: () => started }, schedule, onFailed: () => undefined }
    const writer = await journalWriter({ ...parts, header: { ...header, key: other.public_key }, key: other })
    await writer.finish()
    expect(await verifyJournal(kept.file)).toMatchObject({ sound: true })
    expect(await verifyJournal(kept.file, key.public_key)).toMatchObject({ sound: false })
    const forged = memory()
    await (await journalWriter({ ...parts, file: forged.file, header, key: other })).finish()
    expect(await verifyJournal(forged.file)).toMatchObject({ sound: false, why: 'the signature is wrong' })
  })
})

describe('a writer', () => {
  test('makes whoever writes wait while the disk takes nothing, and holds no more than its bound', async () => {
    const kept = memory()
    const gate = Promise.withResolvers<void>()
    let open = true
    const file: Appending = {
      ...kept.file,
      async append(pieces) {
        if (!open) await gate.promise
        await kept.file.append(pieces.map((piece) => Buffer.from(piece)))
      },
    }
    using schedule = flushSchedule()
    const writer = await journalWriter({
      file,
      header,
      key,
      clock: { now: () => started },
      schedule,
      onFailed: () => undefined,
    })
    open = false
    const chunk = Buffer.alloc(32_768, 1)
    let taken = 0
    let full: Promise<void> | undefined
    while (!full && taken < 100 * mostWaiting_bytes) {
      full = writer.output(chunk)
      taken += chunk.length
    }
    expect(taken).toBeLessThanOrEqual(mostWaiting_bytes + 2 * 65_536)
    gate.resolve()
    await full
    await writer.finish()
    const [total] = [(await readEnd(kept.file))?.output_bytes]
    expect(total).toBe(taken)
  })

  test('that cannot write says so once, refuses what comes, and leaves what was whole', async () => {
    const kept = memory()
    let broken = false
    const file: Appending = {
      ...kept.file,
      async append(pieces) {
        if (broken) {
          // A part of it was written, as a full disk does it.
          await kept.file.append([pieces[0]!.subarray(0, 20)])
          throw Object.assign(new Error('no room'), { code: 'ENOSPC' })
        }
        await kept.file.append(pieces.map((piece) => Buffer.from(piece)))
      },
    }
    using schedule = flushSchedule()
    const failed: Error[] = []
    const parts = { file, header, key, clock: { now: () => started }, schedule }
    const writer = await journalWriter({ ...parts, onFailed: (error) => failed.push(error) })
    void writer.output(Buffer.from('before'))
    await writer.flush()
    broken = true
    void writer.output(Buffer.from('lost'))
    await expect(writer.flush()).rejects.toThrow('no room')
    expect(() => writer.output(Buffer.from('more'))).toThrow('no room')
    expect(failed).toHaveLength(1)
    broken = false
    await writer.finish()
    expect(await all(kept.file)).toMatchObject([{ bytes: Buffer.from('before') }])
    expect(await verifyJournal(kept.file)).toMatchObject({ sound: true, end: { ending: 'failed' } })
  })
})
