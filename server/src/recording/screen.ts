// The screen of a terminal at one moment of its recording: what was shown is played into a terminal without a
// window, and its cells are written out again. Nothing passes from the recording but characters, colours and
// the cursor: no titles, no clipboard, no links.
import xterm from '@xterm/headless'
import type { IBufferCell, IBufferLine, Terminal } from '@xterm/headless'
import type { Size } from './journal.ts'

export interface Screen extends Disposable {
  show(bytes: Buffer): Promise<void>
  resize(size: Size): void
  /** Bytes that make any terminal of the same size show the same. */
  snapshot(): Buffer
  readonly size: Size
}

const usual: Size = { width: 80, height: 24 }
/** Bounds the memory that a client can make the server use. */
const largest: Size = { width: 1_000, height: 500 }

export const fitting = ({ width, height }: Size): Size => ({
  width: Math.min(width || usual.width, largest.width),
  height: Math.min(height || usual.height, largest.height),
})

/**
 * The work that output may still cause, in cells that are cleared or moved: a cell takes about 25 ns. Text
 * costs nothing, because its length bounds it. A sequence costs what it moves, however short it is.
 */
export interface ScreenWork {
  cells: number
}

/** About half a second. */
export const mostCells = 20_000_000
/** Output is played in pieces of this size, so that other work gets its turn between two of them. */
const piece_bytes = 4_096

/** The most characters of a cell: scripts and emoji need fewer. */
const longestCell = 16
/** The largest screen in colours, unless each cell has one of its own. */
const mostSnapshot_bytes = 4 * 1024 * 1024

/** To move a row takes as long as to clear this many cells. */
const rowCells = 4
/** For a cell that moves within its row, or is erased. */
const movedCells = 4
const erasedCells = 2
/** The least that it costs to scroll by a line. */
const scrollCells = 50

/** False: too little is left. */
export function spend(work: ScreenWork, cells: number): boolean {
  if (cells > work.cells) return false
  work.cells -= cells
  return true
}

/** Internals of the terminal: only here can scrolling, insert mode and tabs be counted. */
interface Inside {
  readonly _core: {
    readonly _bufferService: {
      scroll(...given: unknown[]): void
      readonly buffer: {
        readonly y: number
        readonly ybase: number
        readonly scrollTop: number
        readonly scrollBottom: number
        readonly lines: { readonly length: number }
      }
    }
    readonly _inputHandler: {
      print(codes: Uint32Array, start: number, end: number): void
      tab(): boolean
    }
    readonly coreService: { readonly modes: { readonly insertMode: boolean } }
  }
}

/**
 * A terminal without a window. It ignores counts larger than its screen: xterm would carry out `CSI
 * 2147483647 S` line by line, and a few bytes would stop the thread for minutes. Once `work` is used up it
 * ignores all but text: two bytes (`ESC c`) clear half a million cells.
 */
export function terminalOf(size: Size, scrollback: number, work: ScreenWork): Terminal {
  const terminal = new xterm.Terminal({
    cols: size.width,
    rows: size.height,
    scrollback,
    allowProposedApi: true,
  })
  const { parser } = terminal
  const isTooMuch = (cells: number): boolean => !spend(work, cells)
  const page = (): number => terminal.rows * terminal.cols
  /** Rows move up or down, and one becomes empty. */
  const shift = (): number => 2 * rowCells * terminal.rows + terminal.cols
  /** Counts sequences by their first parameter. */
  const csi = (finals: string, cost: (count: number) => number, id: object = {}): void => {
    for (const final of finals)
      parser.registerCsiHandler({ ...id, final }, ([given]) =>
        isTooMuch(cost(typeof given === 'number' && given > 0 ? given : 1)),
      )
  }
  csi('STLM', (count) => (count > terminal.rows ? Infinity : count * shift()))
  csi('b', (count) => (count > terminal.cols ? Infinity : count))
  csi('@P', () => movedCells * terminal.cols)
  csi('X', () => erasedCells * terminal.cols)
  for (const prefix of ['', '?']) {
    csi('J', page, { prefix })
    csi('K', () => erasedCells * terminal.cols, { prefix })
  }
  csi('@A', () => movedCells * page(), { intermediates: ' ' })
  csi('}~', () => movedCells * page(), { intermediates: "'" })
  for (const final of 'hl')
    parser.registerCsiHandler(
      { prefix: '?', final },
      (modes) => modes.some((mode) => switchesScreens.has(mode)) && isTooMuch(page()),
    )
  parser.registerEscHandler({ final: 'c' }, () => isTooMuch(2 * page()))
  parser.registerEscHandler({ intermediates: '#', final: '8' }, () => isTooMuch(page()))
  countInside(terminal, work, csi)
  return terminal
}

function countInside(
  terminal: Terminal,
  work: ScreenWork,
  csi: (finals: string, cost: (count: number) => number) => void,
): void {
  const { _core: core } = terminal as unknown as Inside
  const { _bufferService: buffers, _inputHandler: input, coreService } = core
  const { parser } = terminal
  const scroll = buffers.scroll.bind(buffers)
  buffers.scroll = (...given) => {
    const { ybase, scrollTop, scrollBottom, lines } = buffers.buffer
    // Where all of the screen scrolls, no row moves.
    const isWhole = scrollTop === 0 && ybase + scrollBottom === lines.length - 1
    const cost = scrollCells + (isWhole ? terminal.cols / rowCells : rowCells * terminal.rows + terminal.cols)
    if (spend(work, cost)) scroll(...given)
  }
  parser.registerEscHandler({ final: 'M' }, () => {
    const { y, scrollTop } = buffers.buffer
    return y === scrollTop && !spend(work, rowCells * terminal.rows + terminal.cols)
  })
  const print = input.print.bind(input)
  input.print = (codes, start, end) => {
    // Each character moves the rest of its row.
    const cost = coreService.modes.insertMode ? (end - start) * movedCells * terminal.cols : 0
    if (spend(work, cost)) print(codes, start, end)
  }
  /** Without tab stops, a tab looks for one in all of its row. */
  let hasStops = true
  parser.registerCsiHandler({ final: 'g' }, ([which]) => {
    if (which === 3) hasStops = false
    return false
  })
  const tabCost = (): number => (hasStops ? 0 : erasedCells * terminal.cols)
  const tab = input.tab.bind(input)
  input.tab = () => (spend(work, tabCost()) ? tab() : true)
  csi('IZ', (count) => (count > terminal.cols ? Infinity : count + tabCost()))
}

const switchesScreens: ReadonlySet<unknown> = new Set([47, 1047, 1049])

/** A new size may wrap all lines anew; false: that costs more than is left. */
export function resizeWithin(terminal: Terminal, { width, height }: Size, work: ScreenWork): boolean {
  const lines = Math.max(terminal.buffer.normal.length, height)
  const cost = erasedCells * lines * (terminal.cols + width)
  // Half of the work is left for everything else.
  if (cost > work.cells / 2 || !spend(work, cost)) return false
  terminal.resize(width, height)
  return true
}

export function screen(first: Size): Screen {
  let size = fitting(first)
  const work: ScreenWork = { cells: mostCells }
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
      resizeWithin(terminal, size, work)
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
  // Resets everything; then enters the other buffer where a program uses it, so that its end shows nothing of
  // it.
  let out = '\u001bc'
  if (active.type === 'alternate') out += '\u001b[?1049h'
  let left_bytes = mostSnapshot_bytes
  for (let y = 0; y < terminal.rows; y++) {
    const row = active.getLine(active.baseY + y)
    const { text, plain } = row ? drawnRow(row, terminal.cols) : { text: '', plain: '' }
    const [shown] = [text, plain].filter(
      (form) => Buffer.byteLength(form) <= left_bytes / (terminal.rows - y),
    )
    if (!shown) continue
    left_bytes -= Buffer.byteLength(shown)
    out += `\u001b[${y + 1};1H${shown}\u001b[0m`
  }
  const { insertMode, originMode, wraparoundMode } = terminal.modes
  out += `\u001b[${active.cursorY + 1};${Math.min(active.cursorX, terminal.cols - 1) + 1}H`
  if (insertMode) out += '\u001b[4h'
  if (originMode) out += '\u001b[?6h'
  if (!wraparoundMode) out += '\u001b[?7l'
  return out
}

/** Up to the last cell that shows something. */
export interface ScreenRow {
  readonly text: string
  /** Without colours and combining marks. */
  readonly plain: string
}

/** `toEnd`: with the empty cells at its end. */
export function drawnRow(row: IBufferLine, cols: number, toEnd = false): ScreenRow {
  let cell: IBufferCell | undefined
  let [text, plain, style] = ['', '', '']
  let [visible, plainVisible] = [0, 0]
  for (let x = 0; x < cols; x++) {
    cell = row.getCell(x, cell)
    if (!cell || cell.getWidth() === 0) continue
    const next = styleOf(cell)
    if (next !== style) text += `\u001b[0${next}m`
    style = next
    const characters = charactersOf(cell)
    text += characters
    plain += String.fromCodePoint(characters.codePointAt(0)!)
    if (characters.trim() === '' && next === '' && !toEnd) continue
    visible = text.length
    plainVisible = plain.length
  }
  return { text: text.slice(0, visible), plain: plain.slice(0, plainVisible) }
}

/** With a bounded number of combining marks: output can put thousands on a cell. */
export const charactersOf = (cell: IBufferCell): string => {
  const characters = cell.getChars() || ' '
  return characters.length <= longestCell ? characters : characters.slice(0, longestCell).toWellFormed()
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

/** The unfinished end of the bytes: a part of a character or of a control sequence. */
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
