// For tests: whether a process of this machine still runs, and the real client on a terminal of its own.
import { readFileSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { expect } from 'vitest'
import { eventually } from '../../tests/harness/eventually.ts'
import { startOnPty } from '../src/pty.ts'
import type { RunningProgram } from '../src/program.ts'
import { ownAccount } from '../src/users.ts'

export function isRunning(pid: number): boolean {
  try {
    // A zombie that nobody has waited for yet does not run.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

export async function whenGone(pid: number, timeout = 10_000): Promise<void> {
  await eventually(() => expect(isRunning(pid)).toBe(false), timeout)
}

export interface OnTerminal {
  readonly program: RunningProgram
  /** All output so far. */
  shown(): string
  type(text: string): Promise<void>
  /** Resolves with the group of the pattern. */
  until(pattern: RegExp): Promise<string>
}

/** Runs a command of `sh` on a terminal of this machine. */
export async function onTerminal(
  command: string,
  size = { columns: 80, rows: 24, width: 0, height: 0 },
): Promise<OnTerminal> {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', TERM: 'xterm' }
  const opening = 'exec 0<>"$SSH_TTY" 1>&0 2>&0;'
  const program = await startOnPty(
    { file: '/bin/sh', args: ['-c', `${opening} ${command}`] },
    env,
    ownAccount(),
    {
      terminal: 'xterm',
      modes: new Map(),
      ...size,
    },
  )
  let shown = ''
  const decoder = new StringDecoder('utf8')
  program.stdout.read(
    (bytes) => {
      shown += decoder.write(bytes)
      return true
    },
    () => undefined,
  )
  return {
    program,
    shown: () => shown,
    type: async (text) => void (await program.write(Buffer.from(text))),
    async until(pattern) {
      await eventually(() => expect(shown).toMatch(pattern))
      return pattern.exec(shown)![1] ?? ''
    },
  }
}

export function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
}
