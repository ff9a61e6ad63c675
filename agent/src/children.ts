// Starts programs with exactly the credentials of the user, a session of their own and three descriptors.
// Node opens every descriptor with O_CLOEXEC, except the masters of pseudo-terminals, which node-pty's addon
// opens: a child that inherits one could read and type on another user's terminal, and would prevent its
// hang-up. Node cannot mark them afterwards, so this file gives every child /dev/null in their place. Every
// child that lives longer than a moment must be started with `stdioWith`.
import { spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs'
import type { Exit } from '@hawser/ssh'
import { withOwn } from './own-libraries.ts'
import { exitOf, type Command } from './program.ts'
import { asLogin, commandAs, credentialsFor } from './privileges.ts'
import type { Account } from './users.ts'

const masters = new Set<number>()
let nothing: number | undefined

/** Hides a descriptor from children; call the returned function when the descriptor is closed. */
export function hideFromChildren(fd: number): () => void {
  masters.add(fd)
  return () => void masters.delete(fd)
}

const closeOnExec = 0o2000000

/**
 * Closes inherited descriptors, except the first three: Node marks only what it opens itself. Call it before
 * anything else is opened. Certificates of authorities stay open: a thread of Node's own may be reading them
 * now, without the mark, and everybody may read them.
 */
export function closeInherited(): void {
  const { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR } = process.env
  const authorities = [NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR].flatMap((place) =>
    place && existsSync(place) ? [realpathSync(place)] : [],
  )
  const isAuthority = (file: string): boolean =>
    authorities.some((place) => file === place || file.startsWith(`${place}/`))
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    try {
      const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''
      const isMarked = (Number.parseInt(flags, 8) & closeOnExec) !== 0
      if (fd > 2 && !isMarked && !isAuthority(readlinkSync(`/proc/self/fd/${fd}`))) closeSync(fd)
    } catch {
      // The folder itself was open while it was read.
    }
  }
}

type Stdio = (number | 'pipe' | 'ignore' | 'ipc')[]

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
 * Throws if the program cannot be started. `account`: the user that it runs as; undefined for a program of
 * ours that drops its privileges itself. The descriptors are opened at the last moment.
 */
export async function start(
  command: Command,
  env: Record<string, string>,
  account: Account | undefined,
  stdio: () => Stdio,
): Promise<Started> {
  const credentials = account && credentialsFor(account)
  const taking = credentials ? await commandAs(credentials, command) : command
  const last = account && process.getuid?.() === 0 ? asLogin(account.uid, taking) : taking
  // `detached` makes it the leader of a session and a group, so that a signal reaches all its processes.
  const child = spawn(last.file, last.args, {
    env: withOwn(env, last.env),
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
