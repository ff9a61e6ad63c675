// Temporary folders of our own. An agent that runs as root makes them in /run, where only root can write: in
// /tmp, another user could replace a folder after a clean-up. A caller that returns to a folder first checks
// that it is still ours.
import { accessSync, constants, lstatSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const rootsPlace = '/run'

/** A new folder that only we may enter. */
export function ownFolder(name: string): string {
  return mkdtempSync(
    path.join(process.getuid?.() === 0 && isWritable(rootsPlace) ? rootsPlace : tmpdir(), `hawser-${name}-`),
  )
}

export function isOwnFolder(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  return (
    found !== undefined &&
    found.isDirectory() &&
    found.uid === process.getuid?.() &&
    (found.mode & 0o022) === 0
  )
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

const codeFolder = path.join(rootsPlace, 'hawser-code')

/**
 * The variables with which Node children of ours, started by root, start in a tenth of a second instead of
 * half of one. Root runs what is in that folder, so there is no cache unless the folder is certainly ours.
 */
export function compileCache(): Record<string, string> {
  try {
    mkdirSync(codeFolder, { mode: 0o700 })
  } catch {
    // The folder exists already, or cannot be created.
  }
  return isOwnFolder(codeFolder) ? { NODE_COMPILE_CACHE: codeFolder } : {}
}
