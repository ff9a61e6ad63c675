// The transcript of a recording: the lines that a person saw on the terminal, each with its moment, and which
// of them were commands. A terminal without a window plays the output, so that escape codes, redraws and
// corrections leave no trace. A line is given out once: when it scrolls off, when something else replaces it
// after it stood for a while, or at the end. Lines that the terminal wrapped are whole again.
import type { IBuffer, Terminal } from '@xterm/headless'
import { BoundedMap } from '../kit/bounded-map.ts'
import { CommandFinder, type CommandSource } from './commands.ts'
import { shown } from './frames.ts'
import type { JournalEvent, Size } from './journal.ts'
import { fitting, resizeWithin, terminalOf, type ScreenWork } from './screen.ts'

export interface TranscriptLine {
  readonly time_ms: number
  /** The text without control characters; never empty. */
  readonly text: string
  /** Undefined: the line is no command. */
  readonly command: { readonly at: number; readonly source: CommandSource } | undefined
  /** The guest who typed; absent: the person who opened the session. */
  readonly typist?: Typist
}

export interface Typist {
  readonly id: string
  readonly name: string
}

/** After this time without output, a person can have read the screen. */
const settled_ms = 300
/** After this time without output, a prompt waits for input. */
const prompted_ms = 50
/** Output within this time is played as one step, and counts as shown at its end. */
const together_ms = 20
/** The most output played between two looks at the screen. */
const step_bytes = 2_048
/** Bounds the memory of steps that wait in the terminal. */
const mostSteps = 256
/** Lines above the screen in the terminal; more than one step can add to `mostAbove`. */
const scrollback = 10_000
/** Lines above the screen are dropped beyond this many. */
const mostAbove = 4_000
/** A line that only changes its numbers or its bar counts again after this time. */
const shape_ms = 60_000
const mostShapes = 1_000
/**
 * Lines of a known shape that count for each visit to the alternate screen, and one a second after that: a
 * table in a pager looks like refreshed figures, but only those continue for ever.
 */
const freeShapes = 1_000
const shapeEvery_ms = 1_000
/** The rest of a longer line is a line of its own. */
export const longest_line = 4_096
/** The most rows of one wrapped line. */
const longestWrap = 64
/**
 * Rows that one recording may have looked at, in addition to one for some bytes of output: a huge terminal
 * that is redrawn all the time would cost hours.
 */
const freeRows = 1_000_000
const bytesPerRow = 16
const widest = 200
/** Cells that commands for many lines may touch (screen.ts), in addition to some for each byte of output. */
const freeCells = 50_000_000
const cellsPerByte = 64
/** Known changes of the typist; of more, the oldest half is forgotten. */
const mostTypists = 65_536

export interface TranscriptOptions {
  /** Stop after this much output. */
  readonly most_bytes?: number
}

export async function* transcriptOf(
  first: Size,
  events: AsyncIterable<JournalEvent> | Iterable<JournalEvent>,
  { most_bytes = Infinity }: TranscriptOptions = {},
): AsyncGenerator<TranscriptLine[]> {
  using player = new TranscriptPlayer(fitting(first))
  /** Output that is not played yet. */
  let step: { time_ms: number; last_ms: number; pieces: Buffer[]; bytes: number } | undefined
  let total_bytes = 0
  const play = (next_ms: number): void => {
    if (step) player.show({ ...step, bytes: Buffer.concat(step.pieces) }, next_ms)
    step = undefined
  }
  const typists = new Typists()
  /** Whether somebody else types since the last output. */
  let isOther = false
  const take = (): TranscriptLine[] => player.take().map((line) => typists.sign(line))
  for await (const event of events) {
    if (total_bytes >= most_bytes) break
    if (event.kind === 'resize') {
      play(event.time_ms)
      await player.played()
      player.resize(event.time_ms, fitting(event))
    }
    if (event.kind === 'mark' && event.mark.type === 'program' && event.mark.command !== undefined)
      player.executed(event.time_ms, event.mark.command)
    if (event.kind === 'mark' && event.mark.type === 'typist') {
      typists.change(event.time_ms, event.mark)
      isOther = true
    }
    const bytes = shown(event)
    if (!bytes || bytes.length === 0) continue
    total_bytes += bytes.length
    for (let at = 0; at < bytes.length; at += step_bytes) {
      const piece = bytes.subarray(at, at + step_bytes)
      const isApart = step && (isOther || event.time_ms - step.time_ms > together_ms)
      if (isApart || (step && step.bytes + piece.length > step_bytes)) play(event.time_ms)
      isOther = false
      step ??= { time_ms: event.time_ms, last_ms: event.time_ms, pieces: [], bytes: 0 }
      step.pieces.push(piece)
      step.bytes += piece.length
      step.last_ms = event.time_ms
      if (player.waiting >= mostSteps) {
        await player.played()
        yield take()
      }
    }
    if (player.lines.length > mostSteps) yield take()
  }
  play(Infinity)
  await player.played()
  player.finish()
  yield take()
}

interface Step {
  readonly last_ms: number
  readonly bytes: Buffer
}

/** Lines that one of the two screens showed at the last look, and since when. */
type Standing = Map<string, number>

class Typists {
  #changes: { readonly time_ms: number; readonly typist: Typist | undefined }[] = []

  change(time_ms: number, { by, id }: { readonly by: string; readonly id?: string }): void {
    if (this.#changes.length >= mostTypists) this.#changes.splice(0, mostTypists / 2)
    this.#changes.push({ time_ms, typist: id === undefined ? undefined : { id, name: by } })
  }

  /** Adds who typed at its moment. */
  sign(line: TranscriptLine): TranscriptLine {
    let [low, high] = [0, this.#changes.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#changes[middle]!.time_ms <= line.time_ms) low = middle + 1
      else high = middle
    }
    const typist = this.#changes[low - 1]?.typist
    return typist ? { ...line, typist } : line
  }
}

/** Plays output and collects lines. */
class TranscriptPlayer implements Disposable {
  lines: TranscriptLine[] = []
  readonly #waiting: number[] = []
  readonly #terminal: Terminal
  readonly #commands = new CommandFinder()
  /** The moment of the output being played. */
  #now_ms = 0
  /** Resolves when the terminal has played everything. */
  #idle: PromiseWithResolvers<void> | undefined
  /** How many lines were dropped above the terminal's buffer, so that a line's number stays the same. */
  #dropped = 0
  /** Lines of the normal buffer, from its start, that were yielded. */
  #taken = 0
  /** When the lines of the normal buffer were completed, from its start. */
  #completed_ms: number[] = []
  #standing: Standing = new Map()
  /** Standing lines of the normal screen, while a program uses the alternate one. */
  #below: Standing | undefined
  /** Standing lines that scrolled off since the last look. */
  readonly #scrolled = new Set<string>()
  /** Whether anything but new lines below may have changed since the last look. */
  #redrawn = false
  #feeds = 0
  #rowsLeft = freeRows
  readonly #work: ScreenWork = { cells: freeCells }
  /** When a line of this shape was last given out because it was replaced. */
  readonly #shapes = new BoundedMap<string, number>(mostShapes)
  /** How many more lines of a known shape count on the alternate screen, and when that was counted. */
  #spare = { lines: 0, at_ms: 0 }
  #looked_ms = -1
  /** The line of the cursor at the last pause: its text may be erased again. */
  #typed: { line: number; text: string; since_ms: number } | undefined
  #last = ''
  #hasInvisible = false

  constructor(size: Size) {
    this.#terminal = terminalOf(size, scrollback, this.#work)
    this.#terminal.onLineFeed(() => this.#lineFeed())
    this.#watchSequences()
  }

  show({ last_ms, bytes }: Step, next_ms: number): void {
    this.#waiting.push(last_ms)
    this.#now_ms = this.#waiting[0]!
    this.#idle ??= Promise.withResolvers()
    this.#rowsLeft += bytes.length / bytesPerRow
    this.#work.cells += bytes.length * cellsPerByte
    const returns = hasBareReturn(bytes)
    this.#terminal.write(bytes, () => {
      if (returns) this.#redrawn = true
      this.#after(next_ms - last_ms)
      this.#waiting.shift()
      this.#now_ms = this.#waiting[0] ?? last_ms
      if (this.#waiting.length > 0) return
      this.#idle?.resolve()
      this.#idle = undefined
    })
  }

  get waiting(): number {
    return this.#waiting.length
  }

  async played(): Promise<void> {
    await this.#idle?.promise
  }

  take(): TranscriptLine[] {
    const { lines } = this
    this.lines = []
    return lines
  }

  /** Ignored where a recording is nothing but new sizes. */
  resize(time_ms: number, size: Size): void {
    this.#now_ms = time_ms
    this.#takeScrolled()
    this.#look()
    this.#dropAbove()
    if (!resizeWithin(this.#terminal, size, this.#work)) return
    this.#typed = undefined
    this.#commands.forgetPrompt()
    this.#taken = Math.min(this.#taken, this.#terminal.buffer.normal.baseY)
  }

  /** A command that the client named instead of typing it. */
  executed(time_ms: number, command: string): void {
    this.#give(time_ms, printable(command), { at: 0, source: 'exec' })
  }

  finish(): void {
    this.#takeScrolled()
    this.#look()
    if (this.#below) this.#leaveAlternate()
    const { normal } = this.#terminal.buffer
    this.#takeLines(this.#taken, normal.length)
  }

  [Symbol.dispose](): void {
    this.#terminal.dispose()
  }

  /** Handlers return `false` to let the terminal carry the sequence out. */
  #watchSequences(): void {
    const { parser } = this.#terminal
    const redraws = (): boolean => {
      this.#redrawn = true
      return false
    }
    for (const final of 'AEFHdefLMSTr@PXK') parser.registerCsiHandler({ final }, redraws)
    parser.registerEscHandler({ final: 'M' }, redraws)
    parser.registerCsiHandler({ final: 'J' }, ([what]) => {
      const { cursorX, cursorY } = this.#terminal.buffer.active
      const everything = what === 2 || what === 3 || (!what && cursorX === 0 && cursorY === 0)
      if (everything) {
        this.#takeScrolled()
        this.#look()
      }
      if (what === 3) this.#dropAbove()
      return redraws()
    })
    parser.registerEscHandler({ final: 'c' }, () => {
      this.#takeScrolled()
      this.#look()
      if (this.#below) this.#leaveAlternate()
      this.#dropAbove()
      return redraws()
    })
    const isAlternate = (params: readonly (number | number[])[]): boolean =>
      params.some((one) => one === 47 || one === 1047 || one === 1049)
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => {
      if (isAlternate(params) && !this.#below) {
        this.#takeScrolled()
        if (this.#redrawn) this.#look()
        this.#below = this.#standing
        this.#standing = new Map()
        this.#redrawn = true
        this.#spare = { lines: freeShapes, at_ms: this.#now_ms }
      }
      return false
    })
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, (params) => {
      if (isAlternate(params) && this.#below) {
        this.#look()
        this.#leaveAlternate()
      }
      return false
    })
    parser.registerCsiHandler({ final: 'm' }, (params) => {
      if (params.includes(8)) this.#hasInvisible = true
      return false
    })
    parser.registerOscHandler(133, (mark) => {
      const { normal, active } = this.#terminal.buffer
      if (active !== normal && active.type === 'alternate') return false
      const line = this.#dropped + normal.baseY + normal.cursorY
      this.#commands.mark(mark, { line, column: normal.cursorX }, this.#now_ms, this.#rowText)
      return false
    })
  }

  #lineFeed(): void {
    this.#feeds++
    const { active } = this.#terminal.buffer
    if (active.type === 'alternate') {
      // Lines that scroll there are not kept by the terminal.
      if (this.#feeds * 2 >= this.#terminal.rows) this.#look()
      return
    }
    const above = active.baseY + active.cursorY - 1
    if (above < 0) return
    this.#completed_ms[above] = this.#now_ms
    this.#commands.lineFeed(this.#dropped + above, this.#now_ms, this.#rowText)
  }

  /** The text of a row by its number, and whether it continues in the next one. */
  readonly #rowText = (line: number, from = 0): { text: string; wraps: boolean } | undefined => {
    const { normal } = this.#terminal.buffer
    const row = normal.getLine(line - this.#dropped)
    if (!row) return undefined
    const wraps = normal.getLine(line - this.#dropped + 1)?.isWrapped === true
    return { text: row.translateToString(true, from), wraps }
  }

  /** `pause_ms`: the silence after the output. */
  #after(pause_ms: number): void {
    const { active } = this.#terminal.buffer
    if (active.type === 'normal') {
      this.#takeScrolled()
      if (active.baseY > mostAbove) this.#dropAbove()
      if (pause_ms >= prompted_ms) this.#lookAtCursor(active, pause_ms)
    }
    if (pause_ms >= settled_ms && this.#redrawn) this.#look()
  }

  #lookAtCursor(active: IBuffer, pause_ms: number): void {
    const row = active.getLine(active.baseY + active.cursorY)
    if (!row) return
    const line = this.#dropped + active.baseY + active.cursorY
    const text = row.translateToString(true)
    this.#commands.pause(line, active.cursorX, row.translateToString(false, 0, active.cursorX))
    if (pause_ms < settled_ms) return
    const before = this.#typed
    if (before?.line === line) {
      if (text === before.text) return
      const isErased = before.text.length - commonStart(before.text, text) > longestCorrection
      if (isErased && !this.#standing.has(before.text)) this.#giveReplaced(before.text, before.since_ms)
    }
    this.#typed = { line, text, since_ms: this.#now_ms }
  }

  /** Yields what was replaced since the last look. */
  #look(): void {
    const { rows, cols } = this.#terminal
    const cost = rows * Math.max(1, cols / widest)
    if (this.#rowsLeft < cost) return
    this.#rowsLeft -= cost
    const present: Standing = new Map()
    for (const { text, completed_ms } of this.#screenLines()) {
      const came_ms = completed_ms > this.#looked_ms ? completed_ms : this.#now_ms
      present.set(text, this.#standing.get(text) ?? came_ms)
    }
    for (const [text, since_ms] of this.#standing) {
      if (present.has(text) || this.#scrolled.has(text)) continue
      if (!hasGrown(text, present)) this.#giveReplaced(text, since_ms)
    }
    this.#standing = present
    this.#scrolled.clear()
    this.#redrawn = false
    this.#feeds = 0
    this.#looked_ms = this.#now_ms
  }

  /** With the moment at which a line feed completed each line, or -1. */
  #screenLines(): { text: string; completed_ms: number }[] {
    const { active } = this.#terminal.buffer
    const found: { text: string; completed_ms: number }[] = []
    let line = ''
    const end = active.baseY + this.#terminal.rows
    for (let y = active.baseY; y < end; y++) {
      if (line.length < longest_line) line += this.#textOf(active, y)
      if (y + 1 < end && active.getLine(y + 1)?.isWrapped) continue
      const completed_ms = active.type === 'normal' ? (this.#completed_ms[y] ?? -1) : -1
      if (line.trim() !== '') found.push({ text: line.trimEnd(), completed_ms })
      line = ''
    }
    return found
  }

  #textOf(buffer: IBuffer, y: number): string {
    const row = buffer.getLine(y)
    if (!row) return ''
    if (!this.#hasInvisible) return row.translateToString(true)
    let text = ''
    for (let x = 0; x < row.length; x++) {
      const cell = row.getCell(x)
      if (!cell || cell.getWidth() === 0) continue
      text += cell.isInvisible() ? ' ' : cell.getChars() || ' '
    }
    return text.trimEnd()
  }

  /** The normal screen replaces what the alternate screen showed. */
  #leaveAlternate(): void {
    for (const [text, since_ms] of this.#standing) this.#giveReplaced(text, since_ms)
    this.#standing = this.#below ?? new Map()
    this.#below = undefined
    this.#scrolled.clear()
    this.#redrawn = false
  }

  #takeScrolled(): void {
    const { normal } = this.#terminal.buffer
    if (normal.baseY < this.#taken) this.#taken = normal.baseY
    let end = normal.baseY
    // A line that continues on the screen is not whole yet.
    if (normal.getLine(end)?.isWrapped) {
      while (end > this.#taken && normal.getLine(end)?.isWrapped) end--
      if (normal.baseY - end > longestWrap) end = normal.baseY
    }
    if (end > this.#taken) this.#takeLines(this.#taken, end)
    this.#taken = Math.max(this.#taken, end)
  }

  #takeLines(from: number, to: number): void {
    const { normal } = this.#terminal.buffer
    for (let y = from; y < to;) {
      let text = this.#textOf(normal, y)
      let last = y
      while (last + 1 < to && normal.getLine(last + 1)?.isWrapped) {
        last++
        if (text.length < longest_line * 2) text += this.#textOf(normal, last)
      }
      text = text.trimEnd()
      y = last + 1
      if (text === '') continue
      const since_ms = (this.#below ?? this.#standing).get(text)
      if (since_ms !== undefined) this.#scrolled.add(text)
      this.#give(since_ms ?? this.#completed_ms[last] ?? this.#now_ms, text)
    }
  }

  /** Drops the lines above the screen that were yielded. */
  #dropAbove(): void {
    const { baseY } = this.#terminal.buffer.normal
    if (baseY === 0) return
    this.#terminal.options.scrollback = 0
    this.#terminal.options.scrollback = scrollback
    const dropped = baseY - this.#terminal.buffer.normal.baseY
    this.#dropped += dropped
    this.#taken = Math.max(0, this.#taken - dropped)
    this.#completed_ms = this.#completed_ms.slice(dropped)
  }

  #giveReplaced(text: string, since_ms: number): void {
    const shape = shapeOf(text)
    const given_ms = this.#shapes.get(shape)
    if (given_ms !== undefined && since_ms - given_ms < shape_ms && !this.#hasSpare()) return
    this.#shapes.set(shape, since_ms)
    this.#give(since_ms, text, undefined, false)
  }

  #hasSpare(): boolean {
    if (!this.#below) return false
    const { lines, at_ms } = this.#spare
    const more = Math.floor((this.#now_ms - at_ms) / shapeEvery_ms)
    const left = Math.min(freeShapes, lines + more)
    if (left < 1) return false
    this.#spare = { lines: left - 1, at_ms: at_ms + more * shapeEvery_ms }
    return true
  }

  /** `guess`: whether the line may be a command because it begins like one. */
  #give(time_ms: number, text: string, command?: TranscriptLine['command'], guess = true): void {
    const found = command ? undefined : this.#commands.find(text, guess)
    // A line that repeats itself says nothing new.
    if (!command && !found && text === this.#last) return
    this.#last = text
    for (let at = 0; at < text.length; at += longest_line) {
      const piece = text.slice(at, at + longest_line)
      if (piece.trim() === '') continue
      this.lines.push({
        time_ms: found?.time_ms ?? time_ms,
        text: piece,
        command: at > 0 ? undefined : (command ?? found?.command),
      })
    }
  }
}

/** Characters that a person takes back one by one while typing. */
const longestCorrection = 3

function commonStart(left: string, right: string): number {
  let same = 0
  while (same < left.length && left[same] === right[same]) same++
  return same
}

/** Whether a line is still there, with more behind it. */
function hasGrown(text: string, present: Standing): boolean {
  for (const other of present.keys()) if (other.startsWith(text)) return true
  return false
}

/** Without the numbers and bars that progress, clocks and tables of figures repeat. */
const shapeOf = (text: string): string => text.replaceAll(/[\d.,:%]+|[#=>\-.|/\\█▉▊▋▌▍▎▏░▒▓⠀-⣿ ]+/g, '0')

// eslint-disable-next-line no-control-regex
const printable = (text: string): string => text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim()

/** A carriage return without a line feed: what follows overwrites the line. */
function hasBareReturn(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0x0d); at >= 0; at = bytes.indexOf(0x0d, at + 1)) {
    const next = bytes[at + 1]
    if (next !== undefined && next !== 0x0a && next !== 0x0d) return true
  }
  return false
}
