// A program on pipes: standard output and errors apart, input with the program's own pace, and no terminal.
import type { Writable } from 'node:stream'
import { start } from './children.ts'
import { makePipes } from './native/pipes.ts'
import { Output } from './outputs.ts'
import { signalsFor, type Command, type RunningProgram } from './program.ts'
import { credentialsFor } from './privileges.ts'
import type { Account } from './users.ts'

/** Throws if it cannot be started; see `start` about the account. */
export async function startOnPipes(
  command: Command,
  env: Record<string, string>,
  account: Account | undefined,
): Promise<RunningProgram> {
  const pipes = makePipes(account && credentialsFor(account))
  try {
    const { child, pid, ended } = await start(command, env, account, () =>
      pipes ? [...pipes.program] : ['pipe', 'pipe', 'pipe'],
    )
    const { stdin, stdout, stderr }: { stdin: Writable; stdout: Output; stderr: Output } = pipes
      ? pipes.open()
      : {
          stdin: child.stdin!,
          stdout: new Output(() => child.stdout!),
          stderr: new Output(() => child.stderr!),
        }
    // Programs may ignore their input.
    stdin.on('error', () => undefined)
    return {
      pid,
      terminal: undefined,
      stdout,
      stderr,
      ended,
      write: (bytes) => writeTo(stdin, bytes),
      endInput() {
        // The pipe has taken everything. `end` would want to shut down a socket, which a pipe is not.
        stdin.destroy()
      },
      resize: () => undefined,
      interrupt: () => undefined,
      ...signalsFor(pid, ended),
    }
  } finally {
    pipes?.close()
  }
}

function writeTo(stdin: Writable, bytes: Buffer): boolean | Promise<boolean> {
  if (stdin.destroyed) return false
  let settle: ((taken: boolean) => void) | undefined
  stdin.write(bytes, (error) => settle?.(!error))
  if (stdin.writableLength === 0) return true
  return new Promise((resolve) => {
    const gone = (): void => resolve(false)
    stdin.once('close', gone)
    settle = (taken) => {
      stdin.off('close', gone)
      resolve(taken)
    }
  })
}
