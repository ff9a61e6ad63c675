// The programs that sessions run: one interface for those on a pseudo-terminal and those on pipes, and the
// code that both share.
import { constants } from 'node:os'
import type { Exit, Size } from '@hawser/ssh'
import type { Output } from './outputs.ts'

/** A program to start. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
  /** Variables that it needs beside those of its user. */
  readonly env?: Readonly<Record<string, string>>
}

export interface RunningProgram {
  readonly pid: number
  /** The terminal's device. */
  readonly terminal: string | undefined
  readonly stdout: Output
  readonly stderr: Output | undefined
  /**
   * How the program itself ended; processes that it left behind may still hold its outputs. Never rejects.
   */
  readonly ended: Promise<Exit>
  /** When the program can take more, at once or later; false once it takes nothing any more. */
  write(bytes: Buffer): boolean | Promise<boolean>
  /** Ends the input. Does nothing on a terminal, where a character ends it. */
  endInput(): void
  resize(size: Size): void
  signal(name: string): void
  /** A break on the line: the foreground process group of the terminal gets SIGINT. */
  interrupt(): void
  /** The client is gone: sends SIGHUP, and SIGKILL if the program does not end. */
  hangUp(): void
}

/** What a client may send (RFC 4254 section 6.10). */
const sendable = new Set([
  'ABRT',
  'ALRM',
  'FPE',
  'HUP',
  'INT',
  'KILL',
  'PIPE',
  'QUIT',
  'SEGV',
  'TERM',
  'USR1',
  'USR2',
])
/** Between SIGHUP and SIGKILL. */
const patience_ms = 5_000

const names = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

export function exitOf(status: number | null, signal: number | string | null): Exit {
  const name = typeof signal === 'number' ? names.get(signal) : (signal ?? undefined)
  if (signal === null || signal === 0) return { type: 'exit-status', status: status ?? 255 }
  return { type: 'exit-signal', signal: name?.replace(/^SIG/, '') ?? 'TERM', coreDumped: false, message: '' }
}

/** Signals for the whole group of a program that leads one, for as long as it is there. */
export function signalsFor(pid: number, ended: Promise<unknown>): Pick<RunningProgram, 'signal' | 'hangUp'> {
  let running = true
  let patience: NodeJS.Timeout | undefined
  void ended.then(() => {
    running = false
    clearTimeout(patience)
  })
  const send = (name: string): void => {
    // Its number may be somebody else's by now.
    if (!running) return
    try {
      process.kill(-pid, `SIG${name}`)
    } catch {
      // It ended just now.
    }
  }
  return {
    signal(name) {
      if (sendable.has(name)) send(name)
    },
    hangUp() {
      if (!running || patience) return
      send('HUP')
      // A stopped program must run to receive it.
      send('CONT')
      patience = setTimeout(() => send('KILL'), patience_ms)
    },
  }
}
