// Finds the commands among the lines of a terminal. Shells with integration say where a command begins and
// ends (OSC 133, as iTerm2, kitty, VS Code and others have it). For all others a prompt is guessed: the text
// before the cursor, when nothing comes for a moment and the text ends like a prompt. A line that begins with
// a prompt seen before counts as well, because people also paste.
import { BoundedMap } from '../kit/bounded-map.ts'

/** How a command was found: marks of the shell, a guessed prompt, or the client's own request. */
export type CommandSource = 'marks' | 'prompt' | 'exec'

interface Position {
  /** Since the start of the recording. */
  readonly line: number
  readonly column: number
}

type RowText = (line: number, from?: number) => { text: string; wraps: boolean } | undefined

interface FoundCommand {
  readonly time_ms: number
  readonly command: { readonly at: number; readonly source: CommandSource }
}

const mostPrompts = 8
const longestPrompt = 200
const mostRows = 40
/** Commands whose line has not left the screen. */
const mostWaiting = 500

const promptEnd = /[$#%>❯➜λ»›]\s?$/u

export class CommandFinder {
  /** Undefined: no prompt waits for input. */
  #prompt: (Position & { readonly text: string }) | undefined
  /** Newest last. */
  #prompts: string[] = []
  /** The shell's mark of the beginning of a command. */
  #begun: Position | undefined
  /** Whether the shell marks its commands; then nothing is guessed. */
  #hasMarks = false
  /** By the text of their whole line, until the recording shows that line. */
  readonly #waiting = new BoundedMap<string, FoundCommand[]>(mostWaiting)

  mark(mark: string, cursor: Position, time_ms: number, row: RowText): void {
    this.#hasMarks = true
    const [kind] = mark
    if (kind === 'B') this.#begun = cursor
    else if (kind === 'C' && this.#begun) {
      this.#note(this.#begun, cursor.line, time_ms, 'marks', row)
      this.#begun = undefined
    } else if (kind === 'A' || kind === 'D') this.#begun = undefined
  }

  /** Output has paused; `before` is the text before the cursor. */
  pause(line: number, column: number, before: string): void {
    if (this.#hasMarks || this.#prompt?.line === line || column === 0 || column > longestPrompt) return
    if (promptEnd.test(before)) this.#prompt = { line, column, text: before }
  }

  lineFeed(line: number, time_ms: number, row: RowText): void {
    const prompt = this.#prompt
    if (!prompt || line < prompt.line) return
    this.#prompt = undefined
    if (this.#note(prompt, line + 1, time_ms, 'prompt', row) && !this.#prompts.includes(prompt.text))
      this.#prompts = [...this.#prompts, prompt.text].slice(-mostPrompts)
  }

  forgetPrompt(): void {
    this.#prompt = undefined
    this.#begun = undefined
  }

  /** The command in a line that is complete; `guess`: a known prompt alone is enough. */
  find(
    text: string,
    guess: boolean,
  ): { readonly time_ms?: number; readonly command: FoundCommand['command'] } | undefined {
    const waiting = this.#waiting.get(text)
    const found = waiting?.shift()
    if (waiting?.length === 0) this.#waiting.delete(text)
    if (found || this.#hasMarks || !guess) return found
    const prompt = this.#prompts.find((one) => text.length > one.length && text.startsWith(one))
    return prompt === undefined ? undefined : { command: { at: prompt.length, source: 'prompt' } }
  }

  #note(
    { line, column }: Position,
    end: number,
    time_ms: number,
    source: CommandSource,
    row: RowText,
  ): boolean {
    const first = row(line)
    const typed = row(line, column)
    if (!first || !typed) return false
    let [whole, command] = [first.text, typed.text]
    for (let next = line + 1, { wraps } = first; wraps && next < Math.min(end, line + mostRows); next++) {
      const more = row(next)
      if (!more) break
      whole += more.text
      command += more.text
      ;({ wraps } = more)
    }
    if (command.trim() === '') return false
    whole = whole.trimEnd()
    const found = { time_ms, command: { at: Math.max(0, whole.length - command.trimEnd().length), source } }
    const waiting = this.#waiting.get(whole)
    if (waiting) waiting.push(found)
    else this.#waiting.set(whole, [found])
    return true
  }
}
