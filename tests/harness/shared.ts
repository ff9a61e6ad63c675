// Things that the tests of a run make once and then copy, and the place of the copies.
import { existsSync, mkdtempSync, renameSync, statfsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

declare module 'vitest' {
  interface ProvidedContext {
    /** Shared by the tests of a run. */
    shared: string
  }
}

/**
 * Made by the first test in need of it; workers are processes of their own, so two may make it at the same
 * time, and one of them wins.
 */
export async function madeOnce(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  // Not at the top: vitest can be imported in a test only.
  const { inject } = await import('vitest')
  const ready = path.join(inject('shared'), name)
  if (existsSync(ready)) return ready
  const folder = mkdtempSync(path.join(inject('shared'), 'making-'))
  await make(folder)
  try {
    renameSync(folder, ready)
  } catch (error) {
    // Another test file was quicker.
    if (!existsSync(ready)) throw error
  }
  return ready
}

/**
 * Where tests keep their databases: in memory, if there is room, because most of them would otherwise wait
 * for the disk. Crashes are tested on a disk, with the real program (tests/failures).
 */
export function spacious(): string {
  const [memory, enough_bytes] = ['/dev/shm', 4 * 1024 ** 3]
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= enough_bytes ? memory : os.tmpdir()
  } catch {
    return os.tmpdir()
  }
}
