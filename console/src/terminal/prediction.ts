// Echo prediction: on a slow link, what is typed is shown before the device has echoed it
// (docs/decisions/0055-echo-prediction.md). It guesses only what can be guessed safely: letters at the
// end of a line and their removal, on the normal screen. It shows a guess only when the device has echoed
// what was typed on this line before, so that a password, which is not echoed, is never shown. It never
// changes what is sent.
//
// A run is what was typed since the last key whose effect is not known (Enter, Tab, arrows, …). Each typed
// key of a run leads to a state: the text of the run after it. Whenever output was drawn, the screen is
// compared with the states: the one that it equals is confirmed, and with it those before; if it equals
// none, all are dropped.

/** The part of the screen that a prediction needs. */
export interface Grid {
  readonly cols: number
  /** The normal screen of a shell, without a full-screen program. */
  readonly isPlain: boolean
  /** Lines are counted from the top of the scrollback. */
  cursor(): { readonly line: number; readonly column: number }
  /** From a column on, without trailing blanks. */
  text(line: number, from: number): string
}

/** Drawn over the screen. */
export interface Overlay {
  readonly line: number
  readonly column: number
  /** Blanks cover removed letters. */
  readonly text: string
  /** The future place of the cursor. */
  readonly cursor: number
}

export interface Prediction {
  /** Something was typed, and is being sent. */
  typed(text: string): void
  /** Output was drawn, or time has passed. */
  update(): void
  overlay(): Overlay | undefined
  readonly isWaiting: boolean
  /** Undefined: no echo was seen yet. */
  readonly roundTrip_ms: number | undefined
  enable(on: boolean): void
}

/** Guesses appear when echoes take longer than the first, until they take less than the second. */
export const slow_ms = 150
const fast_ms = 100
/** Assumed until the first echo was seen. */
const likely_ms = 300
/** An echo that takes this many times longer than others may never come: the guess is hidden. */
const patience = 4
const leastPatience_ms = 1_000
const longest_ms = 15_000
/** Different letters with an echo: a single one could be the star that stands for a letter of a password. */
const fewEchoed = 2
const most = 200

interface State {
  readonly text: string
  readonly typed_at: number
}

interface Run {
  readonly line: number
  readonly column: number
  /** The text that the device has confirmed. */
  base: string
  states: State[]
  readonly echoed: Set<string>
  /** A key of unknown effect followed: the run takes no more letters. */
  closed: boolean
}

const isLetter = (text: string): boolean => /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u024f]$/.test(text)
const erase = '\u007f'

/** Common letters at the start. */
function sameStart(a: string, b: string): number {
  let same = 0
  while (same < a.length && a[same] === b[same]) same += 1
  return same
}

export function prediction(grid: Grid, now: () => number): Prediction {
  let run: Run | undefined
  let roundTrip_ms: number | undefined
  let slow = false
  let enabled = true

  const usual_ms = (): number => roundTrip_ms ?? likely_ms

  function measured(took_ms: number): void {
    roundTrip_ms = roundTrip_ms === undefined ? took_ms : (roundTrip_ms + took_ms) / 2
    slow = roundTrip_ms > (slow ? fast_ms : slow_ms)
  }

  /** Whether the screen shows this text of the run, with the cursor behind it. */
  function shows({ line, column }: Run, text: string): boolean {
    const cursor = grid.cursor()
    if (cursor.line !== line || cursor.column !== column + text.length) return false
    return grid.text(line, column).padEnd(text.length).slice(0, text.length) === text
  }

  function confirm(current: Run): void {
    const { states } = current
    const since = now() - usual_ms() * 0.6
    // The echo of a new key is not due yet, though the screen may look like it, as after a letter that was
    // typed and removed.
    const due = states.findLastIndex((state) => state.typed_at <= since && shows(current, state.text))
    const at =
      due >= 0 || shows(current, current.base) ? due : states.findIndex(({ text }) => shows(current, text))
    if (at < 0) {
      if (!shows(current, current.base)) run = undefined
      return
    }
    const { text, typed_at } = states[at]!
    // Only visible letters are evidence: a removed one was perhaps never echoed.
    const evidence = text.slice(sameStart(text, current.base))
    for (const letter of evidence) current.echoed.add(letter)
    if (evidence !== '') measured(now() - typed_at)
    current.base = text
    current.states = states.slice(at + 1)
  }

  function update(): void {
    if (!run) return
    if (!grid.isPlain) return void (run = undefined)
    if (run.states.length > 0) confirm(run)
    const waited_ms = run?.states[0] ? now() - run.states[0].typed_at : 0
    // The echo may still come, and shows how slow the link is.
    if (waited_ms > Math.max(leastPatience_ms, usual_ms() * patience)) run?.echoed.clear()
    if (waited_ms > longest_ms) run = undefined
    if (run?.closed && run.states.length === 0) run = undefined
  }

  /** For the next key; undefined: nothing can be guessed. */
  function open(): Run | undefined {
    if (run) return run.closed ? undefined : run
    const { line, column } = grid.cursor()
    if (!grid.isPlain || grid.text(line, column) !== '') return undefined
    run = { line, column, base: '', states: [], echoed: new Set(), closed: false }
    return run
  }

  function guess(key: string): boolean {
    const current = open()
    if (!current) return false
    const text = current.states.at(-1)?.text ?? current.base
    // The line may have changed behind the cursor between the keys.
    if (current.states.length === 0 && (!shows(current, text) || behind(current, text))) return false
    if (key === erase) {
      if (text === '') return false
      current.states.push({ text: text.slice(0, -1), typed_at: now() })
      return true
    }
    // At the end of a line the cursor behaves differently.
    if (!isLetter(key) || current.column + text.length + 1 >= grid.cols || current.states.length >= most)
      return false
    current.states.push({ text: text + key, typed_at: now() })
    return true
  }
  const behind = ({ line, column }: Run, text: string): boolean =>
    grid.text(line, column + text.length) !== ''

  return {
    typed(text) {
      update()
      if (guess(text)) return
      // Shown guesses stay until their echo comes.
      if (run && run.states.length > 0) run.closed = true
      else run = undefined
    },
    update,
    overlay() {
      const last = run?.states.at(-1)
      if (!run || !last || !enabled || !slow || !grid.isPlain || run.echoed.size < fewEchoed) return undefined
      const { line, column, base } = run
      const cursor = grid.cursor()
      if (cursor.line !== line) return undefined
      const same = sameStart(base, last.text)
      return {
        line,
        column: column + same,
        text: last.text.slice(same).padEnd(cursor.column - column - same),
        cursor: column + last.text.length,
      }
    },
    get isWaiting() {
      return run !== undefined && run.states.length > 0
    },
    get roundTrip_ms() {
      return roundTrip_ms
    },
    enable(on) {
      enabled = on
    },
  }
}
