// Parts of a recording and what is found in it, held against the whole of it: whoever begins anywhere sees
// what somebody who has seen everything sees.
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { diskStorage } from './storage/disk.ts'
import { keyFrom } from './key.ts'
import { recordings } from './recordings.ts'
import { screen } from './screen.ts'

const about = {
  tenant_id: '00000000-0000-4000-8000-000000000000',
  session_uid: 'c'.repeat(64),
  device_uid: 'd'.repeat(64),
  username: 'root',
  term: 'xterm',
  width: 80,
  height: 24,
}
const key = keyFrom(generateKeyPairSync('ed25519').privateKey)

function place() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'hawser-window-'))
  const clock = { time: Date.parse('2026-02-03T04:05:06.007Z'), now: () => clock.time }
  const failed: Error[] = []
  const recorded = recordings({
    storage: diskStorage(folder),
    key,
    clock,
    onFailed: (error) => failed.push(error),
  })
  return { clock, recorded, failed, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

/** 3 MiB of coloured lines over ten minutes, with a change of size in the middle. */
async function long(here: ReturnType<typeof place>, finish = true) {
  const recording = await here.recorded.begin(about)
  recording.mark({ type: 'program', program: 'exec', command: 'make world' })
  const steps: { time_ms: number; bytes: Buffer }[] = []
  const start = here.clock.time
  for (let line = 0; line < 30_000; line++) {
    const bytes = Buffer.from(
      `line ${line} é \u001b[${31 + (line % 6)}m${'='.repeat(60)}\u001b[m${line === 20_000 ? 'NEEDLE' : ''}\r\n`,
    )
    await recording.output(bytes)
    steps.push({ time_ms: here.clock.time - start, bytes })
    if (line === 15_000) recording.resize({ width: 100, height: 30 })
    here.clock.time += 20
  }
  if (finish) await recording.finish()
  return { name: recording.name, steps, recording, output: Buffer.concat(steps.map(({ bytes }) => bytes)) }
}

describe('a part of a recording', () => {
  test('begins with the screen of its moment, and goes on with everything that follows', async () => {
    using here = place()
    const { name, steps, output } = await long(here)
    for (const at_ms of [0, 1, 299_990, 300_000, 300_020, 430_000, 599_980, 10_000_000]) {
      const part = await here.recorded.part(name, { at_ms })
      using expected = screen(about)
      const past = steps.filter(({ time_ms }) => time_ms <= at_ms).map(({ bytes }) => bytes)
      const position = Buffer.concat(past).length
      const resized = past.length > 15_000
      await expected.show(Buffer.concat(past.slice(0, 15_001)))
      if (resized) expected.resize({ width: 100, height: 30 })
      await expected.show(Buffer.concat(past.slice(15_001)))
      expect({ at_ms, size: part.size }).toEqual({
        at_ms,
        size: resized ? { width: 100, height: 30 } : { width: 80, height: 24 },
      })
      expect(part.screen.toString()).toBe(expected.snapshot().toString())
      const rest: Buffer[] = []
      let events = [...part.events]
      let next = part.next
      for (;;) {
        rest.push(...events.flatMap((event) => ('bytes' in event ? [event.bytes] : [])))
        expect(events.every((event) => event.time_ms > at_ms || !('bytes' in event))).toBe(true)
        if (next === undefined) break
        const following = await here.recorded.part(name, { from: next })
        ;({ next } = following)
        events = [...following.events]
        expect(following.screen).toHaveLength(0)
      }
      expect(Buffer.concat(rest).equals(output.subarray(position))).toBe(true)
    }
    expect(here.failed).toEqual([])
  })

  test('can be had of one that is going on, and anywhere at all', async () => {
    using here = place()
    const { name, recording, output } = await long(here, false)
    expect(await here.recorded.facts(name)).toMatchObject({
      ending: 'going',
      duration_ms: 599_980,
      output_bytes: output.length,
      program: 'exec',
      command: 'make world',
    })
    for (const from of [1, 777_777, output.length - 1, output.length, Number.MAX_SAFE_INTEGER]) {
      const { events } = await here.recorded.part(name, { from })
      const shown = Buffer.concat(events.flatMap((event) => ('bytes' in event ? [event.bytes] : [])))
      expect(shown.equals(output.subarray(from, from + shown.length))).toBe(true)
    }
    await recording.finish()
    expect(await here.recorded.facts(name)).toMatchObject({
      ending: 'closed',
      width: 80,
      height: 24,
      duration_ms: 599_980,
    })
  })
})

test.each([
  ['lines without a colour', (at: number) => `line ${at}\r\n`],
  [
    'a program that draws here and there',
    (at: number) => `\u001b[${1 + (at % 24)};${1 + (at % 60)}H${at}\u001b[${at % 8}m`,
  ],
  ['a colour that is never set back', (at: number) => `${at === 0 ? '\u001b[35m' : ''}line ${at}\r\n`],
  [
    'lines below a part that stays',
    (at: number) => `${at === 0 ? '\u001b[2;24r\u001b[24;1H' : ''}\u001b[36mline\u001b[m ${at}\r\n`,
  ],
  [
    'lines that are cut anywhere',
    (at: number) => `\u001b[1;3${at % 8}mé\u001b[0m${'漢字'.repeat(at % 9)}\r\n`,
  ],
])('the screen is right for %s', async (_, piece) => {
  using here = place()
  const recording = await here.recorded.begin(about)
  using expected = screen(about)
  const all = Buffer.from(Array.from({ length: 14_000 }, (_line, at) => piece(at)).join(''))
  for (let at = 0; at < all.length; at += 1_337) {
    await recording.output(all.subarray(at, at + 1_337))
    here.clock.time += 10
  }
  await recording.finish()
  const at_ms = Math.floor(all.length / 1_337) * 10 - 500
  const seen = all.subarray(0, (at_ms / 10 + 1) * 1_337)
  await expected.show(seen)
  const { screen: shown } = await here.recorded.part(recording.name, { at_ms })
  // What was cut in two follows the screen.
  expect(shown.toString().startsWith(expected.snapshot().toString())).toBe(true)
})

describe('a text', () => {
  const found = async (
    here: ReturnType<typeof place>,
    name: Parameters<typeof here.recorded.facts>[0],
    text: string,
  ) => {
    const all = []
    for (let from: number | undefined = 0; from !== undefined;) {
      const { hits, next } = await here.recorded.search(name, text, from)
      all.push(...hits)
      from = next
    }
    return all
  }

  test('is found where it was shown, whatever its case and however it came', async () => {
    using here = place()
    const recording = await here.recorded.begin(about)
    const say = async (...pieces: string[]) => {
      for (const piece of pieces) await recording.output(Buffer.from(piece))
      here.clock.time += 1_000
    }
    await say('$ ', 'm', 'a', 'q', '\b \b', 'k', 'e', ' w', '\u001b[1mor', 'ld\u001b[m', '\r\n')
    await say('nothing\u001b]0;make world\u0007 here\r\n')
    await say('\u001b[2;3HMake\u001b[2;8HWorld\u001b[5;1Hmake world again, make world\r\n')
    await recording.finish()
    expect(await found(here, recording.name, 'Make World')).toEqual([
      { time_ms: 0, before: '$ ', text: 'make world', after: '' },
      { time_ms: 2_000, before: '', text: 'make world', after: ' again, make world' },
      { time_ms: 2_000, before: 'make world again, ', text: 'make world', after: '' },
    ])
    expect(await found(here, recording.name, 'absent')).toEqual([])
  })

  test('is found in a long recording, part by part', async () => {
    using here = place()
    const { name } = await long(here)
    expect(await found(here, name, 'needle')).toEqual([
      { time_ms: 400_000, before: `line 20000 é ${'='.repeat(60)}`.slice(-60), text: 'NEEDLE', after: '' },
    ])
    const lines = await found(here, name, 'line 2')
    expect(lines).toHaveLength(11_111)
    expect(lines.map(({ time_ms }) => time_ms)).toEqual(
      lines.map(({ time_ms }) => time_ms).toSorted((a, b) => a - b),
    )
  })
})
