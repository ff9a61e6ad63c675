// What the process really holds: objects and the memory behind buffers, after garbage was collected.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

export async function held_bytes(): Promise<number> {
  // Memory behind buffers is given back some turns after the objects in front of it.
  for (let count = 0; count < 3; count++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

export const mib = 1024 * 1024
