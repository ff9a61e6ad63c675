// A thread of the search that is started when it is needed and ended when it was idle for a while: an
// installation where nobody searches pays nothing for it. A thread that died, or did not answer in time, is
// replaced at the next call.
import { Worker } from 'node:worker_threads'
import { Failure } from '@hawser/contract/failures'
import { calls, type Calls } from './calls.ts'
import type { IndexPlace, JournalReader, SearchThread } from './worker.ts'

const idle_ms = 60_000

/** The thread died, or was ended because it took too long: perhaps because of what it was given. */
export class ThreadEnded extends Error {}

export interface Thread extends AsyncDisposable {
  /**
   * Rejects with `ThreadEnded` after `most_ms`, and ends the thread: what it does cannot be
   * stopped otherwise.
   */
  call<N extends keyof SearchThread>(
    most_ms: number,
    name: N,
    ...given: Parameters<SearchThread[N]>
  ): Promise<Awaited<ReturnType<SearchThread[N]>>>
}

interface Running {
  readonly worker: Worker
  readonly calls: Calls<SearchThread>
  readonly ended: Promise<void>
  /** Calls under way. */
  busy: number
}

export function searchThread(place: IndexPlace, reader: JournalReader): Thread {
  let running: Running | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false

  function start(): Running {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: place,
      resourceLimits: { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 512 },
    })
    const ended = Promise.withResolvers<void>()
    const one: Running = { worker, calls: calls<SearchThread>(worker, reader), ended: ended.promise, busy: 0 }
    const end = (error: Error): void => {
      if (running === one) running = undefined
      one.calls.end(error)
    }
    worker.on('error', (cause) => end(new ThreadEnded('the thread of the search has failed', { cause })))
    worker.on('exit', () => {
      end(new ThreadEnded('the thread of the search has ended'))
      ended.resolve()
    })
    return one
  }

  async function stop(one: Running | undefined): Promise<void> {
    if (!one) return
    if (running === one) running = undefined
    // The index is closed in good order, unless the thread does not answer.
    const late = setTimeout(() => void one.worker.terminate(), 2_000)
    await one.calls.call('close').catch(() => undefined)
    clearTimeout(late)
    await one.worker.terminate()
    await one.ended
  }

  async function call(most_ms: number, name: keyof SearchThread, ...given: unknown[]): Promise<unknown> {
    if (closed) throw new Failure('unavailable', { message: 'The server is stopping.', retryAfter: 5 })
    clearTimeout(idle)
    const one = (running ??= start())
    one.busy++
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      late.reject(new ThreadEnded('the thread of the search took too long'))
      if (running === one) running = undefined
      void one.worker.terminate()
    }, most_ms)
    timer.unref()
    try {
      return await Promise.race([one.calls.call(name, ...(given as never)), late.promise])
    } finally {
      clearTimeout(timer)
      one.busy--
      if (one.busy === 0 && running === one) {
        clearTimeout(idle)
        idle = setTimeout(() => void (one.busy === 0 && stop(one)), idle_ms)
        idle.unref()
      }
    }
  }

  return {
    call: call as Thread['call'],
    async [Symbol.asyncDispose]() {
      closed = true
      clearTimeout(idle)
      await stop(running)
    },
  }
}
