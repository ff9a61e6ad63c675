// A device wrote some kilobytes that make a terminal clear or move all of its cells again and again, or
// repeat a character two thousand million times. They stopped the page of whoever replayed the session, for
// minutes. What reaches the terminal of the player and of small pictures is counted here.
import xterm from '@xterm/headless'
import { expect, test } from 'vitest'
import { boundWork } from '../../console/src/player/bound-work.ts'
import { escapeFilter } from '../../console/src/player/escape-filter.ts'

const largest = { cols: 1_000, rows: 500 }
const cells = 1_000_000

/** How many lines the commands that pass would clear or move, each time. */
async function carriedOut(bytes: string): Promise<number> {
  const terminal = new xterm.Terminal({ ...largest, scrollback: 0, allowProposedApi: true })
  let lines = 0
  const counts = (count = largest.rows) => {
    lines += count
    // It is counted instead of done.
    return true
  }
  const first = (params: (number | number[])[]): number =>
    typeof params[0] === 'number' ? params[0] || 1 : 1
  for (const final of 'STLM') terminal.parser.registerCsiHandler({ final }, (params) => counts(first(params)))
  for (const prefix of ['', '?']) terminal.parser.registerCsiHandler({ prefix, final: 'J' }, () => counts())
  for (const final of 'hl') terminal.parser.registerCsiHandler({ prefix: '?', final }, () => counts())
  terminal.parser.registerCsiHandler({ final: 'b' }, (params) => counts(first(params)))
  terminal.parser.registerEscHandler({ final: 'c' }, () => counts())
  boundWork(terminal, { cells })
  await new Promise<void>((resolve) => terminal.write(escapeFilter()(Buffer.from(bytes)), resolve))
  terminal.dispose()
  return lines
}

const size = 12 * 1024
const filled = (piece: string): string => piece.repeat(size / piece.length)

test.each([
  ['resets', filled('\u001bc')],
  ['clears', filled('\u001b[2J')],
  ['clears what may be cleared', filled('\u001b[?J')],
  ['scrolls', filled('\u001b[500S')],
  ['inserts lines', filled('\u001b[500L')],
  ['goes to the other screen and back', filled('\u001b[?1049h\u001b[?1049l')],
])('who %s again and again is carried out a bounded number of times', async (_, bytes) => {
  const lines = await carriedOut(bytes)
  expect(lines).toBeGreaterThan(0)
  expect(lines * largest.cols).toBeLessThanOrEqual(cells)
})

test.each(['\u001b[2147483647b', '\u001b[2147483647S', '\u001b[501T'])(
  '%j is not carried out',
  async (bytes) => {
    expect(await carriedOut(`x${bytes}`)).toBe(0)
  },
)

test('what programs draw with passes', async () => {
  expect(await carriedOut('\u001b[2J\u001b[H\u001b[?1049h')).toBe(2 * largest.rows)
})
