// Files and folders that are being made. They are removed when they are done with, and also when the build is
// stopped in the middle: `npm start` stops its build when it ends itself, and a draft has over a hundred
// megabytes.
import { existsSync, renameSync, rmSync } from 'node:fs'
import os from 'node:os'

const drafts = new Set<string>()

const remove = (file: string): void => rmSync(file, { recursive: true, force: true })

/** Disposing of it, or the end of the process, removes the file or folder. */
export function draft(file: string): Disposable {
  if (drafts.size === 0) process.on('exit', removeAll)
  drafts.add(file)
  return {
    [Symbol.dispose]() {
      remove(file)
      drafts.delete(file)
      if (drafts.size === 0) process.off('exit', removeAll)
    },
  }
}

function removeAll(): void {
  for (const file of drafts) remove(file)
}

/** For programs that make drafts: until it is disposed, a signal exits the process regularly. */
export function exitOnSignals(): Disposable {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const exit = (signal: NodeJS.Signals): never => process.exit(128 + os.constants.signals[signal])
  for (const signal of signals) process.once(signal, exit)
  return {
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, exit)
    },
  }
}

/** Moves a folder to its place, unless another build has put the same there. */
export function moveFolder(from: string, place: string): void {
  try {
    renameSync(from, place)
  } catch (error) {
    if (!existsSync(place)) throw error
  }
}
