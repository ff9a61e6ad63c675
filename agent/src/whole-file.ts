// Files that are never half there: the text is written aside, reaches the disk, and takes the place of the
// file by one rename. After a power cut or on a full disk there is the former text or the new one.
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export function writeWhole(file: string, text: string, mode = 0o600): void {
  const draft = `${file}.${process.pid}`
  try {
    rmSync(draft, { force: true })
    // All of it or an error; one call of write may take a part on a disk that is nearly full.
    writeFileSync(draft, text, { mode, flush: true, flag: 'wx' })
    // The umask may have narrowed the mode.
    chmodSync(draft, mode)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncFolder(path.dirname(file))
}

/** Without it a power cut may undo a rename. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
