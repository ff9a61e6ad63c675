// The screen of a terminal at one moment of its recording: what was shown is played into a terminal without a
// window, and its cells are written out again. Nothing passes from the recording but characters, colours and
// the cursor: no titles, no clipboard, no links.
import xterm from '@xterm/headless'
import type { IBufferCell, Terminal } from '@xterm/headless'
import type { Size } from './journal.ts'

export interface Screen extends Disposable {
  show(bytes: Buffer): Promise<void>
  resize(size: Size): void
  /** Bytes that bring any terminal of the same size to show the same. */
  snapshot(): Buffer
  readonly size: Size
}

const usual: Size = { width: 80, height: 24 }
/** Larger sizes count as this one, so that no client can make the server use more memory. */
const largest: Size = { width: 1_000, height: 500 }

export const fitting = ({ width, height }: Size): Size => ({
  width: Math.min(width || usual.width, largest.width),
  height: Math.min(height || usual.height, largest.height),
})

/**
 * Cells that commands for many lines may still touch: a few bytes of output can clear or move all of them.
 */
export interface ScreenWork {
  cells: number
}

/** Cells that a snapshot may cost: ten thousand cleared screens of the usual size, forty of the largest. */
const snapshotCells = 20_000_000
/** Output is played in pieces of this size, so that other work gets its turn between two of them. */
const piece_bytes = 4_096

/**
 * A terminal without a window. It ignores counts that are larger than its screen: xterm would carry out
 * `CSI 2147483647 S` line by line, and a few bytes of a session would stop the thread for minutes. It ignores
 * commands for many lines, too, once `work` is used up: two bytes (`ESC c`) clear half a million cells.
 */
export function terminalOf(size: Size, scrollback: number, work: ScreenWork): Terminal {
  const terminal = new xterm.Terminal({
    cols: size.width,
    rows: size.height,
    scrollback,
    allowProposedApi: true,
  })
  const refuse = (finals: string, most: () => number): void => {
    for (const final of finals)
      terminal.parser.registerCsiHandler({ final }, ([count]) => typeof count === 'number' && count > most())
  }
  refuse('STLM', () => terminal.rows)
  refuse('bIZ', () => terminal.cols)
  /** Whether there is not enough left for so many lines. */
  const isTooMuch = (lines = terminal.rows): boolean => !spend(work, lines * terminal.cols)
  const { parser } = terminal
  for (const final of 'STLM')
    parser.registerCsiHandler({ final }, ([count]) => isTooMuch(typeof count === 'number' ? count || 1 : 1))
  for (const prefix of ['', '?']) parser.registerCsiHandler({ prefix, final: 'J' }, () => isTooMuch())
  for (const [intermediates, final] of [
    [' ', '@'],
    [' ', 'A'],
    ["'", '}'],
    ["'", '~'],
  ] as const)
    parser.registerCsiHandler({ intermediates, final }, () => isTooMuch())
  for (const final of 'hl')
    parser.registerCsiHandler(
      { prefix: '?', final },
      (modes) => modes.some((mode) => switchesScreens.has(mode)) && isTooMuch(),
    )
  parser.registerEscHandler({ final: 'c' }, () => isTooMuch())
  parser.registerEscHandler({ intermediates: '#', final: '8' }, () => isTooMuch())
  return terminal
}

/** Modes with which a program goes to the alternate screen and back. */
const switchesScreens: ReadonlySet<unknown> = new Set([47, 1047, 1049])

/** False: not so much is left. */
export function spend(work: ScreenWork, cells: number): boolean {
  if (cells > work.cells) return false
  work.cells -= cells
  return true
}

export function screen(first: Size): Screen {
  let size = fitting(first)
  const work: ScreenWork = { cells: snapshotCells }
  const terminal = terminalOf(size, 0, work)
  return {
    async show(bytes) {
      for (let at = 0; at + piece_bytes < bytes.length; at += piece_bytes)
        terminal.write(bytes.subarray(at, at + piece_bytes))
      const rest = bytes.length === 0 ? 0 : ((bytes.length - 1) % piece_bytes) + 1
      await new Promise<void>((resolve) => terminal.write(bytes.subarray(bytes.length - rest), resolve))
    },
    resize(to) {
      size = fitting(to)
      // Both buffers are made anew.
      if (spend(work, 2 * size.width * size.height)) terminal.resize(size.width, size.height)
    },
    snapshot() {
      // The last size counts, whatever it costs.
      terminal.resize(size.width, size.height)
      return Buffer.from(draw(terminal))
    },
    get size() {
      return size
    },
    [Symbol.dispose]: () => terminal.dispose(),
  }
}

function draw(terminal: Terminal): string {
  const { active } = terminal.buffer
  // Everything as new; then the other buffer where a program uses it, so that its end shows nothing of it.
  let out = '\u001bc'
  if (active.type === 'alternate') out += '\u001b[?1049h'
  let cell: IBufferCell | undefined
  for (let y = 0; y < terminal.rows; y++) {
    const row = active.getLine(active.baseY + y)
    if (!row) continue
    let text = ''
    let style = ''
    /** Up to the last cell that shows something. */
    let visible = 0
    for (let x = 0; x < terminal.cols; x++) {
      cell = row.getCell(x, cell)
      if (!cell || cell.getWidth() === 0) continue
      const next = styleOf(cell)
      if (next !== style) text += `\u001b[0${next}m`
      style = next
      text += cell.getChars() || ' '
      if (cell.getChars().trim() !== '' || next !== '') visible = text.length
    }
    if (visible > 0) out += `\u001b[${y + 1};1H${text.slice(0, visible)}\u001b[0m`
  }
  const { insertMode, originMode, wraparoundMode } = terminal.modes
  out += `\u001b[${active.cursorY + 1};${Math.min(active.cursorX, terminal.cols - 1) + 1}H`
  if (insertMode) out += '\u001b[4h'
  if (originMode) out += '\u001b[?6h'
  if (!wraparoundMode) out += '\u001b[?7l'
  return out
}

/** The parameters that follow `CSI 0` to give text the look of the cell. */
export function styleOf(cell: IBufferCell): string {
  const on = (is: number, code: number): string => (is ? `;${code}` : '')
  return (
    on(cell.isBold(), 1) +
    on(cell.isDim(), 2) +
    on(cell.isItalic(), 3) +
    on(cell.isUnderline(), 4) +
    on(cell.isBlink(), 5) +
    on(cell.isInverse(), 7) +
    on(cell.isInvisible(), 8) +
    on(cell.isStrikethrough(), 9) +
    colour(38, cell.getFgColor(), cell.isFgRGB(), cell.isFgPalette()) +
    colour(48, cell.getBgColor(), cell.isBgRGB(), cell.isBgPalette())
  )
}

function colour(code: number, value: number, isRgb: boolean, isPalette: boolean): string {
  if (isRgb) return `;${code};2;${(value >> 16) & 255};${(value >> 8) & 255};${value & 255}`
  return isPalette ? `;${code};5;${value}` : ''
}

/** The end of the bytes that is not whole: a part of a character or of a control sequence. */
export function unfinishedTail(bytes: Buffer): Buffer {
  const tail = bytes.subarray(-longestTail)
  const escape = tail.lastIndexOf(0x1b)
  if (escape >= 0 && unfinished.test(tail.toString('latin1', escape))) return tail.subarray(escape)
  for (let back = 1; back <= Math.min(3, tail.length); back++) {
    const byte = tail[tail.length - back]!
    if (byte >= 0xc0)
      return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2)
        ? tail.subarray(tail.length - back)
        : tail.subarray(tail.length)
    if (byte < 0x80) break
  }
  return tail.subarray(tail.length)
}

const longestTail = 4_096
/** ESC alone, with intermediates, a CSI without its final byte, or a string (OSC, DCS …) without its end. */
// eslint-disable-next-line no-control-regex
const unfinished = /^\x1b([ -/]*|\[[0-?]*[ -/]*|[\]PX^_][^\x07]*)$/
