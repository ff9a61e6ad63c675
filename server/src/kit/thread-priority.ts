// The priority of threads that compute for long, below that of the thread that answers everybody.
import os from 'node:os'

/**
 * Lets other threads go first while the processors are busy, for the thread that calls it. Only Linux counts
 * this by thread; elsewhere it would be the whole process.
 */
export function giveWay(): void {
  if (process.platform !== 'linux') return
  try {
    os.setPriority(0, 10)
  } catch {
    // A sandbox may forbid it: then this thread competes like the others.
  }
}
