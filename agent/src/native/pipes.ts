// Pipes between us and a program. Node itself would make socket pairs, which are no files: a script that
// writes to /dev/stderr or reads /dev/stdin fails on them (ENXIO), though it works behind every sshd. Node
// has no function that makes a pipe, so the C library's pipe2 is called through node:ffi. The program's ends
// are given to the user, who could not open them again otherwise. Where Node has no node:ffi (before 26), or
// where pipe2 fails, the caller falls back to socket pairs.
import { closeSync, fchownSync } from 'node:fs'
import type * as Ffi from 'node:ffi'
import { Socket } from 'node:net'
import { Output } from '../outputs.ts'
import type { Credentials } from '../privileges.ts'

export interface Pipes {
  /** The program's ends, to be closed here once the program has them. */
  readonly program: readonly [stdin: number, stdout: number, stderr: number]
  open(): { readonly stdin: Socket; readonly stdout: Output; readonly stderr: Output }
  /** Closes the program's ends, and ours unless they were opened. */
  close(): void
}

interface Pipe {
  readonly read: number
  readonly write: number
}

/** Children inherit only what they are given. */
const closeOnExec = 0o2000000
const definitions = {
  pipe2: { arguments: ['buffer', 'int32'], return: 'int32' },
} as const satisfies Ffi.FunctionDefinitions

/** Open as long as we run: its functions are good only until it is closed. Null: there is no node:ffi. */
let library: Ffi.DynamicLibraryResult<typeof definitions> | null | undefined

function load(): Ffi.DynamicLibraryResult<typeof definitions> | null {
  try {
    // The libraries that our own Node has loaded; the C library is one of them.
    return process.getBuiltinModule('node:ffi')?.dlopen(null, definitions) ?? null
  } catch {
    return null
  }
}

/** Undefined: pipes cannot be made. */
export function makePipes(owner: Credentials | undefined): Pipes | undefined {
  const opened = new Set<number>()
  const close = (): void => {
    for (const fd of opened) closeSync(fd)
    opened.clear()
  }
  const pipe = (): Pipe => {
    const ends = makePipe()
    opened.add(ends.read).add(ends.write)
    return ends
  }
  try {
    const [stdin, stdout, stderr] = [pipe(), pipe(), pipe()]
    const program = [stdin.read, stdout.write, stderr.write] as const
    if (owner) for (const fd of program) fchownSync(fd, owner.uid, owner.gid)
    return {
      program,
      open() {
        for (const fd of [stdin.write, stdout.read, stderr.read]) opened.delete(fd)
        // A socket makes its end non-blocking; the program's end stays as programs expect it.
        return {
          stdin: new Socket({ fd: stdin.write, readable: false, writable: true }),
          stdout: outputOf(stdout),
          stderr: outputOf(stderr),
        }
      },
      close,
    }
  } catch {
    close()
    return undefined
  }
}

function outputOf({ read }: Pipe): Output {
  return new Output((onread) => new Socket({ fd: read, readable: true, writable: false, onread }))
}

function makePipe(): Pipe {
  if (library === undefined) library = load()
  const ends = new Int32Array(2)
  if (library?.functions.pipe2(ends, closeOnExec) !== 0) throw new Error('There is no pipe.')
  const [read = -1, write = -1] = ends
  return { read, write }
}
