// A program on a terminal of its own, with somebody in front of it: what is shown is read as it comes, and
// what a test types are keys on a keyboard.
import { spawn, type IPty } from '@lydell/node-pty'
import { expect } from 'vitest'
import { eventually } from '../harness/eventually.ts'

export interface Terminal extends Disposable {
  /** All that was shown so far. */
  shown(): string
  type(text: string): void
  resize(columns: number, rows: number): void
  /** Sends the program a signal, as nobody at a keyboard can. */
  kill(signal: string): void
  /** Waits until something is shown; what the parentheses match. */
  until(pattern: RegExp): Promise<string>
  /** The program's exit status. */
  readonly ended: Promise<number>
}

export interface TerminalOptions {
  readonly name?: string
  readonly columns?: number
  readonly rows?: number
  readonly env?: Record<string, string>
}

export function openTerminal(
  program: string,
  args: readonly string[],
  options: TerminalOptions = {},
): Terminal {
  const { name = 'xterm-256color', columns = 80, rows = 24, env = {} } = options
  const pty: IPty = spawn(program, [...args], { name, cols: columns, rows, env: { ...process.env, ...env } })
  let shown = ''
  pty.onData((text) => (shown += text))
  const ended = new Promise<number>((resolve) => pty.onExit(({ exitCode }) => resolve(exitCode)))
  let over = false
  void ended.then(() => (over = true))
  return {
    shown: () => shown,
    type: (text) => pty.write(text),
    resize: (columns, rows) => pty.resize(columns, rows),
    kill: (signal) => pty.kill(signal),
    async until(pattern) {
      await eventually(() => expect(shown).toMatch(pattern))
      return pattern.exec(shown)![1] ?? ''
    },
    ended,
    [Symbol.dispose]() {
      if (!over) pty.kill('SIGKILL')
    },
  }
}
