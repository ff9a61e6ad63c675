// The programs of our own that the agent starts as children, each a file next to this one: in a checkout the
// TypeScript source, in a package the bundled script.
import path from 'node:path'
import { ownLibraries } from './own-libraries.ts'
import type { Command } from './program.ts'

export type OwnProgram = 'sftp-child' | 'user-sockets-child' | 'privileges-child'

export function ownProgram(name: OwnProgram, args: readonly string[]): Command {
  const { filename } = import.meta
  const script = path.join(path.dirname(filename), name + path.extname(filename))
  return { file: process.execPath, args: ['--no-warnings', script, ...args], env: ownLibraries() }
}
