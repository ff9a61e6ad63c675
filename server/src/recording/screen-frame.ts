// A frame: text that brings any terminal to the state that another one is in, with its screen, what scrolled
// by, the cursor, colours, margins and modes. It is made of the cells and modes of a terminal without a
// window, so nothing that a device wrote passes through it: no questions, titles, links or clipboards. A
// frame and the output after it give the next frame. So the state of a terminal can be kept as text, and no
// emulator has to run while nobody looks.
import type { IBuffer, Terminal } from '@xterm/headless'
import type { Size } from './journal.ts'
import {
  charactersOf,
  drawnRow,
  fitting,
  mostCells,
  resizeWithin,
  styleOf,
  terminalOf,
  unfinishedTail,
  type ScreenRow,
  type ScreenWork,
} from './screen.ts'

export type ScreenStep = Uint8Array | Size

export interface FrameRequest {
  /** Before the steps; undefined: the terminal showed nothing yet. */
  readonly frame: Uint8Array | undefined
  readonly size: Size
  readonly steps: readonly ScreenStep[]
  /** Whether lines that scrolled by are included. */
  readonly withScrollback: boolean
  /** Bounds the whole frame. */
  readonly most_bytes: number
}

export interface Frame {
  readonly frame: Buffer
  readonly size: Size
  /** A part of a character or of a control sequence. */
  readonly unfinished: Buffer
  /** Rows are missing, because the screen is longer than a frame may be. */
  readonly isPartial: boolean
}

export const scrollback = 1_000
/** A larger window shows the upper left part. */
const largest: Size = { width: 500, height: 200 }
/** Reserved for modes, the cursor and the like. */
const rest_bytes = 2 * 1024

export const bounded = (size: Size): Size => {
  const { width, height } = fitting(size)
  return { width: Math.min(width, largest.width), height: Math.min(height, largest.height) }
}

export const isOutput = (step: ScreenStep): step is Uint8Array => step instanceof Uint8Array

export async function nextFrame(request: FrameRequest): Promise<Frame> {
  const { steps } = request
  let size = bounded(request.size)
  const work: ScreenWork = { cells: mostCells }
  const terminal = terminalOf(size, scrollback, work)
  const modes = trackModes(terminal)
  const write = async (text: string | Uint8Array): Promise<void> =>
    new Promise((resolve) => terminal.write(text, resolve))
  try {
    if (request.frame) await write(request.frame)
    let unfinished: Buffer = Buffer.alloc(0)
    for (const step of steps) {
      if (isOutput(step)) {
        const all = Buffer.concat([unfinished, step])
        unfinished = unfinishedTail(all)
        await write(all.subarray(0, all.length - unfinished.length))
      } else {
        size = bounded(step)
        resizeWithin(terminal, size, work)
      }
    }
    // The last size counts, whatever it costs.
    terminal.resize(size.width, size.height)
    // Drawing writes a few sequences of its own.
    work.cells = mostCells
    const { text, isPartial } = await draw(terminal, modes, write, request)
    return { frame: Buffer.from(text), size, unfinished, isPartial }
  } finally {
    terminal.dispose()
  }
}

/** Modes that the terminal does not tell. */
interface Modes {
  cursorHidden: boolean
  /** How the mouse is reported: 1005, 1006, 1015 or 1016. */
  mouseEncoding: number
  /** The parameter of DECSCUSR; 0: the usual cursor. */
  cursorStyle: number
}

const mouseEncodings: ReadonlySet<unknown> = new Set([1005, 1006, 1015, 1016])

function trackModes({ parser }: Terminal): Modes {
  const usual: Modes = { cursorHidden: false, mouseEncoding: 0, cursorStyle: 0 }
  const modes = { ...usual }
  for (const final of ['h', 'l'])
    parser.registerCsiHandler({ prefix: '?', final }, (params) => {
      for (const mode of params) {
        if (mode === 25) modes.cursorHidden = final === 'l'
        if (mouseEncodings.has(mode)) modes.mouseEncoding = final === 'h' ? (mode as number) : 0
      }
      return false
    })
  parser.registerCsiHandler({ intermediates: ' ', final: 'q' }, ([style]) => {
    if (typeof style === 'number' && style <= 6) modes.cursorStyle = style
    return false
  })
  const reset = (): boolean => {
    Object.assign(modes, usual)
    return false
  }
  parser.registerEscHandler({ final: 'c' }, reset)
  parser.registerCsiHandler({ intermediates: '!', final: 'p' }, reset)
  return modes
}

const mouseModes = { none: 0, x10: 9, vt200: 1000, drag: 1002, any: 1003 } as const
/** Resets every mode that a lost client may have left on, and clears the main screen. */
const clean =
  '\u001b[!p\u001b[?9;1000;1002;1003;1004;1005;1006;1015;1016;2004;1;66;6;45l\u001b[?1049l\u001b[r\u001b[4l\u001b[?7;25h\u001b(B\u001b)B\u000f\u001b[m\u001b[H\u001b[2J'

interface Place {
  readonly x: number
  readonly y: number
}
const goTo = ({ x, y }: Place): string => `\u001b[${y + 1};${x + 1}H`

/** The terminal is of no use after this: some of its state is found out by writing to it. */
async function draw(
  terminal: Terminal,
  modes: Modes,
  write: (text: string) => Promise<void>,
  { withScrollback, most_bytes }: FrameRequest,
): Promise<{ text: string; isPartial: boolean }> {
  const { active, normal } = terminal.buffer
  const { cols, rows } = terminal
  const isAlternate = active.type === 'alternate'
  const { insertMode, originMode, wraparoundMode, ...other } = terminal.modes
  const cursor = placeOf(active)
  // The screen that a program uses may take most of the bytes; the one below it gets the rest.
  const room_bytes = most_bytes - rest_bytes
  const shown = isAlternate
    ? bounds(linesOf(terminal, active, 0), active.cursorY, (room_bytes * 3) / 4)
    : nothing
  const below = bounds(
    linesOf(terminal, normal, withScrollback ? room_bytes : 0),
    normal.cursorY,
    room_bytes - Buffer.byteLength(shown.text),
  )

  // Found out by experiment: the style and the character set, the margins and the saved cursor.
  await write('\u001b[4lq')
  const [style, isDrawing] = lastWritten(active, cols)
  await write('\u001b7\u001b[?6h\u001b[1;1H')
  const top = active.cursorY
  await write('\u001b[999;1H')
  const bottom = active.cursorY

  let out = clean + below.text
  if (isAlternate) {
    await write('\u001b[?6l\u001b[?1049l')
    out += `${goTo(placeOf(terminal.buffer.normal))}\u001b[?1049h\u001b[H${shown.text}`
  }
  out += '\u001b[m'
  if (top > 0 || bottom < rows - 1) out += `\u001b[${top + 1};${bottom + 1}r`
  if (cursor.x >= cols) {
    // The next character goes to the next line, so the last one of this line is written again.
    const last = active.getLine(active.baseY + cursor.y)?.getCell(cols - 1)
    out += `${goTo({ x: cols - 1, y: cursor.y })}${last ? `\u001b[0${styleOf(last)}m${charactersOf(last)}` : ''}`
  } else out += goTo(cursor)
  if (originMode) out += `\u001b[?6h${goTo({ x: Math.min(cursor.x, cols - 1), y: cursor.y - top })}`
  out += `\u001b[0${style}m`
  if (isDrawing) out += '\u001b(0'
  if (insertMode) out += '\u001b[4h'
  if (!wraparoundMode) out += '\u001b[?7l'
  if (other.applicationCursorKeysMode) out += '\u001b[?1h'
  if (other.applicationKeypadMode) out += '\u001b='
  if (other.bracketedPasteMode) out += '\u001b[?2004h'
  if (other.sendFocusMode) out += '\u001b[?1004h'
  if (other.reverseWraparoundMode) out += '\u001b[?45h'
  if (mouseModes[other.mouseTrackingMode] > 0) out += `\u001b[?${mouseModes[other.mouseTrackingMode]}h`
  if (modes.mouseEncoding > 0) out += `\u001b[?${modes.mouseEncoding}h`
  if (modes.cursorStyle > 0) out += `\u001b[${modes.cursorStyle} q`
  if (modes.cursorHidden) out += '\u001b[?25l'
  return { text: out, isPartial: shown.isPartial || below.isPartial }
}

const placeOf = (buffer: IBuffer): Place => ({ x: buffer.cursorX, y: buffer.cursorY })

/** The style of the `q` that was just written, and whether it became a line. */
function lastWritten(buffer: IBuffer, cols: number): [style: string, isDrawing: boolean] {
  const x = Math.min(buffer.cursorX, cols) - 1
  const cell = buffer.getLine(buffer.baseY + buffer.cursorY)?.getCell(Math.max(x, 0))
  return cell ? [styleOf(cell), cell.getChars() === '─'] : ['', false]
}

/** The lines of the screen, and above them as many scrolled lines as fit. */
function linesOf({ cols, rows }: Terminal, buffer: IBuffer, scrollback_bytes: number): DrawnLine[] {
  const drawn: DrawnLine[] = []
  let left_bytes = scrollback_bytes
  for (let y = buffer.baseY + rows - 1; y >= 0; y--) {
    const row = buffer.getLine(y)
    if (!row) continue
    const isScreen = y >= buffer.baseY
    if (!isScreen && left_bytes <= 0) break
    /** A line that continues in the next row is drawn to its end, so that a terminal joins them again. */
    const goesOn = y + 1 < buffer.baseY + rows && buffer.getLine(y + 1)?.isWrapped === true
    const { text, plain } = drawnRow(row, cols, goesOn)
    const styled = text + (text.includes('\u001b') ? '\u001b[m' : '')
    if (!isScreen) left_bytes -= Buffer.byteLength(styled) + 2
    drawn.push({ text: styled, plain, joined: row.isWrapped, isScreen })
  }
  return drawn.toReversed()
}

interface DrawnLine extends ScreenRow {
  /** Whether the row continues the line before. */
  readonly joined: boolean
  readonly isScreen: boolean
}

const nothing = { text: '', isPartial: false }

/**
 * Drops the colours if the screen is too long with them, adds scrolled lines as they fit, and if it is still
 * too long, leaves rows far from the cursor empty.
 */
function bounds(
  lines: readonly DrawnLine[],
  cursorY: number,
  most_bytes: number,
): { text: string; isPartial: boolean } {
  const screen = lines.findIndex(({ isScreen }) => isScreen)
  const texts = (from: number, form: 'text' | 'plain', empty?: ReadonlySet<DrawnLine>): string =>
    lines
      .slice(from)
      .map((line, at) => {
        const isJoined = at === 0 || (line.joined && empty?.has(lines[from + at - 1]!) !== true)
        return (isJoined ? '' : '\r\n') + (empty?.has(line) ? '' : line[form])
      })
      .join('')
  const drawn = texts(screen, 'text')
  let left_bytes = most_bytes - Buffer.byteLength(drawn)
  if (left_bytes < 0) {
    const rows = lines.slice(screen)
    const distance = (line: DrawnLine): number => Math.abs(rows.indexOf(line) - cursorY)
    const empty = new Set<DrawnLine>()
    left_bytes = most_bytes - 2 * rows.length
    for (const line of rows.toSorted((one, other) => distance(one) - distance(other))) {
      left_bytes -= Buffer.byteLength(line.plain)
      if (left_bytes < 0) empty.add(line)
    }
    return { text: texts(screen, 'plain', empty), isPartial: empty.size > 0 }
  }
  let from = screen
  while (from > 0) {
    left_bytes -= Buffer.byteLength(lines[from - 1]!.text) + 2
    if (left_bytes < 0) break
    from--
  }
  return { text: texts(from, 'text'), isPartial: false }
}
