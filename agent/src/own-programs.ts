// The programs of our own that the agent starts as children. As a rule each is a file beside this one. Where
// the whole agent is one file, an executable or a script, that file is started again and told by its first
// word which of them to be.
import path from 'node:path'

export type OwnProgram = 'sftp-child' | 'errands-child' | 'rights-child'

const mark = '--be='

let words: readonly string[] | undefined

/** Said once, at the start of such a file: what stands before its own arguments when it is started again. */
export function areOneFile(before: readonly string[]): void {
  words = before
}

/**
 * Which program this process is to be; undefined: the agent. The word is taken away, so that a program finds
 * its arguments.
 */
export function whichProgram(argv: string[]): string | undefined {
  if (!argv[2]?.startsWith(mark)) return undefined
  return argv.splice(2, 1)[0]!.slice(mark.length)
}

export function ownProgram(
  name: OwnProgram,
  args: readonly string[],
): { readonly file: string; readonly args: readonly string[] } {
  const { filename } = import.meta
  const before = words
    ? [...words, mark + name]
    : ['--no-warnings', path.join(path.dirname(filename), name + path.extname(filename))]
  return { file: process.execPath, args: [...before, ...args] }
}
