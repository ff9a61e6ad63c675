// Folders of our own for a while. Root's are made where nobody else can write, as far as the device has such
// a place: in a folder that everybody writes to, what was swept away could be put back by somebody else. So
// whoever comes back to one of them asks first whether it still is ours.
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

export function isStillOurs(folder: string): boolean {
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
 * The variables for a child of root that runs our own code. It finds there what was compiled before, which
 * takes its start from half a second to a tenth. Root runs what is in that folder: without one that is
 * certainly ours it is done without.
 */
export function ownCode(): Record<string, string> {
  try {
    mkdirSync(codeFolder, { mode: 0o700 })
  } catch {
    // It is there already, or cannot be.
  }
  return isStillOurs(codeFolder) ? { NODE_COMPILE_CACHE: codeFolder } : {}
}
