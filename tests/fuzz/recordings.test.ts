// Files that are said to be recordings: read, searched for their end, verified and closed after a crash. Half
// of the inputs are any bytes; of the other half each block is put into the chain again, so that what is
// inside of it is read, too. A reader says that the recording is damaged, or reads it; a file that was
// changed is never called sound.
import { generateKeyPairSync } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { blockOf, head_bytes, JournalDamaged, magic, noSum } from '../../server/src/recording/journal.ts'
import type { Header } from '../../server/src/recording/journal.ts'
import type { Appending, Reading } from '../../server/src/recording/storage/storage.ts'
import { keyFrom } from '../../server/src/recording/key.ts'
import { flushSchedule } from '../../server/src/recording/flush-schedule.ts'
import { events, readEnd, readHeader } from '../../server/src/recording/reader.ts'
import { closeJournal, verifyJournal } from '../../server/src/recording/verify.ts'
import { journalWriter } from '../../server/src/recording/writer.ts'
import { fuzz } from './fuzz.ts'

vi.setConfig({ testTimeout: 3_600_000 })

const key = keyFrom(generateKeyPairSync('ed25519').privateKey)
const name = { tenant_id: '00000000-0000-4000-8000-000000000000', session_uid: 'a'.repeat(64), channel: 0 }
const started = Date.parse('2026-02-03T04:05:06.007Z')
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

function inMemory(bytes: Buffer): Appending & Reading & { bytes(): Buffer } {
  return {
    name,
    bytes: () => bytes,
    append: async (pieces) => void (bytes = Buffer.concat([bytes, ...pieces])),
    sync: () => Promise.resolve(),
    cut: async (length) => void (bytes = bytes.subarray(0, length)),
    close: () => Promise.resolve(),
    size: () => Promise.resolve(bytes.length),
    at: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

async function recorded(): Promise<Buffer> {
  const file = inMemory(Buffer.alloc(0))
  let now = started
  using schedule = flushSchedule()
  const writer = await journalWriter({
    file,
    header,
    key,
    clock: { now: () => now },
    schedule,
    onFailed: () => undefined,
  })
  writer.mark({ type: 'program', program: 'shell' })
  for (const text of ['$ ls\r\n', 'a\x1b[1mb\x1b[0m\r\n', '$ exit\r\n']) {
    now += 40
    await writer.output(Buffer.from(text))
    writer.resize({ width: 100, height: 30 })
  }
  writer.mark({ type: 'exit', status: 0 })
  await writer.finish()
  return file.bytes()
}

/** The same blocks, each with the sum that it must have. */
function chained(input: Buffer): Buffer {
  const parts: Buffer[] = [magic]
  let sum: Buffer = noSum
  for (let at = magic.length; at + head_bytes <= input.length;) {
    const end = at + head_bytes + Math.min(input.readUInt32BE(at), 65_536)
    const block = blockOf(input[at + 4] ?? 0, input.subarray(at + head_bytes, end), sum)
    sum = block.subarray(5, head_bytes)
    parts.push(block)
    at = end
  }
  return Buffer.concat(parts)
}

const sound = await recorded()

test('any files', async () => {
  const { inputs, endings } = await fuzz({
    name: 'recordings',
    seeds: [sound, sound.subarray(0, sound.length - 80)],
    async feed(input) {
      return (input.at(-1) ?? 0) % 2 === 0 ? look(input) : look(chained(input))
    },
  })
  expect(endings.size).toBeGreaterThan(6)
  console.log(`recordings: ${inputs} inputs, ${endings.size} endings`)
})

/** Reads it in every way that there is. */
async function look(bytes: Buffer): Promise<string> {
  const file = inMemory(bytes)
  const said = await Promise.all([
    endingOf(async () => readHeader(file)),
    endingOf(async () => readEnd(file)),
    endingOf(async () => {
      for await (const event of events(file)) void event
    }),
  ])
  const verdict = await verifyJournal(file, key.public_key)
  if (verdict.sound) expect(bytes.equals(sound)).toBe(true)
  said.push(verdict.sound ? 'sound' : verdict.why)
  // Signing what is closed would take most of the time.
  const sign = (): Buffer => Buffer.alloc(64)
  said.push(
    await endingOf(async () => closeJournal(inMemory(Buffer.from(bytes)), { sign }, { now: () => started })),
  )
  return said.join(', ').replaceAll(/\d+/g, '#')
}

async function endingOf(read: () => Promise<unknown>): Promise<string> {
  try {
    await read()
    return 'read'
  } catch (error) {
    expect(error).toBeInstanceOf(JournalDamaged)
    return (error as JournalDamaged).message
  }
}
