// Starting programs so that they get what they are meant to have and nothing else: the rights of the user, a
// session of their own, three descriptors. Node marks all that it opens as not to be inherited; the masters
// of pseudo-terminals, which node-pty's native part opens, are the one exception, and whoever inherits one
// could read and type on somebody else's terminal and keep it from being hung up. Node has no call that marks
// them either. So they are noted here, and every child gets /dev/null in their place. Whatever lives longer
// than a moment must be started with `stdioWith`.
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import type { Exit } from '@hawser/ssh'
import { exitOf, type Command } from './program.ts'
import { asLogin, commandWith, rightsToTake } from './rights.ts'
import type { Account } from './users.ts'

const masters = new Set<number>()
let nothing: number | undefined

/** A descriptor that children must not get; returns what forgets it, to be called when it is closed. */
export function keepToOurselves(fd: number): () => void {
  masters.add(fd)
  return () => void masters.delete(fd)
}

const closeOnExec = 0o2000000

/**
 * Closes what we have from whoever started us, beside the first three: Node marks only what it opens itself.
 * To be called before anything else is opened.
 */
export function closeInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    try {
      const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''
      if (fd > 2 && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(fd)
    } catch {
      // The folder itself was open while it was read.
    }
  }
}

type Stdio = (number | 'pipe' | 'ignore' | 'ipc')[]

/** What a child is to have, and nothing of what it must not. */
export function stdioWith(wanted: Stdio): Stdio {
  if (masters.size === 0) return wanted
  nothing ??= openSync('/dev/null', 'r')
  const last = Math.max(...masters)
  const others = Array.from({ length: Math.max(0, last + 1 - wanted.length) }, (_, at) =>
    masters.has(at + wanted.length) ? nothing! : 'ignore',
  )
  return [...wanted, ...others]
}

export interface Started {
  readonly child: ChildProcess
  readonly pid: number
  readonly ended: Promise<Exit>
}

/**
 * Throws if it cannot be started. `account` is who the program is to be; undefined for a program of ours that
 * sees to it itself. The descriptors are opened at the last moment.
 */
export async function start(
  command: Command,
  env: Record<string, string>,
  account: Account | undefined,
  stdio: () => Stdio,
): Promise<Started> {
  const rights = account && rightsToTake(account)
  const taking = rights ? await commandWith(rights, command) : command
  const last = account && process.getuid?.() === 0 ? asLogin(account.uid, taking) : taking
  // `detached` makes it the leader of a session and a group, so that a signal reaches all that it has
  // started.
  const child = spawn(last.file, last.args, {
    env: { ...env, ...last.env },
    cwd: '/',
    detached: true,
    stdio: stdioWith(stdio()),
  })
  const { pid } = child
  if (pid === undefined) {
    const cause = await new Promise((resolve) => void child.once('error', resolve))
    throw new Error('The program could not be started.', { cause })
  }
  const ended = new Promise<Exit>(
    (resolve) => void child.once('exit', (status, signal) => resolve(exitOf(status, signal))),
  )
  return { child, pid, ended }
}
