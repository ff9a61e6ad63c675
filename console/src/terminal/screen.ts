// The screen of a terminal: xterm in an element, as large as its container. Output of a device is untrusted:
// its links do nothing, and it can neither set the title nor reach the clipboard.
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Terminal } from '@xterm/xterm'
import type { Size } from './connection.ts'
import { adoptStyles } from './adopted-styles.ts'
import { echoes } from './echoes.ts'
import type { Preferences } from './preferences.ts'
import { themeOf } from './themes.ts'
import { t } from '../language/language.ts'

/** Keys that phones lack. */
export type ExtraKey =
  | 'escape'
  | 'tab'
  | 'up'
  | 'down'
  | 'right'
  | 'left'
  | 'home'
  | 'end'
  | 'pageUp'
  | 'pageDown'

export type Modifier = 'ctrl' | 'alt'

export interface Screen extends Disposable {
  write(bytes: Uint8Array | string, done?: () => void): void
  /** Clears the screen before a continued session is redrawn. */
  clear(): void
  focus(): void
  readonly size: Size
  prefer(preferences: Preferences): void
  find(text: string, back: boolean): boolean
  selection(): string
  paste(text: string): void
  press(key: ExtraKey): void
  /** For keys that phones lack. */
  type(text: string): void
  /** Changes the next typed letter; undefined: none. */
  hold(modifier: Modifier | undefined): void
}

export type Shortcut = 'copy' | 'find' | 'leave'

export interface ScreenEvents {
  typed(text: string): void
  resized(size: Size): void
  /**
   * Ctrl+Shift+C, F and X: in a terminal the keys without Shift belong to the program, and so does Tab, hence
   * X leaves the terminal.
   */
  shortcut(name: Shortcut): void
  released(): void
  /** Text to be copied was selected. */
  selected(text: string): void
  latency(ms: number): void
}

const shortcuts: Readonly<Record<string, Shortcut>> = { KeyC: 'copy', KeyF: 'find', KeyX: 'leave' }
const scrollback = 10_000

export function openScreen(place: HTMLElement, events: ScreenEvents, first: Preferences): Screen {
  adoptStyles()
  let preferences = first
  const terminal = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
    fontSize: preferences.pixels,
    theme: themeOf(preferences.theme),
    minimumContrastRatio: 4.5,
    cursorBlink: false,
    scrollback,
    linkHandler: { activate: () => undefined },
  })
  ignoreLongRepeats(terminal)
  const fitting = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fitting)
  terminal.loadAddon(search)
  terminal.open(place)
  terminal.textarea?.setAttribute('aria-description', t('Ctrl+Shift+X leaves the terminal.'))
  terminal.textarea?.setAttribute('aria-keyshortcuts', 'Control+Shift+X')
  terminal.attachCustomKeyEventHandler((event) => {
    const name = event.ctrlKey && event.shiftKey ? shortcuts[event.code] : undefined
    if (!name) return true
    event.preventDefault()
    if (event.type === 'keydown') events.shortcut(name)
    return false
  })
  const predicted = echoes(terminal, events.latency)
  predicted.enable(preferences.predict)
  let held: Modifier | undefined
  terminal.onData((text) => {
    const changed = held === undefined ? text : modified(text, held)
    if (held !== undefined) {
      held = undefined
      events.released()
    }
    predicted.typed(changed)
    events.typed(changed)
  })
  terminal.onResize(events.resized)
  const onSelected = (): void => {
    const text = terminal.getSelection()
    if (preferences.copyOnSelect && text !== '') events.selected(text)
  }
  place.addEventListener('mouseup', onSelected)
  const fit = (): void => {
    // A hidden element has no size; keep the last one.
    if (place.clientWidth > 0 && place.clientHeight > 0) fitting.fit()
    predicted.draw()
  }
  const colour = (): void => {
    const theme = themeOf(preferences.theme)
    terminal.options.theme = theme
    place.style.setProperty('--terminal-ground', theme.background!)
    place.style.setProperty('--terminal-ink', theme.foreground!)
    place.parentElement?.style.setProperty('background', theme.background!)
  }
  colour()
  fit()
  const watching = new ResizeObserver(fit)
  watching.observe(place)
  const colours = new MutationObserver(colour)
  colours.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  return {
    write: (bytes, done) =>
      terminal.write(bytes, () => {
        predicted.drawn()
        done?.()
      }),
    clear: () => terminal.reset(),
    focus: () => terminal.focus(),
    get size() {
      return { cols: terminal.cols, rows: terminal.rows }
    },
    prefer(next) {
      preferences = next
      if (terminal.options.fontSize !== next.pixels) terminal.options.fontSize = next.pixels
      predicted.enable(next.predict)
      colour()
      fit()
    },
    find: (text, back) => (back ? search.findPrevious(text) : search.findNext(text)),
    selection: () => terminal.getSelection(),
    paste: (text) => terminal.paste(text),
    press: (key) => terminal.input(sequenceOf(key, terminal.modes.applicationCursorKeysMode)),
    type: (text) => terminal.input(text),
    hold: (modifier) => void (held = modifier),
    [Symbol.dispose]() {
      watching.disconnect()
      colours.disconnect()
      place.removeEventListener('mouseup', onSelected)
      predicted[Symbol.dispose]()
      terminal.dispose()
    },
  }
}

/** xterm would repeat these one by one, as often as a device demands, and stall the page for hours. */
function ignoreLongRepeats(terminal: Terminal): void {
  const ignoreAbove = (finals: string, most: () => number): void => {
    for (const final of finals)
      terminal.parser.registerCsiHandler({ final }, ([count]) => typeof count === 'number' && count > most())
  }
  ignoreAbove('STLM', () => terminal.rows)
  ignoreAbove('bIZ', () => terminal.cols)
}

/** With Ctrl or Alt. */
function modified(text: string, modifier: Modifier): string {
  if (modifier === 'alt') return `\u001b${text}`
  if (text === ' ') return '\0'
  if (text === '?') return '\u007f'
  return /^[@-_a-z]$/.test(text) ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31) : text
}

const cursorKeys: Partial<Record<ExtraKey, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  home: 'H',
  end: 'F',
}

/** Programs may ask for another form of the arrows. */
function sequenceOf(key: ExtraKey, isApplication: boolean): string {
  const letter = cursorKeys[key]
  if (letter !== undefined) return `\u001b${isApplication ? 'O' : '['}${letter}`
  if (key === 'pageUp') return '\u001b[5~'
  if (key === 'pageDown') return '\u001b[6~'
  return key === 'tab' ? '\t' : '\u001b'
}

/** Before there is a screen to measure. */
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
