// Parts of a recording and what is found in it, held against the whole of it: a reader that begins anywhere sees
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

describe('a filmstrip', () => {
  test('has the end of the output up to each of its moments, from the beginning of a line on', async () => {
    using here = place()
    const { name, steps } = await long(here)
    const moments = await here.recorded.filmstrip(name, 8)
    expect(moments).toHaveLength(8)
    expect(moments.map(({ time_ms }) => time_ms)).toEqual(
      moments.map(({ time_ms }) => time_ms).toSorted((a, b) => a - b),
    )
    for (const { time_ms, size, output } of moments) {
      const past = Buffer.concat(steps.filter((step) => step.time_ms <= time_ms).map(({ bytes }) => bytes))
      expect(output.length).toBeGreaterThan(11 * 1024)
      expect(output.length).toBeLessThanOrEqual(12 * 1024)
      expect(past.subarray(-output.length).equals(output)).toBe(true)
      expect(output.toString()).toMatch(/^line \d+ é /)
      expect(size.width).toBe(time_ms > 300_000 ? 100 : 80)
      // In a terminal it draws what was shown.
      using drawn = screen(size)
      using expected = screen(size)
      await drawn.show(output)
      await expected.show(past.subarray(-100_000))
      expect(drawn.snapshot().toString()).toBe(expected.snapshot().toString())
    }
    expect(moments.at(-1)!.time_ms).toBe(599_980)
  })

  test('neither a pause nor a flood takes all of it, and what shows the same is there once', async () => {
    using here = place()
    const recording = await here.recorded.begin(about)
    const say = async (text: string, then_ms: number) => {
      await recording.output(Buffer.from(text))
      here.clock.time += then_ms
    }
    await say('one\r\n', 3_600_000)
    for (let number = 0; number < 2_000; number++) await say(`${'flood '.repeat(100)}\r\n`, 1)
    await say('\u001b[2J\u001b[Hthree\r\n', 3_600_000)
    await say('four\r\n', 1_000)
    await recording.finish()
    const moments = await here.recorded.filmstrip(recording.name, 8)
    const ends = moments.map(({ output }) => output.toString().trim().split(/\s/).at(-1))
    expect(ends.filter((end) => end === 'one')).toHaveLength(1)
    expect(ends.filter((end) => end === 'flood').length).toBeGreaterThanOrEqual(3)
    expect(ends.slice(-2)).toEqual([expect.stringContaining('three'), 'four'])
    expect(moments.length).toBeLessThanOrEqual(8)
  })

  test('of a recording without output there is none', async () => {
    using here = place()
    const recording = await here.recorded.begin(about)
    await recording.finish()
    expect(await here.recorded.filmstrip(recording.name, 8)).toEqual([])
  })
})

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

test('the facts of a recording list its interruptions, up to now while one goes on', async () => {
  using here = place()
  const recording = await here.recorded.begin(about)
  const facts = async () => (await here.recorded.facts(recording.name)).interruptions
  expect(await facts()).toEqual([])
  here.clock.time += 5_000
  recording.mark({ type: 'held' })
  here.clock.time += 1_000
  await recording.output(Buffer.from('unseen'))
  const first = { from_ms: 5_000, why: 'client lost' }
  expect(await facts()).toEqual([{ ...first, until_ms: 6_000, via: '' }])
  here.clock.time += 60_000
  recording.mark({ type: 'resumed', via: 'ssh' })
  const listed = [{ ...first, until_ms: 66_000, via: 'ssh' }]
  expect(await facts()).toEqual(listed)
  await recording.finish()
  expect(await facts()).toEqual(listed)
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
  // The unfinished sequence follows the screen.
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
