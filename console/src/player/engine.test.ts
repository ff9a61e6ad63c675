// The engine behind the player, with a clock of its own: what is on the screen is what was there at that
// time, however one came to it.
import { expect, test } from 'vitest'
import type { RecordingEvent, RecordingWindow } from '@hawser/contract/recordings'
import { clock, engine } from './engine.ts'

const base64 = (text: string) => btoa(text)

/** In parts of two outputs. */
function recorded(outputs: readonly (readonly [time_ms: number, text: string])[], duration_ms: number) {
  const events: RecordingEvent[] = outputs.map(([time_ms, text]) => ({ time_ms, bytes: base64(text) }))
  const asked: string[] = []
  const part = (from: number, screen: string, time_ms: number): RecordingWindow => ({
    time_ms,
    width: 80,
    height: 24,
    screen: base64(screen),
    typist: '',
    events: events.slice(from, from + 2),
    next: from + 2 < events.length ? from + 2 : null,
  })
  return {
    asked,
    duration_ms,
    interruptions: [] as { from_ms: number; until_ms: number }[],
    at(time_ms: number) {
      asked.push(`at ${time_ms}`)
      const past = outputs.filter(([time]) => time <= time_ms)
      return Promise.resolve(part(past.length, past.map(([, text]) => text).join(''), time_ms))
    },
    from(position: number) {
      asked.push(`from ${position}`)
      return Promise.resolve(part(position, '', 0))
    },
  }
}

function playing(source: ReturnType<typeof recorded>) {
  let shown = ''
  let now = 0
  let call: (() => void) | undefined
  const display = {
    reset: () => void (shown = ''),
    write: (bytes: Uint8Array) => void (shown += new TextDecoder().decode(bytes)),
    resize: () => undefined,
  }
  const scheduler = {
    now: () => now,
    soon(next: () => void) {
      call = next
      return () => void (call = undefined)
    },
  }
  const made = engine(source, display, () => undefined, scheduler)
  const settle = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return {
    made,
    shown: () => shown,
    settle,
    /** Time passes as in a browser. */
    async pass(time_ms: number) {
      for (let passed = 0; passed < time_ms; passed += 20) {
        now += 20
        const due = call
        call = undefined
        due?.()
        await settle()
      }
    },
  }
}

const outputs = [
  [0, 'a'],
  [1_000, 'b'],
  [2_000, 'c'],
  [60_000, 'd'],
  [60_500, 'e'],
] as const

test('it opens where the terminal first shows something, and goes back to the very beginning', async () => {
  const { made, shown, settle } = playing(
    recorded(
      [
        [700, '$ '],
        [900, 'ls'],
      ],
      1_000,
    ),
  )
  await settle()
  expect([shown(), made.state().time_ms]).toEqual(['$ ', 700])
  made.seek(0)
  await settle()
  expect([shown(), made.state().time_ms]).toEqual(['', 0])
})

test('it shows everything when its time has come, fetching it part by part, and stops at the end', async () => {
  const source = recorded(outputs, 61_000)
  const player = playing(source)
  await player.settle()
  expect([player.shown(), player.made.state().playing]).toEqual(['a', false])
  player.made.toggle()
  await player.pass(900)
  expect(player.shown()).toBe('a')
  await player.pass(1_200)
  expect(player.shown()).toBe('abc')
  await player.pass(57_000)
  expect(player.shown()).toBe('abc')
  await player.pass(1_000)
  expect(player.shown()).toBe('abcd')
  await player.pass(2_000)
  expect(player.shown()).toBe('abcde')
  expect(player.made.state()).toMatchObject({ playing: false, time_ms: 61_000 })
  expect(source.asked).toEqual(['at 0', 'from 3'])
  player.made.toggle()
  await player.pass(40)
  expect(player.shown()).toBe('a')
})

test('twice as fast takes half the time, and pauses are skipped', async () => {
  const player = playing(recorded(outputs, 61_000))
  await player.settle()
  player.made.setSpeed(2)
  player.made.toggle()
  await player.pass(1_100)
  expect(player.shown()).toBe('abc')
  player.made.setSkipIdle(true)
  await player.pass(500)
  expect(player.shown()).toBe('abcde')
})

test('an interruption is skipped with all that came in it, unless somebody wants to see it', async () => {
  const source = { ...recorded(outputs, 61_000), interruptions: [{ from_ms: 1_500, until_ms: 60_200 }] }
  const player = playing(source)
  await player.settle()
  player.made.toggle()
  await player.pass(1_400)
  expect(player.shown()).toBe('ab')
  await player.pass(200)
  // The screen at the end of it, without playing the output before.
  expect(player.shown()).toBe('abcd')
  expect(source.asked).toEqual(['at 0', 'from 3', 'at 60200'])
  expect(player.made.state().playing).toBe(true)
  await player.pass(400)
  expect(player.shown()).toBe('abcde')
  // A jump into it shows it.
  player.made.seek(1_500)
  await player.pass(1_000)
  expect(player.shown()).toBe('abc')
  player.made.seek(0)
  player.made.setSkipInterruptions(false)
  await player.pass(2_100)
  expect(player.shown()).toBe('abc')
})

test('an interruption up to the end is the end', async () => {
  const source = { ...recorded(outputs, 61_000), interruptions: [{ from_ms: 1_500, until_ms: 61_000 }] }
  const player = playing(source)
  await player.settle()
  player.made.setSkipIdle(true)
  player.made.toggle()
  await player.pass(1_700)
  expect(player.shown()).toBe('abcde')
  expect(player.made.state()).toMatchObject({ playing: false, time_ms: 61_000 })
})

test('a pause holds it, and a seek shows the screen of its moment', async () => {
  const source = recorded(outputs, 61_000)
  const player = playing(source)
  await player.settle()
  player.made.toggle()
  await player.pass(500)
  player.made.toggle()
  await player.pass(5_000)
  expect([player.shown(), player.made.state().playing]).toEqual(['a', false])
  // Dragging makes many requests; the last one counts.
  for (const to of [10, 30_000, 60_000, 99_000, 60_200]) player.made.seek(to)
  await player.settle()
  expect([player.shown(), player.made.state().time_ms]).toEqual(['abcd', 60_200])
  expect(source.asked).toEqual(['at 0', 'from 3', 'at 10', 'at 60200'])
  player.made.toggle()
  await player.pass(400)
  expect(player.shown()).toBe('abcde')
})

test('what the server refuses is told, and another try goes on from there', async () => {
  const source = recorded(outputs, 61_000)
  let broken = true
  const player = playing({
    ...source,
    at: (time_ms) => (broken ? Promise.reject(new Error('away')) : source.at(time_ms)),
  })
  await player.settle()
  expect(player.made.state()).toMatchObject({ error: new Error('away'), loading: false })
  broken = false
  player.made.seek(1_500)
  await player.settle()
  expect(player.made.state()).toMatchObject({ error: undefined, time_ms: 1_500 })
  expect(player.shown()).toBe('ab')
})

test('times are said as clocks do', () => {
  expect([0, 999, 61_000, 3_723_000].map(clock)).toEqual(['0:00', '0:00', '1:01', '1:02:03'])
})
