// A small picture of what a terminal showed at one moment. The output is played into a terminal that is never
// opened, through the filter of the player, and its cells are drawn on a canvas. What a device writes can do
// nothing here but choose characters and colours.
import { Terminal, type IBufferCell } from '@xterm/xterm'
import type { RecordingMoment } from '@hawser/contract/recordings'
import { boundWork } from './bound-work.ts'
import { fromBase64 } from './engine.ts'
import { escapeFilter } from './escape-filter.ts'
import { coloursOf, sized, usualColours } from './read-only-screen.ts'

export interface SmallPicture {
  readonly canvas: HTMLCanvasElement
  /** The last line with text, for people who cannot see the picture. */
  readonly line: string
}

/** The size of the canvas, in pixels; the page shows it smaller. */
const size_px = { width: 400, height: 240 }
const shape = 2
const slope = size_px.height / size_px.width / shape
/** The letters of less text are no larger. */
const fewestColumns = 40
const longestLine = 80
/** Cells that commands may touch: five hundred screens of the usual size, two of the largest. */
const mostCells = 1_000_000

export async function smallPicture({ output, ...size }: RecordingMoment): Promise<SmallPicture> {
  const { width, height } = sized(size)
  const terminal = new Terminal({ cols: width, rows: height, scrollback: 0, allowProposedApi: true })
  boundWork(terminal, { cells: mostCells })
  try {
    const bytes = escapeFilter()(fromBase64(output))
    await new Promise<void>((resolve) => terminal.write(bytes, resolve))
    return { canvas: drawn(terminal), line: lastLine(terminal) }
  } finally {
    terminal.dispose()
  }
}

function lastLine({ buffer: { active }, rows }: Terminal): string {
  for (let y = rows - 1; y >= 0; y--) {
    const text = active
      .getLine(active.baseY + y)
      ?.translateToString(true)
      .trim()
    if (text) return text.slice(0, longestLine)
  }
  return ''
}

/** From the corner of the screen. */
function usedPart({ buffer: { active }, rows }: Terminal): { columns: number; rows: number } {
  const part = { columns: 0, rows: 0 }
  for (let y = 0; y < rows; y++) {
    const length = active.getLine(active.baseY + y)?.translateToString(true).length ?? 0
    if (length > 0) part.rows = y + 1
    part.columns = Math.max(part.columns, length)
  }
  return part
}

function drawn(terminal: Terminal): HTMLCanvasElement {
  const { active } = terminal.buffer
  const used = usedPart(terminal)
  const letter = size_px.width / Math.max(fewestColumns, used.columns, used.rows / slope)
  const line = letter * shape
  const canvas = document.createElement('canvas')
  canvas.width = size_px.width
  canvas.height = size_px.height
  const pen = canvas.getContext('2d')
  if (!pen) return canvas
  const usual = usualColours()
  pen.fillStyle = usual.ground
  pen.fillRect(0, 0, canvas.width, canvas.height)
  pen.font = [(line * 0.8).toFixed(2) + 'px', 'monospace'].join(' ')
  pen.textBaseline = 'middle'
  let cell: IBufferCell | undefined
  for (let y = 0; y < used.rows; y++) {
    const from = active.getLine(active.baseY + y)
    for (let x = 0; x < used.columns; x++) {
      cell = from?.getCell(x, cell)
      const wide = cell?.getWidth() ?? 0
      if (!cell || wide === 0) continue
      const { colour, ground } = coloursOf(cell)
      if (ground) {
        pen.fillStyle = ground
        pen.fillRect(x * letter, y * line, wide * letter, line)
      }
      const text = cell.getChars()
      if (text.trim() === '') continue
      pen.fillStyle = colour || usual.colour
      pen.fillText(text, x * letter, (y + 0.5) * line, wide * letter)
    }
  }
  return canvas
}
