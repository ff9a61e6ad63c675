// Ends this node when its main thread hangs. Other nodes take over after ten seconds, but its sockets stay
// open, so agents and clients would wait until their next pings; when the process ends, they reconnect to
// another node. A thread counts seconds without a sign of the main thread; a suspended process counts none,
// because the thread did not run either.
import { Worker } from 'node:worker_threads'
import { second_ms } from '../kit/clock.ts'

/** Longer than any work that is worth waiting for; 20 s after the others took over. */
export const hang_s = 30

export interface ThreadWatch {
  /** Grows while the main thread runs. */
  readonly beats: Int32Array<SharedArrayBuffer>
  /** Seconds without a beat after which the process ends. */
  readonly hang_s: number
}

export function watchdog(onError: (error: unknown) => void, after_s: number = hang_s): AsyncDisposable {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(new URL('./watchdog-worker.ts', import.meta.url), {
    workerData: { beats, hang_s: after_s } satisfies ThreadWatch,
    resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 },
  })
  worker.unref()
  worker.on('error', onError)
  const timer = setInterval(() => Atomics.add(beats, 0, 1), second_ms).unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await worker.terminate()
    },
  }
}
