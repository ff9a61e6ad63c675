// The programs that sessions run: one interface for those on a pseudo-terminal and those on pipes, and the
// code that both share.
import { constants } from 'node:os'
import { sendableSignals, type Exit, type Size } from '@hawser/ssh'
import type { Output } from './outputs.ts'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
  /** In addition to the variables of its user. */
  readonly env?: Readonly<Record<string, string>>
}

export interface RunningProgram {
  readonly pid: number
  readonly terminal: string | undefined
  readonly stdout: Output
  readonly stderr: Output | undefined
  /**
   * How the program itself ended; processes that it left behind may still hold its outputs. Never rejects.
   */
  readonly ended: Promise<Exit>
  /** True, at once or later, when the program can take more; false once it takes no input. */
  write(bytes: Buffer): boolean | Promise<boolean>
  /** Does nothing on a terminal, where a character ends the input. */
  endInput(): void
  resize(size: Size): void
  signal(name: string): void
  /** A break on the line: the foreground process group of the terminal gets SIGINT. */
  interrupt(): void
  /** Sends SIGHUP, and SIGKILL if the program does not end. */
  hangUp(): void
}

/** Between SIGHUP and SIGKILL. */
const patience_ms = 5_000

const names = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

export function exitOf(status: number | null, signal: number | string | null): Exit {
  const name = typeof signal === 'number' ? names.get(signal) : (signal ?? undefined)
  if (signal === null || signal === 0) return { type: 'exit-status', status: status ?? 255 }
  return { type: 'exit-signal', signal: name?.replace(/^SIG/, '') ?? 'TERM', coreDumped: false, message: '' }
}

/** For the whole group of a program that leads one, until the program has ended. */
export function signalsFor(pid: number, ended: Promise<unknown>): Pick<RunningProgram, 'signal' | 'hangUp'> {
  let running = true
  let patience: NodeJS.Timeout | undefined
  void ended.then(() => {
    running = false
    clearTimeout(patience)
  })
  const send = (name: string): void => {
    // Another process may have this number.
    if (!running) return
    try {
      process.kill(-pid, `SIG${name}`)
    } catch {
      // The program ended just now.
    }
  }
  return {
    signal(name) {
      if (sendableSignals.has(name)) send(name)
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
