// Draws predicted echoes over the screen of a terminal, underlined because nothing is certain about them, and
// tells how long echoes take.
import type { Terminal } from '@xterm/xterm'
import { prediction, type Grid } from './prediction.ts'

export interface Echoes extends Disposable {
  typed(text: string): void
  drawn(): void
  draw(): void
  enable(on: boolean): void
}

/** A guess without an echo must disappear without any output. */
const tick_ms = 250

export function echoes(terminal: Terminal, latency: (ms: number) => void): Echoes {
  const guesses = prediction(gridOf(terminal), () => performance.now())
  const layer = document.createElement('div')
  layer.className = 'terminal-guess'
  layer.ariaHidden = 'true'
  layer.hidden = true
  const screen = terminal.element!.querySelector<HTMLElement>('.xterm-screen')!
  screen.append(layer)
  let timer: ReturnType<typeof setTimeout> | undefined
  let told: number | undefined
  let shown = ''

  function draw(): void {
    const overlay = guesses.overlay()
    const row = overlay ? overlay.line - terminal.buffer.active.viewportY : -1
    if (!overlay || row < 0 || row >= terminal.rows) {
      if (!layer.hidden) layer.hidden = true
      shown = ''
      return
    }
    const [width, height] = [screen.clientWidth / terminal.cols, screen.clientHeight / terminal.rows]
    const picture = JSON.stringify([overlay, row, width, height])
    if (picture === shown) return
    shown = picture
    layer.style.cssText = `top: ${row * height}px; left: ${overlay.column * width}px; line-height: ${height}px; font-size: ${terminal.options.fontSize}px;`
    const end = overlay.cursor - overlay.column
    const letters = [...overlay.text.padEnd(end + 1)].map((letter, at) => {
      const cell = document.createElement('i')
      cell.textContent = letter === ' ' ? '\u00a0' : letter
      cell.style.width = `${width}px`
      if (at === end) cell.className = 'at'
      return cell
    })
    layer.replaceChildren(...letters)
    layer.hidden = false
  }

  function look(): void {
    guesses.update()
    draw()
    const { roundTrip_ms } = guesses
    if (roundTrip_ms === undefined || Math.round(roundTrip_ms) === told) return
    told = Math.round(roundTrip_ms)
    latency(told)
  }

  function tick(): void {
    look()
    timer = guesses.isWaiting ? setTimeout(tick, tick_ms) : undefined
  }

  return {
    typed(text) {
      guesses.typed(text)
      draw()
      timer ??= setTimeout(tick, tick_ms)
    },
    drawn: look,
    draw,
    enable(on) {
      guesses.enable(on)
      draw()
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      layer.remove()
    },
  }
}

function gridOf(terminal: Terminal): Grid {
  return {
    get cols() {
      return terminal.cols
    },
    get isPlain() {
      return terminal.buffer.active.type === 'normal' && terminal.modes.mouseTrackingMode === 'none'
    },
    cursor() {
      const { baseY, cursorY, cursorX } = terminal.buffer.active
      return { line: baseY + cursorY, column: cursorX }
    },
    text: (line, from) => terminal.buffer.active.getLine(line)?.translateToString(true, from).trimEnd() ?? '',
  }
}
