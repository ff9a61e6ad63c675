// The thread of the watchdog. Independent of the hanging main thread, it writes its line of the log itself,
// and ends the process by a signal. A log that nobody reads can be why the main thread hangs, so it waits a
// second at most for the line.
import { write } from 'node:fs'
import { workerData } from 'node:worker_threads'
import type { ThreadWatch } from './watchdog.ts'

const { beats, hang_s } = workerData as ThreadWatch
const never = new Int32Array(new SharedArrayBuffer(4))
const second_ms = 1_000

for (let last = -1, missed_s = 0; missed_s < hang_s;) {
  Atomics.wait(never, 0, 0, second_ms)
  const now = Atomics.load(beats, 0)
  missed_s = now === last ? missed_s + 1 : 0
  last = now
}
const line = {
  time: new Date().toISOString(),
  level: 'fatal',
  event: 'node.hung',
  message: `the main thread has not answered for ${hang_s} seconds; this node ends, so that devices reconnect elsewhere`,
}
const end = (): void => void process.kill(process.pid, 'SIGKILL')
setTimeout(end, second_ms)
write(1, `${JSON.stringify(line)}\n`, end)
