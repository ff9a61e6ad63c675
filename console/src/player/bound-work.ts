// Bounds what a terminal does for a few bytes of output. Two bytes (`ESC c`) clear all of its cells, so that
// some kilobytes which a device wrote would stop the page for minutes. Each command for many lines costs the
// cells that it touches; once they are used up, further ones are ignored.

/** Cells that commands may still touch. */
export interface Work {
  cells: number
}

/** The used part of a terminal; the types of xterm bring those of the browser with them. */
interface Bounded {
  readonly rows: number
  readonly cols: number
  readonly parser: {
    registerCsiHandler(
      id: { prefix?: string; final: string },
      handler: (params: (number | number[])[]) => boolean,
    ): unknown
    registerEscHandler(id: { final: string }, handler: () => boolean): unknown
  }
}

/** Modes with which a program goes to the other screen and back. */
const screens: ReadonlySet<unknown> = new Set([47, 1047, 1049])

export function boundWork(terminal: Bounded, work: Work): void {
  const { parser } = terminal
  /** True: the command is ignored. */
  const isTooMuch = (lines = terminal.rows): boolean => {
    const cells = lines * terminal.cols
    if (cells > work.cells) return true
    work.cells -= cells
    return false
  }
  for (const final of ['S', 'T', 'L', 'M'])
    parser.registerCsiHandler({ final }, ([count]) => {
      const lines = typeof count === 'number' ? count || 1 : 1
      return lines > terminal.rows || isTooMuch(lines)
    })
  for (const prefix of ['', '?']) parser.registerCsiHandler({ prefix, final: 'J' }, () => isTooMuch())
  for (const final of ['h', 'l'])
    parser.registerCsiHandler(
      { prefix: '?', final },
      (modes) => modes.some((mode) => screens.has(mode)) && isTooMuch(),
    )
  parser.registerEscHandler({ final: 'c' }, () => isTooMuch())
}
