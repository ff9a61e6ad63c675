// A device puts thousands of combining marks on each cell of its terminal, or a colour of its own, on both
// of its screens. The frame of such a terminal had 2.29 MB where 96 KiB were promised, the window of a
// recording had no bound at all, and nobody counted the screens of sessions that have a client. Frames are
// bounded by their bytes now, and all screens of a server share one budget, of which a namespace gets as
// much as is left for others.
import { afterAll, expect, test, vi } from 'vitest'
import { terminalScreen } from '../../server/src/recording/terminal-screen.ts'
import { nextFrame } from '../../server/src/recording/screen-frame.ts'
import { fairShare } from '../../server/src/kit/fair-share.ts'
import { screenThread } from '../../server/src/recording/screen-thread.ts'
import { screen } from '../../server/src/recording/screen.ts'

vi.setConfig({ testTimeout: 60_000 })

const thread = screenThread()
afterAll(() => thread[Symbol.asyncDispose]())

const esc = '\u001b'
const most_bytes = 96 * 1024
const largest = { width: 500, height: 200 }
const cells = largest.width * largest.height
const fills: Readonly<Record<string, string>> = {
  'marks on every cell': `x${'\u0301'.repeat(20)}`.repeat(cells / 20),
  'many marks on few cells': `x${'\u0301'.repeat(10_000)}`.repeat(20),
  'characters of four bytes': '\u{1d400}'.repeat(cells),
  'wide characters': '漢'.repeat(cells / 2),
  'a colour for each cell': Array.from({ length: cells }, (_, at) => `${esc}[38;2;1;2;${at % 256}m.`).join(
    '',
  ),
}

test.each(Object.entries(fills))('a frame with %s has no more than its bytes', async (_, fill) => {
  const steps = [Buffer.from(`${fill}${esc}[?1049h${esc}[H${fill}\r\nend`)]
  const made = await nextFrame({ frame: undefined, size: largest, steps, withScrollback: true, most_bytes })
  expect(made.frame.length).toBeLessThanOrEqual(most_bytes)
  expect(made.frame.toString()).toContain('end')
})

test('a frame that lacks rows says so', async () => {
  const frame = (fill: string) =>
    nextFrame({
      frame: undefined,
      size: largest,
      steps: [Buffer.from(fill)],
      withScrollback: true,
      most_bytes,
    })
  expect((await frame(fills['characters of four bytes']!)).isPartial).toBe(true)
  expect((await frame(fills['many marks on few cells']!)).isPartial).toBe(false)
})

test('the screen of a recording is bounded, too', async () => {
  using one = screen({ width: 1_000, height: 500 })
  const coloured = Array.from(
    { length: 1_000 },
    (_, at) => `${esc}[38;2;1;2;${at % 256};48;2;100;100;200m.`,
  ).join('')
  await one.show(Buffer.from(coloured.repeat(300)))
  expect(one.snapshot().length).toBeLessThanOrEqual(5 * 1024 * 1024)
})

test('all screens share one budget, live ones as well, and another namespace finds room', async () => {
  const budget = 1024 * 1024
  const memory = fairShare(budget)
  const parts = (tenant_id: string) => ({ tenant_id, thread, memory })
  const noise = Buffer.from(
    Array.from({ length: 6_000 }, (_, at) => `${esc}[${1 + (at % 24)};${1 + (at % 60)}H${at}`).join(''),
  )
  const crowd = Array.from({ length: 40 }, () => terminalScreen({ width: 80, height: 24 }, parts('many')))
  for (const one of crowd) one.show(noise)
  const held = () => crowd.reduce((sum, one) => sum + one.held_bytes, 0)
  expect(memory.held_bytes).toBe(held())
  // The last few KiB of each terminal are kept in any case.
  expect(held()).toBeLessThanOrEqual(budget / 2 + 40 * 4 * 1024)
  expect(crowd.some(({ isPartial }) => isPartial)).toBe(true)
  expect(crowd.some(({ isPartial }) => !isPartial)).toBe(true)

  using other = terminalScreen({ width: 80, height: 24 }, parts('few'))
  other.show(noise)
  await other.settle()
  expect(other.isPartial).toBe(false)
  expect(memory.held_bytes).toBe(held() + other.held_bytes)
  for (const one of crowd) one[Symbol.dispose]()
  expect(memory.held_bytes).toBe(other.held_bytes)
})

test('many namespaces leave room for the screens of others', () => {
  const kib = 1024
  const memory = fairShare(1024 * kib)
  for (let many = 0; many < 40; many++) while (memory.take(`many ${many}`, 16 * kib));
  expect(memory.held_bytes).toBeLessThanOrEqual(768 * kib)
  for (let few = 0; few < 100; few++) expect(memory.take(`few ${few}`, 2 * kib)).toBe(true)
})
