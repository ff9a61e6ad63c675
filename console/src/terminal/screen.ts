// The screen of a terminal: xterm in an element, in the page's colours, as large as its container. Output of
// a device is untrusted: its links do nothing, and it can neither set the title nor reach the clipboard.
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Terminal, type ITheme } from '@xterm/xterm'
import type { Size } from './connection.ts'
import { adoptStyles } from './adopted-styles.ts'

export interface Screen extends Disposable {
  write(bytes: Uint8Array | string, done?: () => void): void
  focus(): void
  /** Resizes to the container. */
  fit(): void
  readonly size: Size
  fontSize(pixels: number): void
  find(text: string, back: boolean): boolean
  selection(): string
  paste(text: string): void
}

export interface ScreenEvents {
  typed(text: string): void
  resized(size: Size): void
  /** Ctrl+Shift+C and Ctrl+Shift+F: in a terminal the keys without Shift belong to the program. */
  shortcut(name: 'copy' | 'find'): void
}

export const fontSizes = { least: 9, usual: 14, most: 28 } as const

export function openScreen(place: HTMLElement, events: ScreenEvents, pixels: number): Screen {
  adoptStyles()
  const terminal = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
    fontSize: pixels,
    theme: theme(),
    minimumContrastRatio: 4.5,
    cursorBlink: false,
    scrollback: 10_000,
    linkHandler: { activate: () => undefined },
  })
  const fitting = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fitting)
  terminal.loadAddon(search)
  terminal.open(place)
  terminal.attachCustomKeyEventHandler((event) => {
    const name =
      event.ctrlKey && event.shiftKey ? ({ KeyC: 'copy', KeyF: 'find' } as const)[event.code] : undefined
    if (!name) return true
    event.preventDefault()
    if (event.type === 'keydown') events.shortcut(name)
    return false
  })
  terminal.onData(events.typed)
  terminal.onResize(events.resized)
  const fit = (): void => {
    // A hidden element has no size; keep the last one.
    if (place.clientWidth > 0 && place.clientHeight > 0) fitting.fit()
  }
  fit()
  const watching = new ResizeObserver(fit)
  watching.observe(place)
  const colours = new MutationObserver(() => (terminal.options.theme = theme()))
  colours.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return {
    write: (bytes, done) => terminal.write(bytes, done),
    focus: () => terminal.focus(),
    fit,
    get size() {
      return { cols: terminal.cols, rows: terminal.rows }
    },
    fontSize(next) {
      terminal.options.fontSize = next
      fit()
    },
    find: (text, back) => (back ? search.findPrevious(text) : search.findNext(text)),
    selection: () => terminal.getSelection(),
    paste: (text) => terminal.paste(text),
    [Symbol.dispose]() {
      watching.disconnect()
      colours.disconnect()
      terminal.dispose()
    },
  }
}

const dark: ITheme = {
  background: '#0a151a',
  foreground: '#e2ebef',
  cursor: '#f0d6a6',
  cursorAccent: '#0a151a',
  selectionBackground: '#2c5566',
  black: '#1c2d35',
  red: '#f29a90',
  green: '#62c598',
  yellow: '#e3b869',
  blue: '#7fb4e8',
  magenta: '#d0a2e0',
  cyan: '#7cc7dc',
  white: '#c9d6db',
  brightBlack: '#7f949e',
  brightRed: '#ffb8af',
  brightGreen: '#8fdcb6',
  brightYellow: '#f3d294',
  brightBlue: '#a9cff5',
  brightMagenta: '#e4c3ef',
  brightCyan: '#a5dbea',
  brightWhite: '#ffffff',
}

const light: ITheme = {
  background: '#fbfdfd',
  foreground: '#14262f',
  cursor: '#0b5c7a',
  cursorAccent: '#fbfdfd',
  selectionBackground: '#b9dbe6',
  black: '#14262f',
  red: '#a62b20',
  green: '#1a7049',
  yellow: '#7a5109',
  blue: '#1c5aa0',
  magenta: '#7b3a94',
  cyan: '#0b5c7a',
  white: '#5c6f79',
  brightBlack: '#4d606a',
  brightRed: '#c0392b',
  brightGreen: '#23865a',
  brightYellow: '#8f6210',
  brightBlue: '#2a6fbf',
  brightMagenta: '#9148ad',
  brightCyan: '#107596',
  brightWhite: '#14262f',
}

const theme = (): ITheme => (document.documentElement.dataset['theme'] === 'dark' ? dark : light)

/** An estimate of the size, before there is a screen to measure. */
export function likelySize(place: HTMLElement | null, pixels: number): Size {
  const { clientWidth = 0, clientHeight = 0 } = place ?? {}
  const bounded = (count: number): number => Math.max(20, Math.min(500, Math.floor(count)))
  return clientWidth > 0
    ? {
        cols: bounded(clientWidth / (pixels * 0.602)),
        rows: bounded(Math.max(clientHeight, 320) / (pixels * 1.2)),
      }
    : { cols: 80, rows: 24 }
}
