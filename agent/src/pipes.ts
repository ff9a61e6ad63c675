// Pipes between us and a program. Node itself would make socket pairs, which are no files: a script that writes to
// /dev/stderr or reads /dev/stdin fails on them (ENXIO), though it works behind every sshd. Node has no call that makes a
// pipe, but every shell does: a pipeline of four that do nothing has three of them, and they can be opened by way of /proc
// while it lives. They are given to the user, who could not open them again otherwise. Where all that is not possible
// (no /proc, say), socket pairs are better than nothing.
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, constants, fchownSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Rights } from './rights.ts'
import { turns } from './turns.ts'

export interface Pipes {
  /** The program's ends, to be closed here once it has them. */
  readonly program: readonly [stdin: number, stdout: number, stderr: number]
  /** Our ends. */
  open(): { readonly stdin: Socket; readonly stdout: Socket; readonly stderr: Socket }
  /** What has not been opened. */
  close(): void
}

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const limit_ms = 5_000

/**
 * Each keeps its pipe where no redirection touches it, says who it is and waits for the end of our line to it; nothing is ever
 * read from the pipes between them.
 */
const pipeline =
  's() { exec 5>&1; read pid rest < /proc/self/stat; echo "$1 $pid" >&3; read end <&4; }; exec 3>&1 4<&0; s 0 | s 1 | s 2 | s 3'

/** A set is made by five processes. */
const inTurn = turns(16, 1_024)

/** Undefined where the device cannot make them. */
export async function makePipes(owner: Rights | undefined): Promise<Pipes | undefined> {
  return inTurn(async () => make(owner), undefined)
}

async function make(owner: Rights | undefined): Promise<Pipes | undefined> {
  const shell = spawn('/bin/sh', ['-c', pipeline], { env: {}, cwd: '/', stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  const limit = setTimeout(() => stop(shell), limit_ms)
  const opened = new Set<number>()
  const close = (): void => {
    for (const fd of opened) closeSync(fd)
  }
  try {
    const [stdin, stdout, stderr] = await membersOf(shell)
    const open = (pid: number | undefined, flags: number): number => {
      const fd = openSync(`/proc/${pid}/fd/5`, flags)
      opened.add(fd)
      return fd
    }
    // The program's ends are of the kind that waits, as it expects; ours are not.
    const ours = [open(stdin, O_WRONLY | O_NONBLOCK), open(stdout, O_RDONLY | O_NONBLOCK), open(stderr, O_RDONLY | O_NONBLOCK)] as const
    const theirs = [open(stdin, O_RDONLY), open(stdout, O_WRONLY), open(stderr, O_WRONLY)] as const
    if (owner) for (const fd of theirs) fchownSync(fd, owner.uid, owner.gid)
    return {
      program: theirs,
      open() {
        for (const fd of ours) opened.delete(fd)
        return {
          stdin: new Socket({ fd: ours[0], readable: false, writable: true }),
          stdout: new Socket({ fd: ours[1], readable: true, writable: false }),
          stderr: new Socket({ fd: ours[2], readable: true, writable: false }),
        }
      },
      close,
    }
  } catch {
    close()
    return undefined
  } finally {
    clearTimeout(limit)
    stop(shell)
  }
}

function stop(shell: ChildProcess): void {
  shell.stdin?.destroy()
  if (shell.pid === undefined || shell.exitCode !== null || shell.signalCode !== null) return
  try {
    // At once, all of them; they have nothing to tidy up.
    process.kill(-shell.pid, 'SIGKILL')
  } catch {
    // They were quicker.
  }
}

/** The numbers of the first three, which have a pipe as their output. */
async function membersOf(shell: ChildProcess): Promise<(number | undefined)[]> {
  const members = new Map<number, number>()
  const failed = new Promise<never>((_, reject) => void shell.once('error', reject))
  const read = async (): Promise<void> => {
    for await (const line of createInterface({ input: shell.stdout as Readable })) {
      const [place, pid] = line.split(' ').map(Number)
      members.set(place!, pid!)
      if (members.size === 4) return
    }
  }
  shell.stdin?.on('error', () => undefined)
  await Promise.race([read(), failed])
  return [0, 1, 2].map((place) => members.get(place))
}
