// Pipes between us and a program. Node itself would make socket pairs, which are no files: a script that
// writes to /dev/stderr or reads /dev/stdin fails on them (ENXIO), though it works behind every sshd. (Named
// pipes are no way out: who opens one that nobody writes to any more waits for ever.) Node has no call that
// makes a pipe, but every shell does: a pipeline of thirteen that do nothing has twelve of them, and they can
// be opened by way of /proc while it lives. That is enough for four programs; what is not needed yet lies
// ready. The ends are given to the user, who could not open them again otherwise. Where all that is not
// possible (no /proc, say), socket pairs are better than nothing.
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, constants, fchownSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Rights } from './rights.ts'

export interface Pipes {
  /** The program's ends, to be closed here once it has them. */
  readonly program: readonly [stdin: number, stdout: number, stderr: number]
  /** Our ends. */
  open(): { readonly stdin: Socket; readonly stdout: Socket; readonly stderr: Socket }
  /** What has not been opened. */
  close(): void
}

const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants
const limit_ms = 5_000
const setsAtOnce = 4

/**
 * Each keeps its pipe where no redirection touches it, says who it is and waits for the end of our line to
 * it; nothing is ever read from the pipes between them.
 */
const pipeline = `s() { exec 5>&1; read pid rest < /proc/self/stat; echo "$1 $pid" >&3; read end <&4; }; exec 3>&1 4<&0; ${Array.from({ length: setsAtOnce * 3 + 1 }, (_, at) => `s ${at}`).join(' | ')}`

/** Each three descriptors, open for both directions, which keeps the pipes until their ends are open. */
let ready: number[][] = []
let making: Promise<void> | undefined

/** Undefined where the device cannot make them. */
export async function makePipes(owner: Rights | undefined): Promise<Pipes | undefined> {
  // Whoever waited beside others may find that they took them all, and makes more.
  while (ready.length === 0) {
    try {
      await (making ??= makeSets().finally(() => (making = undefined)))
    } catch {
      return undefined
    }
  }
  return openEnds(ready.pop()!, owner)
}

async function makeSets(): Promise<void> {
  const shell = spawn('/bin/sh', ['-c', pipeline], {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  })
  const limit = setTimeout(() => stop(shell), limit_ms)
  const opened: number[] = []
  try {
    for (const pid of await membersOf(shell)) opened.push(openSync(`/proc/${pid}/fd/5`, O_RDWR | O_NONBLOCK))
    ready = Array.from({ length: setsAtOnce }, (_, at) => opened.slice(at * 3, at * 3 + 3))
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    throw error
  } finally {
    clearTimeout(limit)
    stop(shell)
  }
}

function openEnds(set: number[], owner: Rights | undefined): Pipes | undefined {
  const opened = new Set<number>()
  const close = (): void => {
    for (const fd of opened) closeSync(fd)
  }
  const open = (fd: number, flags: number): number => {
    const end = openSync(`/proc/self/fd/${fd}`, flags)
    opened.add(end)
    return end
  }
  try {
    const [stdin, stdout, stderr] = set as [number, number, number]
    // The program's ends are of the kind that waits, as it expects; ours are not.
    const ours = [
      open(stdin, O_WRONLY | O_NONBLOCK),
      open(stdout, O_RDONLY | O_NONBLOCK),
      open(stderr, O_RDONLY | O_NONBLOCK),
    ] as const
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
    for (const fd of set) closeSync(fd)
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

/** The numbers of all but the last, which have a pipe as their output. */
async function membersOf(shell: ChildProcess): Promise<number[]> {
  const members: number[] = []
  const failed = new Promise<never>((_, reject) => void shell.once('error', reject))
  const read = async (): Promise<void> => {
    let left = setsAtOnce * 3 + 1
    for await (const line of createInterface({ input: shell.stdout as Readable })) {
      const [place, pid] = line.split(' ').map(Number)
      members[place!] = pid!
      left -= 1
      if (left === 0) return
    }
    throw new Error('The shell made no pipes.')
  }
  shell.stdin?.on('error', () => undefined)
  await Promise.race([read(), failed])
  return members.slice(0, -1)
}
