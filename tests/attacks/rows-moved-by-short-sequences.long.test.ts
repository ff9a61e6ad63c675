// A device fills its terminal with sequences of a few bytes that move every row of it: `ESC M` at the top, a
// line feed at the margin of a scroll region, a text that wraps there, inserted characters, new sizes. The
// work was counted by the length of the sequence, or not at all. One frame of a held session took seconds of
// the thread that all others wait for, and one window of a recording took many more of the server's own
// thread. The test counts the rows and cells that the terminal really moves.
import xterm from '@xterm/headless'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { nextFrame, type ScreenStep } from '../../server/src/recording/screen-frame.ts'
import { screen } from '../../server/src/recording/screen.ts'

vi.setConfig({ testTimeout: 60_000 })

const esc = '\u001b'
/** About half a second of work: a cell takes 25 ns, and to move a row takes as long as four of them. */
const most = 20_000_000
const row = 4

interface Line {
  readonly length: number
}
interface Lines {
  readonly length: number
  get(at: number): Line
}
interface Inside {
  readonly _core: { readonly buffers: { readonly normal: { readonly lines: Lines } } }
}

let moved = 0
let restore: (() => void)[] = []

/** Counts the calls of a method that all terminals share. */
function count<O extends object>(of: O, name: string, cost: (self: O, given: number[]) => number): void {
  const owner = Object.getPrototypeOf(of) as Record<string, (...given: number[]) => unknown>
  const original = owner[name]!
  owner[name] = function counted(this: O, ...given: number[]) {
    moved += cost(this, given)
    return original.apply(this, given)
  }
  restore.push(() => (owner[name] = original))
}

beforeAll(() => {
  const sample = new xterm.Terminal({ cols: 2, rows: 1, allowProposedApi: true })
  const { _core: core } = sample as unknown as Inside
  const { normal } = core.buffers
  const { lines } = normal
  const line = lines.get(0)
  count(lines, 'shiftElements', (_, [, rows]) => row * rows!)
  count(lines, 'splice', (self, [start]) => row * (self.length - start!))
  count(normal, 'getBlankLine', () => line.length)
  for (const name of ['insertCells', 'deleteCells']) count(line, name, ({ length }, [at]) => length - at!)
  count(line, 'replaceCells', ({ length }, [from, to]) => Math.min(to!, length) - from!)
  count(line, 'fill', ({ length }) => length)
  count(line, 'copyFrom', ({ length }) => length / row)
  count(line, 'setCellFromCodepoint', () => 1)
  count(line, 'copyCellsFrom', (_, given) => given[3]!)
  count(line, 'resize', (_, [cols]) => cols!)
  sample.dispose()
})
afterAll(() => {
  for (const one of restore) one()
  restore = []
})
beforeEach(() => (moved = 0))

const region = `${esc}[2r${esc}[999;1H`
const bombs: Readonly<Record<string, readonly [before: string, again: string]>> = {
  'ESC M at the top': [`${esc}[H`, `${esc}M`],
  'ESC M at a margin': [`${esc}[2r${esc}[2;1H`, `${esc}M`],
  'ESC D at a margin': [region, `${esc}D`],
  'ESC E at a margin': [region, `${esc}E`],
  'line feeds at a margin': [region, '\n'],
  'vertical tabs at a margin': [region, '\u000b'],
  'a text that wraps at a margin': [region, 'xyz '],
  'wide characters that wrap at a margin': [region, '漢'],
  'characters that are repeated at a margin': [`${region}x`, `${esc}[80b`],
  'lines that are inserted': [`${esc}[H`, `${esc}[L`],
  'lines that are removed': [`${esc}[H`, `${esc}[M`],
  'scrolling up': ['', `${esc}[S`],
  'scrolling down': ['', `${esc}[T`],
  'characters that are inserted': [`${esc}[H`, `${esc}[@`],
  'characters that are removed': [`${esc}[H`, `${esc}[P`],
  'characters that are erased': [`${esc}[H`, `${esc}[2000X`],
  'lines that are erased': [`${esc}[H`, `${esc}[K`],
  'lines whose text is erased': [`${esc}[H`, `${esc}[?K`],
  'a text in insert mode': [`${esc}[4h`, 'x\r'],
  'columns that are inserted': [`${esc}[H`, `${esc}['}`],
  'columns that are removed': [`${esc}[H`, `${esc}['~`],
  'pages that are cleared': ['', `${esc}[J`],
  'the alternate screen': ['', `${esc}[?1049h${esc}[?1049l`],
  'the test pattern': ['', `${esc}#8`],
  resets: ['', `${esc}c`],
}
const filled = (before: string, again: string, bytes: number): Buffer =>
  Buffer.from(before + again.repeat(bytes / Buffer.byteLength(again)))

/** Those that are expensive on a narrow screen, too. */
const moveRows = Object.entries(bombs).filter(([name]) => /margin|ESC|inserted|removed|scrolling/.test(name))

describe.each([
  { width: 500, height: 200, bytes: 96 * 1024, cases: Object.entries(bombs) },
  { width: 2, height: 200, bytes: 192 * 1024, cases: moveRows },
])('a frame of $width × $height', ({ bytes, cases, ...size }) => {
  const frame = (steps: ScreenStep[]) =>
    nextFrame({ frame: undefined, size, steps, withScrollback: true, most_bytes: 96 * 1024 })

  test.each(cases)('costs a bounded amount of work: %s', async (_, [before, again]) => {
    const bomb = filled(before, again, bytes)
    const { frame: drawn } = await frame([bomb, Buffer.from(`${esc}[4l${esc}[r${esc}[H${esc}[2Kok`)])
    expect(moved).toBeLessThanOrEqual(2 * most)
    expect(drawn.toString()).toContain('ok')
  })

  test('costs a bounded amount of work: sizes', async () => {
    const scrolled = Buffer.from(`${'x'.repeat(60)}\r\n`.repeat(1_200))
    const steps = Array.from({ length: 700 }, (_, at): ScreenStep[] => [
      Buffer.from('x'),
      { width: at % 2 === 0 ? 2 : 500, height: 200 },
    ])
    const last = { width: 90, height: 30 }
    const made = await frame([scrolled, ...steps.flat(), last, Buffer.from(`${esc}[Hok`)])
    expect(moved).toBeLessThanOrEqual(2 * most)
    expect(made.size).toEqual(last)
    expect(made.frame.toString()).toContain('ok')
  })
})

test.each(moveRows.slice(0, 6))(
  'a screen of a recording costs a bounded amount: %s',
  async (_, [before, again]) => {
    using one = screen({ width: 1_000, height: 500 })
    await one.show(filled(before, again, 128 * 1024))
    await one.show(Buffer.from(`${esc}[4l${esc}[r${esc}[Hok`))
    expect(moved).toBeLessThanOrEqual(2 * most)
    expect(one.snapshot().toString()).toContain('ok')
  },
)

test('what programs do is carried out', async () => {
  const size = { width: 80, height: 24 }
  const lines = Array.from({ length: 2_000 }, (_, at) => `${esc}M${esc}[24;1Hline ${at}${esc}[K\r\n`).join('')
  const step = Buffer.from(`${esc}[2;24r${lines}`)
  const { frame } = await nextFrame({
    frame: undefined,
    size,
    steps: [step],
    withScrollback: true,
    most_bytes: 96 * 1024,
  })
  expect(frame.toString()).toContain('line 1999')
  expect(frame.toString()).toContain('line 1978')
})
