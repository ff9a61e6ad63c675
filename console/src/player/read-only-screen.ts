// A read-only screen for recordings and live sessions. `@xterm/xterm` parses the bytes but is never opened:
// without an element it cannot answer queries, follow links or take keys, and it needs no inline styles,
// which the Content-Security-Policy blocks. This file draws its cells as plain text, only the rows that have
// changed.
import { Terminal, type IBufferCell } from '@xterm/xterm'
import { boundWork, type Work } from './bound-work.ts'
import { mixed, readable, type Colour } from './contrast.ts'
import { escapeFilter } from './escape-filter.ts'

export interface Size {
  readonly width: number
  readonly height: number
}

export interface ReadOnlyScreen {
  reset(size: Size): void
  write(bytes: Uint8Array): void
  resize(size: Size): void
  fit(): void
  dispose(): void
}

const largest: Size = { width: 1_000, height: 500 }
/**
 * Cells that commands may touch in a piece of time: three of the largest screens, hundreds of the usual ones.
 */
const mostCells = 1_500_000
const refill_ms = 100
const letters = { smallest: 9, readable: 12, largest: 16 }

export const sized = ({ width, height }: Size): Size => ({
  width: Math.min(width || 80, largest.width),
  height: Math.min(height || 24, largest.height),
})

export function openReadOnlyScreen(place: HTMLElement): ReadOnlyScreen {
  const terminal = new Terminal({ cols: 80, rows: 24, scrollback: 0, allowProposedApi: true })
  const work: Work = { cells: mostCells }
  boundWork(terminal, work)
  let filled_at = 0
  const refill = (): void => {
    filled_at = performance.now()
    work.cells = mostCells
  }
  const clean = { escapeFilter: escapeFilter() }
  let hidden = false
  const cursor = (is: boolean) => (modes: (number | number[])[]) => {
    if (modes.includes(25)) hidden = is
    // Let the terminal handle it as well.
    return false
  }
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'l' }, cursor(true))
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'h' }, cursor(false))
  let painted: string[] = []
  let waiting: number | undefined
  const paint = (): void => {
    waiting = undefined
    painted = paintRows(place, terminal, painted, hidden)
  }
  const later = (): void => void (waiting ??= requestAnimationFrame(paint))
  const resize = (size: Size): void => {
    const { width, height } = sized(size)
    if (width === terminal.cols && height === terminal.rows) return
    terminal.resize(width, height)
    fit(place, width, height)
    later()
  }
  return {
    reset(size) {
      clean.escapeFilter = escapeFilter()
      hidden = false
      refill()
      terminal.reset()
      resize(size)
      later()
    },
    write(bytes) {
      if (performance.now() - filled_at > refill_ms) refill()
      terminal.write(clean.escapeFilter(bytes), later)
    },
    resize,
    fit: () => fit(place, terminal.cols, terminal.rows),
    dispose() {
      if (waiting !== undefined) cancelAnimationFrame(waiting)
      terminal.dispose()
      place.replaceChildren()
    },
  }
}

/** The width of a character relative to the font size. */
let ratio: number | undefined

/** The height of the page around the screen: the heading above it and the controls below. */
const around_px = 310
const lineHeight = 1.25

/**
 * As large as the room allows. A high screen leaves its controls in sight while its letters stay readable.
 */
function fit(place: HTMLElement, columns: number, rows: number): void {
  const probe = document.createElement('span')
  probe.textContent = 'x'.repeat(100)
  probe.className = 'probe'
  if (ratio === undefined) {
    place.append(probe)
    ratio = probe.getBoundingClientRect().width / 100 / 100
    probe.remove()
  }
  const room = place.parentElement?.clientWidth ?? 0
  const { paddingLeft, paddingRight } = getComputedStyle(place)
  const byWidth =
    (room - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)) / columns / (ratio || 0.6)
  const byHeight = Math.max(letters.readable, (window.innerHeight - around_px) / rows / lineHeight)
  const size = Math.min(byWidth, byHeight)
  place.style.fontSize = `${Math.max(letters.smallest, Math.min(letters.largest, Math.floor(size * 10) / 10))}px`
}

/** Returns the present rows. */
function paintRows(
  place: HTMLElement,
  terminal: Terminal,
  before: readonly string[],
  hidden: boolean,
): string[] {
  const { active } = terminal.buffer
  const rows: string[] = []
  while (place.children.length > terminal.rows) place.lastElementChild!.remove()
  let cell: IBufferCell | undefined
  for (let y = 0; y < terminal.rows; y++) {
    const line = active.getLine(active.baseY + y)
    const runs: Run[] = []
    for (let x = 0; x < terminal.cols; x++) {
      cell = line?.getCell(x, cell)
      if (!cell || cell.getWidth() === 0) continue
      const look = lookOf(
        cell,
        !hidden && y === active.cursorY && x === Math.min(active.cursorX, terminal.cols - 1),
      )
      const wide = cell.getWidth() === 2
      const last = runs.at(-1)
      if (last && !wide && !last.wide && sameLook(last.look, look)) last.text += cell.getChars() || ' '
      else runs.push({ text: cell.getChars() || ' ', look, wide })
    }
    const key = JSON.stringify(runs)
    rows.push(key)
    let row = place.children[y]
    if (!row) {
      row = document.createElement('div')
      place.append(row)
    } else if (before[y] === key) continue
    row.replaceChildren(...runs.map(element))
  }
  return rows
}

interface Look {
  colour: string
  ground: string
  signs: string
}

interface Run {
  text: string
  look: Look
  wide: boolean
}

const sameLook = (a: Look, b: Look): boolean =>
  a.colour === b.colour && a.ground === b.ground && a.signs === b.signs

function lookOf(cell: IBufferCell, isCursor: boolean): Look {
  const signs = [
    isCursor && 'cursor',
    cell.isBold() && 'bold',
    cell.isItalic() && 'italic',
    cell.isUnderline() && 'under',
    cell.isStrikethrough() && 'through',
  ]
  return { ...coloursOf(cell), signs: signs.filter(Boolean).join(' ') }
}

/** Readable on each other, as in a live terminal; empty: the usual ones. */
export function coloursOf(cell: IBufferCell): { colour: string; ground: string } {
  const usual = cell.isFgDefault() && cell.isBgDefault() && !cell.isInverse() && !cell.isDim()
  if (cell.isInvisible()) return { colour: 'transparent', ground: '' }
  if (usual) return { colour: '', ground: '' }
  let colour = cell.isFgDefault() ? ink : paint(cell.getFgColor(), cell.isFgRGB())
  let ground = cell.isBgDefault() ? screen : paint(cell.getBgColor(), cell.isBgRGB(), grounds)
  if (cell.isInverse()) [colour, ground] = [ground, colour]
  if (cell.isDim()) colour = mixed(colour, ground, 0.3)
  return {
    colour: styleOf(readableOn(colour, ground)),
    ground: ground === screen ? '' : styleOf(ground),
  }
}

export const usualColours = () => ({ colour: styleOf(ink), ground: styleOf(screen) })

const styleOf = (colour: Colour): string => `rgb(${colour.join(' ')})`

/** A screen has few pairs of colours; a device that writes in all of them must not fill the memory. */
const known = new Map<string, Colour>()
const mostKnown = 2_000

function readableOn(colour: Colour, ground: Colour): Colour {
  const key = `${colour.join()} ${ground.join()}`
  const found = known.get(key) ?? readable(colour, ground)
  if (known.size >= mostKnown) known.clear()
  known.set(key, found)
  return found
}

function element({ text, look, wide }: Run): Node {
  if (look.colour === '' && look.ground === '' && look.signs === '' && !wide)
    return document.createTextNode(text)
  const span = document.createElement('span')
  span.textContent = text
  span.className = [look.signs, wide && 'wide'].filter(Boolean).join(' ')
  if (look.colour) span.style.color = look.colour
  if (look.ground) span.style.background = look.ground
  return span
}

const hex = (...colours: readonly string[]): Colour[] =>
  colours.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as unknown as Colour)

/** As in styles/player.css. */
const [screen, ink] = hex('#0a161c', '#dbe6ea') as [Colour, Colour]
const dull = hex('#3b4c55', '#ff8a80', '#7fd6a4', '#e5c07b', '#7fb8f0', '#d6a5f0', '#6fd0dc', '#d5dfe3')
const bright = hex('#8499a4', '#ffb0a8', '#a5e8c0', '#f2d9a0', '#a9d1fa', '#e6c6f8', '#9de6ee', '#ffffff')
const sixteen = [...dull, ...bright]
/** The first eight as backgrounds, dark enough for light text. */
const grounds = [
  ...hex('#2c3b43', '#a8342b', '#1f7a4d', '#866310', '#2a62a8', '#7d3f9c', '#1a7480', '#d5dfe3'),
  ...bright,
]
const steps = [0, 95, 135, 175, 215, 255]

function paint(value: number, isRgb: boolean, first = sixteen): Colour {
  if (isRgb) return [(value >> 16) & 255, (value >> 8) & 255, value & 255]
  if (value < 16) return first[value]!
  if (value >= 232) {
    const grey = 8 + (value - 232) * 10
    return [grey, grey, grey]
  }
  const at = value - 16
  return [steps[Math.floor(at / 36)]!, steps[Math.floor(at / 6) % 6]!, steps[at % 6]!]
}
