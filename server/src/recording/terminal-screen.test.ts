// The kept state of a terminal is what the terminal itself shows: the same output goes to a terminal that runs
// all the time, and to one that is only kept.
import xterm from '@xterm/headless'
import { afterAll, expect, test } from 'vitest'
import { terminalScreen, screens_bytes } from './terminal-screen.ts'
import { styleOf } from './screen.ts'
import type { ScreenStep } from './screen-frame.ts'
import { fairShare } from '../kit/fair-share.ts'
import { screenThread } from './screen-thread.ts'

const thread = screenThread()
afterAll(() => thread[Symbol.asyncDispose]())

const parts = { tenant_id: 'tenant', thread, memory: fairShare(screens_bytes) }
const first = { width: 40, height: 10 }

function terminal(size = first) {
  const one = new xterm.Terminal({
    cols: size.width,
    rows: size.height,
    scrollback: 1_000,
    allowProposedApi: true,
  })
  const answers: string[] = []
  one.onData((text) => answers.push(text))
  return {
    one,
    answers,
    write: (text: string | Uint8Array) => new Promise<void>((resolve) => one.write(text, resolve)),
  }
}

/** All that can be seen, and the modes. */
function seen(one: InstanceType<typeof xterm.Terminal>) {
  const { active } = one.buffer
  const rows = Array.from({ length: one.rows }, (_, y) => {
    const row = active.getLine(active.baseY + y)
    return Array.from({ length: one.cols }, (_unused, x) => {
      const cell = row?.getCell(x)
      return cell?.getWidth() === 0 ? '' : `${cell?.getChars() || ' '}${cell ? styleOf(cell) : ''}`
    }).join('')
  })
  return { type: active.type, rows, cursor: [active.cursorX, active.cursorY], modes: one.modes }
}

const esc = '\u001b'
const programs: Record<string, string> = {
  'lines and colours': `one\r\n${esc}[1;31mtwo${esc}[0m\r\n${esc}[38;2;1;2;3mthree${esc}[m four`,
  'a colour that goes on': `plain ${esc}[7;48;5;22min colour`,
  'long lines': `${'abcdefghij'.repeat(9)}\r\nnext`,
  'a cursor at the edge': 'x'.repeat(40),
  'wide characters': `日本語のテキスト\r\n${'漢'.repeat(25)}\r\n한국어 😀 e\u0301`,
  margins: `${esc}[2J${esc}[3;7r${esc}[7;1Ha\r\nb\r\nc\r\nd\r\ne${esc}[4;5H`,
  'a full-screen program': `shell$ vim\r\n${esc}[?1049h${esc}[?1h${esc}=${esc}[?2004h${esc}[2J${esc}[H~ 漢字${esc}[10;1H"file" 3L${esc}[1;3H`,
  modes: `${esc}[?1002h${esc}[?1006h${esc}[?25l${esc}[?7l${esc}[4h`,
  'line drawing': `${esc}(0lqqk${esc}[5;5H`,
  origin: `${esc}[3;8r${esc}[?6h${esc}[2;2H`,
  'a saved cursor': `abc${esc}7${esc}[8;8Hdef`,
  'much that scrolls': Array.from({ length: 3_000 }, (_, at) => `${esc}[3${at % 8}mline ${at}${esc}[m`).join(
    '\r\n',
  ),
  'questions and titles': `${esc}[c${esc}[6n${esc}]0;title\u0007${esc}]52;c;aGk=\u0007${esc}[?1000$p after`,
}

for (const [name, output] of Object.entries(programs))
  test(`the screen with ${name} is the same after it was kept`, async () => {
    const live = terminal()
    await live.write(output)
    using kept = terminalScreen(first, parts)
    // In pieces, with frames between them.
    const bytes = Buffer.from(output)
    for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 7)) {
      kept.show(bytes.subarray(at, at + Math.ceil(bytes.length / 7)))
      if (bytes.length < 2_000) await kept.settle()
    }
    for (const scrollback of [false, true]) {
      const back = terminal()
      await back.write(await kept.redraw(first, scrollback))
      expect(seen(back.one)).toEqual(seen(live.one))
      // Later output has the same effect, too.
      const next = `q next${esc}[K\r\nline\r\n`
      const other = terminal()
      await other.write(output)
      await other.write(next)
      await back.write(next)
      expect(seen(back.one)).toEqual(seen(other.one))
      expect(back.answers).toEqual([])
    }
    expect(kept.isPartial).toBe(false)
  })

test('a full-screen program leaves the screen that was there before it', async () => {
  using kept = terminalScreen(first, parts)
  kept.show(Buffer.from(`before\r\nshell$ ${esc}[?1049h${esc}[2Jinside`))
  await kept.settle()
  const back = terminal()
  await back.write(await kept.redraw(first, false))
  await back.write(`${esc}[?1049lafter`)
  expect(
    seen(back.one)
      .rows.slice(0, 2)
      .map((row) => row.trim()),
  ).toEqual(['before', 'shell$ after'])
})

test('another window shows it at its own size', async () => {
  using kept = terminalScreen(first, parts)
  kept.show(Buffer.from('one\r\ntwo\r\nthree'))
  kept.resize({ width: 60, height: 12 })
  kept.show(Buffer.from(`\r\n${'y'.repeat(50)}\r\n$`))
  const size = { width: 30, height: 5 }
  const back = terminal(size)
  await back.write(await kept.redraw(size, false))
  expect(seen(back.one).rows.map((row) => row.trim())).toEqual([
    'two',
    'three',
    'y'.repeat(30),
    'y'.repeat(20),
    '$',
  ])
})

test('what scrolled by comes back on request', async () => {
  using kept = terminalScreen(first, parts)
  kept.show(Buffer.from(Array.from({ length: 100 }, (_, at) => `line ${at}`).join('\r\n')))
  const back = terminal()
  await back.write(await kept.redraw(first, true))
  expect(back.one.buffer.active.getLine(0)?.translateToString(true)).toBe('line 0')
  expect(back.one.buffer.active.length).toBe(100)
})

test('memory is bounded, whatever is written', async () => {
  using kept = terminalScreen({ width: 500, height: 200 }, parts)
  const colours = Buffer.from(
    Array.from({ length: 20_000 }, (_, at) => `${esc}[38;2;${at % 256};${at % 255};${at % 254}mx`).join(''),
  )
  for (let round = 0; round < 20; round++) kept.show(colours)
  expect(kept.held_bytes).toBeLessThan(600 * 1024)
  await kept.settle()
  expect(kept.held_bytes).toBeLessThan(250 * 1024)
})

test('a small screen holds no more memory than its frame needs', async () => {
  using kept = terminalScreen(first, parts)
  // The end is a part of a sequence, which is stored next to the frame.
  kept.show(Buffer.from(`one\r\ntwo${esc}[3`))
  await kept.settle()
  expect(kept.held_bytes).toBeGreaterThan(10)
  expect(kept.held_bytes).toBeLessThan(4 * 1024)
})

test('little output between many sizes holds little memory', async () => {
  let taken: readonly ScreenStep[] = []
  const screen = terminalScreen(first, {
    ...parts,
    thread: {
      hasRoom: () => true,
      frame: (_, { steps }) => {
        taken = steps
        const [frame, unfinished] = [Buffer.alloc(0), Buffer.alloc(0)]
        return Promise.resolve({ frame, size: first, unfinished, isPartial: false })
      },
    },
  })
  for (let turn = 0; turn < 200; turn++) {
    screen.show(Buffer.from('x'))
    screen.resize({ width: 40 + (turn % 2), height: 10 })
  }
  const counted = screen.held_bytes
  await screen.settle()
  const memory = new Set(taken.flatMap((step) => ('buffer' in step ? [step.buffer] : [])))
  const held = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0)
  expect(taken.length).toBeGreaterThan(300)
  expect(held).toBeLessThanOrEqual(2 * counted)
})
