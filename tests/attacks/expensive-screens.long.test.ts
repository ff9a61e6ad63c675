// A member, or a rogue device, fills a recording with commands of two to seven bytes that clear or move every
// cell of the largest terminal. Whoever opens the recording has the server draw its screen, and the search
// plays all of it: half a megabyte of such commands would take many minutes of the server's only thread.
// Commands beyond a bound are ignored.
import { expect, test, vi } from 'vitest'
import { transcriptOf } from '../../server/src/recording/transcript.ts'
import { screen } from '../../server/src/recording/screen.ts'
import { recordSession } from '../harness/recorded.ts'
import { sharedPlace } from '../harness/place.ts'

vi.setConfig({ testTimeout: 60_000 })

const place = sharedPlace()
const size = { width: 1_000, height: 500 }
const escape = '\u001b'
const bombs = [
  `${escape}c`,
  `${escape}#8`,
  `${escape}[2J`,
  `${escape}[1J`,
  `${escape}[?2J`,
  `${escape}[500S`,
  `${escape}[500T`,
  `${escape}[500L`,
  `${escape}[500M`,
  `${escape}[999'}`,
  `${escape}[999'~`,
  `${escape}[999 @`,
  `${escape}[999 A`,
  `${escape}[?1049h${escape}[?1049l`,
]
const all = bombs.map((bomb) => bomb.repeat(2_000)).join('')

test('the screen of a recording is drawn although it is made to be expensive, and others are answered meanwhile', async () => {
  const uid = await recordSession(place.rooms, { size, lines: [all, `${escape}[Hpetrel`] })
  let drawn = false
  const drawing = place.owner.recordings
    .window({ params: { uid, channel: '0' }, query: { at: 60_000 } })
    .finally(() => (drawn = true))
  await place.stranger.devices.list({ query: {} })
  expect(drawn).toBe(false)
  const { body } = await drawing
  expect(Buffer.from(body.screen, 'base64').toString()).toContain('petrel')
})

test('a terminal whose window changes all the time is drawn in its last size', async () => {
  using one = screen(size)
  for (let turn = 0; turn < 20_000; turn++) {
    one.resize({ width: turn % 2 === 0 ? 2 : 1_000, height: 500 })
    if (turn % 100 === 0) await one.show(Buffer.from('x'))
  }
  one.resize({ width: 90, height: 30 })
  expect(one.size).toEqual({ width: 90, height: 30 })
  expect(one.snapshot().length).toBeGreaterThan(0)
})

test('the transcript of such a recording has an end', async () => {
  const texts: string[] = []
  const events = [all, `${escape}[2J${escape}[Hgannet\r\n`].map((text, index) => ({
    kind: 'output' as const,
    time_ms: index * 1_000,
    bytes: Buffer.from(text),
  }))
  for await (const lines of transcriptOf(size, events)) texts.push(...lines.map(({ text }) => text))
  expect(texts.some((text) => text.includes('gannet'))).toBe(true)
})
