// A process with a watchdog, whose main thread hangs as soon as the watchdog runs: in a loop, or by a log that
// nobody reads. See watchdog.test.ts.
import { writeSync } from 'node:fs'
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { watchdog } from '../../server/src/cluster/watchdog.ts'

const started = once(process, 'worker') as Promise<[Worker]>
await using _ = watchdog((error) => {
  throw error
}, 2)
const [worker] = await started
worker.ref()
await once(worker, 'online')
for (;;)
  if (process.argv[2] === 'log')
    try {
      writeSync(1, 'x'.repeat(65_536))
    } catch {
      // The pipe is full.
    }
